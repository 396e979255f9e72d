#include "runtime/blocks/diff.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "support/random_seed.hpp"

using namespace ooc;

TEST_CASE("an element that straddles the steps of the comparison is sent whole") {
  for (const std::uint32_t element : {24u, 4096u, 6000u}) {
    std::vector<std::byte> twin(30000), frame(30000);
    frame[4097] = frame[14000] = std::byte{1};
    const std::uint64_t offset = 3 * element;
    const request changed =
        detail::changes(request::contiguous(offset, frame.size()), element, frame.data(), twin.data());
    changed.for_each_run([&](std::uint64_t file, std::uint64_t, std::uint64_t length) {
      CHECK(file % element == 0);
      CHECK(length % element == 0);
    });
    CHECK(changed.bytes() >= 2 * element);
  }
}

TEST_CASE("the changes of a block are its elements that differ, and no others") {
  std::mt19937_64 random(testing::random_seed("changes"));
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t element = static_cast<std::uint32_t>(testing::between(random, 1, 24));
    const std::uint64_t offset = testing::between(random, 0, 5000);
    const std::uint64_t bytes = testing::between(random, 1, 9000);
    std::vector<std::byte> twin(bytes + 8), frame;
    for (std::byte& b : twin) b = static_cast<std::byte>(random());
    frame = twin;
    for (std::uint64_t n = testing::between(random, 0, 30); n > 0; --n)
      frame[testing::between(random, 0, bytes - 1)] ^= std::byte{1};
    const request changed = detail::changes(request::contiguous(offset, bytes), element, frame.data(), twin.data());
    std::vector<bool> sent(bytes);
    changed.for_each_run([&](std::uint64_t file, std::uint64_t memory, std::uint64_t length) {
      REQUIRE(file == offset + memory);
      for (std::uint64_t i = 0; i < length; ++i) sent[memory + i] = true;
    });
    for (std::uint64_t i = 0; i < bytes; ++i) {
      const std::uint64_t first = (offset + i) / element * element;
      bool differs = false;
      for (std::uint64_t k = std::max(first, offset); k < first + element && k < offset + bytes; ++k)
        differs |= frame[k - offset] != twin[k - offset];
      REQUIRE(sent[i] == differs);
    }
  }
}

TEST_CASE("bytes in doubt differ from the twin whatever they have become, and no others do") {
  std::mt19937_64 random(testing::random_seed("bytes in doubt"));
  std::vector<std::byte> twin(4096), sent, later;
  for (std::byte& b : twin) b = static_cast<std::byte>(random());
  sent = twin;
  for (int n = 0; n < 500; ++n) sent[testing::between(random, 0, sent.size() - 1)] = static_cast<std::byte>(random());
  const detail::bytes_in_doubt doubt(sent.data(), twin.data(), twin.size());
  later = GENERATE(true, false) ? twin : sent;
  std::vector<std::byte> spoilt = twin;
  doubt.spoil(spoilt.data(), later.data());
  for (std::size_t i = 0; i < twin.size(); ++i) REQUIRE(spoilt[i] == (sent[i] == twin[i] ? twin[i] : ~later[i]));
}
