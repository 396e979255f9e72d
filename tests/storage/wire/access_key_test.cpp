#include "storage/wire/access_key.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "oocarray/error.hpp"
#include "storage/layout/crc32c.hpp"
#include "storage/wire/revocations.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::wire;
using ooc::testing::temporary_folder;

namespace {

bool same(const key_ptr& a, const key_ptr& b) {
  return a->holder().identity == b->holder().identity && a->own_secret() == b->own_secret();
}

/// The text of the error that reading `file` ends with; its code must be `code`.
std::string refusal(const std::filesystem::path& file, std::error_code code) {
  try {
    access_key::read(file);
  } catch (const error& e) {
    INFO(e.what());
    CHECK(e.code() == code);
    CHECK(std::string(e.what()).find(file.string()) != std::string::npos);
    return e.what();
  }
  FAIL("was read");
  return {};
}

const std::error_code denied(EACCES, std::generic_category());

struct environment {
  environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~environment() {
    if (old_.empty())
      ::unsetenv(name_);
    else
      ::setenv(name_, old_.c_str(), 1);
  }
  const char* name_;
  std::string old_;
};

}  // namespace

TEST_CASE("a key comes back from its file, which only its owner may read") {
  temporary_folder folder;
  const auto file = folder / "key";
  const key_ptr key = access_key::random();
  key->write(file);
  struct stat s = {};
  REQUIRE(::stat(file.c_str(), &s) == 0);
  CHECK((s.st_mode & 07777) == 0600);
  CHECK(same(access_key::read(file), key));
  CHECK_FALSE(same(access_key::random(), key));
}

TEST_CASE("a user's key comes back from its file, and servers derive its secret from the cluster's") {
  temporary_folder folder;
  const key_ptr cluster = access_key::random();
  const key_user alice{"alice", 1000, {100, 27}};
  const key_ptr key = cluster->for_user(alice);
  key->write(folder / "alice");
  const key_ptr back = access_key::read(folder / "alice");
  CHECK(same(back, key));
  CHECK(back->holder().user == alice);
  CHECK_FALSE(back->of_cluster());
  CHECK(back->holder().cluster == cluster->holder().cluster);
  const auto named = parse_identity(back->holder().identity);
  REQUIRE(named);
  CHECK(cluster->secret_of(*named) == back->own_secret());
  CHECK_FALSE(same(cluster->for_user(alice), key));  // each has a serial of its own
  CHECK_THROWS_AS(key->for_user(alice), usage_error);
  for (const key_user& bad :
       {key_user{"", 1, {1}}, key_user{"a:b", 1, {1}}, key_user{"a b", 1, {1}}, key_user{std::string(33, 'a'), 1, {1}},
        key_user{"a", 1, {}}, key_user{"a", 1, std::vector<std::uint32_t>(33)}})
    CHECK_THROWS_AS(cluster->for_user(bad), usage_error);
}

TEST_CASE("a server is not started with a user's key") {
  temporary_folder folder;
  access_key::random()->for_user({"alice", 1000, {100}})->write(folder / "alice");
  CHECK_THROWS_AS(find_server_key(folder / "alice"), usage_error);
  CHECK(find_key(folder / "alice") != nullptr);
}

TEST_CASE("a user's key says when it was made; one of an earlier release counts as made before all others") {
  const key_ptr cluster = access_key::random();
  const std::int64_t now = std::time(nullptr);
  const key_ptr key = cluster->for_user({"alice", 1000, {100}});
  const auto named = parse_identity(key->holder().identity);
  REQUIRE(named);
  CHECK(named->made >= now);
  CHECK(named->made <= std::time(nullptr));
  CHECK(named->made == key->holder().made);
  CHECK(cluster->for_user({"alice", 1000, {100}}, now + 1000)->holder().made == now + 1000);
  const auto old = parse_identity("oocarray-3:user:a:1:1:fedcba9876543210:0123456789abcdef");
  REQUIRE(old);
  CHECK(old->made == 0);
  CHECK_FALSE(parse_identity("oocarray-3:user:a:1:1:fedcba98765432100:0123456789abcdef"));
}

TEST_CASE("a revocation covers the keys of its user that were made until then, and comes back from its file") {
  temporary_folder folder;
  const key_ptr cluster = access_key::random();
  const std::int64_t now = std::time(nullptr);
  const key_ptr alice = cluster->for_user({"alice", 1000, {100}}), bob = cluster->for_user({"bob", 1001, {100}});
  revocations list;
  CHECK_FALSE(list.cover(alice->holder()));
  list.add(1000, now + 5);
  list.add(1000, now + 1);  // nothing is taken back
  list.write(folder / "list");
  const revocations back = revocations::read(folder / "list");
  CHECK(back == list);
  CHECK(back.cover(alice->holder()));
  CHECK(back.cover(alice->holder().identity));
  CHECK(back.cover("oocarray-3:user:a:1000:1:fedcba9876543210:0123456789abcdef"));
  CHECK_FALSE(back.cover(bob->holder()));
  CHECK_FALSE(back.cover(cluster->holder()));
  CHECK_FALSE(back.cover(cluster->for_user({"alice", 1000, {100}}, now + 6)->holder()));
  CHECK(revocations::read(folder / "none").empty());
}

TEST_CASE("a list of revoked keys that is damaged, or that others may change, is refused with the remedy") {
  temporary_folder folder;
  const auto file = folder / "list";
  const auto refused = [&](const std::string& bad) {
    std::ofstream(file, std::ios::trunc | std::ios::binary) << bad;
    ::chmod(file.c_str(), 0600);
    INFO(bad);
    CHECK_THROWS_WITH(revocations::read(file), Catch::Contains("revoke again"));
  };
  for (const char* rows :
       {"oocarray-revoked 3\n", "1000 5\n", "oocarray-revoked 2\n1000\n", "oocarray-revoked 2\n1000 5 6\n",
        "oocarray-revoked 2\n-1 5\n", "oocarray-revoked 2\n4294967296 5\n", "oocarray-revoked 2\n1000 0\n"}) {
    char end[16];
    std::snprintf(end, sizeof end, "end %08x\n", storage::crc32c(rows, std::strlen(rows)));
    refused(rows + std::string(end));
  }
  revocations list;
  list.add(1000, 1795484201);
  list.add(2001, 1795484202);
  list.write(file);
  std::ifstream in(file);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t n = 0; n < good.size(); ++n) {
    refused(good.substr(0, n));
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = good;
      flipped[n] = static_cast<char>(flipped[n] ^ 1 << bit);
      refused(flipped);
    }
  }
  refused(good + '\0');
  list.write(file);
  CHECK(revocations::read(file) == list);
  ::chmod(file.c_str(), 0664);
  CHECK_THROWS_WITH(revocations::read(file), Catch::Contains("chmod 644"));
}

TEST_CASE("identities that are none are not taken for one") {
  for (const char* bad : {"", "oocarray-3:", "oocarray-3:cluster:", "oocarray-3:cluster:0123456789abcdeF",
                          "oocarray-3:root:0123456789abcdef", "oocarray-3:user:a:1:1:0123456789abcdef",
                          "oocarray-3:user:a:1::0123456789abcdef:0123456789abcdef",
                          "oocarray-3:user:a:-1:1:0123456789abcdef:0123456789abcdef",
                          "oocarray-3:user:a:4294967296:1:0123456789abcdef:0123456789abcdef",
                          "oocarray-3:user:a:1:1:0123456789abcdef:0123456789abcdef:"})
    CHECK_FALSE(parse_identity(bad));
  CHECK(parse_identity("oocarray-3:user:a:1:1:0123456789abcdef:0123456789abcdef"));
  CHECK(parse_identity("oocarray-3:cluster:0123456789abcdef"));
}

TEST_CASE("a key file is never overwritten") {
  temporary_folder folder;
  const auto file = folder / "key";
  const key_ptr key = access_key::random();
  key->write(file);
  CHECK_THROWS_AS(access_key::random()->write(file), usage_error);
  CHECK(same(access_key::read(file), key));
}

TEST_CASE("a key file that others may read is refused, with the remedy") {
  temporary_folder folder;
  const auto file = folder / "key";
  access_key::random()->write(file);
  for (const unsigned mode : {0640U, 0604U, 0620U, 0601U, 0777U}) {
    ::chmod(file.c_str(), mode);
    CHECK(refusal(file, denied).find("chmod 600") != std::string::npos);
  }
  ::chmod(file.c_str(), 0400);
  CHECK_NOTHROW(access_key::read(file));
}

TEST_CASE("a key file of another user is refused, with the remedy") {
  if (::geteuid() != 0) {
    WARN("needs root to give a file away");
    return;
  }
  temporary_folder folder;
  const auto file = folder / "key";
  access_key::random()->write(file);
  REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
  CHECK(refusal(file, denied).find("user 12345") != std::string::npos);
}

TEST_CASE("a damaged key file is refused") {
  temporary_folder folder;
  const auto file = folder / "key";
  const std::string good = "oocarray-key 1 " + std::string(64, 'a');
  const auto write = [&](const std::string& text) {
    std::ofstream(file, std::ios::trunc) << text;
    ::chmod(file.c_str(), 0600);
  };
  write(good + "\n");
  CHECK_NOTHROW(access_key::read(file));
  for (const std::string& bad : {std::string(), good.substr(1), good.substr(0, good.size() - 1), good + "a",
                                 "oocarray-key 2 " + std::string(64, 'a'), "oocarray-key 1 " + std::string(64, 'g'),
                                 good + "\n" + good, std::string(10000, 'x')}) {
    write(bad);
    CHECK(refusal(file, errc::not_a_store).find("damaged") != std::string::npos);
  }
}

TEST_CASE("a key is looked for in the option, the environment and the home folder, in this order") {
  temporary_folder folder;
  const environment home("HOME", folder.path().string());
  const environment unset("OOC_KEY", "");
  CHECK(find_key({}) == nullptr);

  std::filesystem::create_directories(folder / ".config/oocarray");
  const key_ptr usual = access_key::random(), named = access_key::random(), given = access_key::random();
  usual->write(folder / ".config/oocarray/key");
  named->write(folder / "named");
  given->write(folder / "given");
  CHECK(same(find_key({}), usual));
  const environment variable("OOC_KEY", (folder / "named").string());
  CHECK(same(find_key({}), named));
  CHECK(same(find_key(folder / "given"), given));
  CHECK_THROWS_AS(find_key(folder / "missing"), io_error);
  const environment missing("OOC_KEY", (folder / "missing").string());
  CHECK_THROWS_AS(find_key({}), io_error);
  const environment none("OOC_KEY", "none");
  CHECK(find_key({}) == nullptr);
}
