#include "storage/wire/capability.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "support/random_seed.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc::wire;
using ooc::testing::temporary_folder;

namespace {

const std::string store = "11111111-2222-4333-8444-555555555555";

capability some() {
  const std::byte fill[] = {std::byte{1}, std::byte{2}};
  return {
      42, right_read | right_write, 1000, 5000, 7, store, geometry_of(9, {1, 2, 3}, true, fill), mark_of("somebody")};
}

}  // namespace

TEST_CASE("a capability says what was signed") {
  temporary_folder folder;
  const capability_signer signer(folder / "seed");
  const std::string bytes = signer.sign(some());
  CHECK(bytes.size() == capability_size);
  const auto v = verify_capability(signer.public_key(), store, bytes, 4999);
  CHECK(v.fault == capability_fault::none);
  CHECK_FALSE(v.reason);
  CHECK(v.granted == some());
}

TEST_CASE("the signer's key is made once, and only its owner may read it") {
  temporary_folder folder;
  const auto first = capability_signer(folder / "seed").public_key();
  CHECK(capability_signer(folder / "seed").public_key() == first);
  CHECK(capability_signer(folder / "other").public_key() != first);
  struct stat s = {};
  REQUIRE(::stat((folder / "seed").c_str(), &s) == 0);
  CHECK((s.st_mode & 07777) == 0600);
  ::chmod((folder / "seed").c_str(), 0644);
  CHECK_THROWS_AS(capability_signer(folder / "seed"), ooc::usage_error);
}

TEST_CASE("an expired capability is refused, and still says whose it was") {
  temporary_folder folder;
  const capability_signer signer(folder / "seed");
  const auto v = verify_capability(signer.public_key(), store, signer.sign(some()), 5000);
  CHECK(v.fault == capability_fault::expired);
  CHECK(v.reason.what.find("expired") != std::string::npos);
  CHECK(v.granted == some());
}

TEST_CASE("a capability of another signer is forged, one for another store is refused") {
  temporary_folder folder;
  const capability_signer signer(folder / "seed"), stranger(folder / "stranger");
  const auto forged = verify_capability(signer.public_key(), store, stranger.sign(some()), 0);
  CHECK(forged.fault == capability_fault::forged);
  CHECK(forged.reason.what.find("forged") != std::string::npos);
  CHECK(forged.granted == capability{});
  const auto other = verify_capability(signer.public_key(), "another", signer.sign(some()), 0);
  CHECK(other.fault == capability_fault::other_store);
  CHECK(other.reason.what.find("another") != std::string::npos);
}

TEST_CASE("no byte of a capability may be changed") {
  temporary_folder folder;
  const capability_signer signer(folder / "seed");
  const std::string good = signer.sign(some());
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int bit : {1, 128}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ bit);
      const auto fault = verify_capability(signer.public_key(), store, bad, 0).fault;
      CHECK((fault == capability_fault::forged || fault == capability_fault::malformed));
    }
  CHECK(verify_capability(signer.public_key(), store, "", 0).fault == capability_fault::malformed);
  CHECK(verify_capability(signer.public_key(), store, good + "x", 0).fault == capability_fault::malformed);
  CHECK(verify_capability(signer.public_key(), store, good.substr(1), 0).fault == capability_fault::malformed);
}

TEST_CASE("random bytes are no capability") {
  std::mt19937_64 random(ooc::testing::random_seed("capability"));
  temporary_folder folder;
  const capability_signer signer(folder / "seed");
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(ooc::testing::between(random, 0, 200), '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 2 == 0) bytes = "OOCCAP01" + bytes;
    if (i % 4 == 0) bytes.resize(capability_size);
    CHECK(verify_capability(signer.public_key(), store, bytes, 0).fault != capability_fault::none);
  }
}

TEST_CASE("capabilities are signed and verified quickly", "[.][speed]") {
  temporary_folder folder;
  const capability_signer signer(folder / "seed");
  const std::string good = signer.sign(some());
  const auto run = [](auto&& f) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 5000; ++i) f();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / 5000;
  };
  WARN("sign " << run([&] { (void)signer.sign(some()); }) << " us, verify "
               << run([&] { (void)verify_capability(signer.public_key(), store, good, 0); }) << " us");
}
