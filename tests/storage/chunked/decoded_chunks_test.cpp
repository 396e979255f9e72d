// Tests of the chunks that are kept decoded.
#include "storage/chunked/decoded_chunks.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::testing;

namespace {

decoded_chunks::bytes one(std::uint64_t chunk) {
  const auto b = std::make_shared<std::byte[]>(1);
  b[0] = static_cast<std::byte>(chunk);
  return b;
}

}  // namespace

TEST_CASE("those used last stay, and the others are decoded again") {
  decoded_chunks chunks(2);
  const auto decoded = [&](std::uint64_t c) {
    int used = 0;
    const bool asked = chunks.need(c, [&](const failure& f, const decoded_chunks::bytes& b) {
      ++used;
      CHECK((!f && b[0] == static_cast<std::byte>(c)));
    });
    if (asked) chunks.arrived(c, {}, one(c));
    CHECK(used == 1);
    return asked;
  };
  CHECK(decoded(1));
  CHECK(decoded(2));
  CHECK_FALSE(decoded(1));
  CHECK(decoded(3));
  CHECK_FALSE(decoded(1));
  CHECK(decoded(2));
}

TEST_CASE("a walk that needs fewer chunks at a time than fit decodes each of them once") {
  decoded_chunks chunks(25);
  int decoded = 0;
  for (std::uint64_t first = 0; first < 1000; first += 10)
    for (int again = 0; again < 5; ++again)
      for (std::uint64_t c = first; c < first + 20; ++c)
        if (chunks.need(c, [](const failure&, const decoded_chunks::bytes&) {})) {
          chunks.arrived(c, {}, one(c));
          ++decoded;
        }
  CHECK(decoded == 1010);
}

TEST_CASE("of a walk that comes back to more chunks than fit some are still there") {
  decoded_chunks chunks(50);
  int again = 0;
  for (int round = 0; round < 10; ++round)
    for (std::uint64_t c = 0; c < 60; ++c)
      if (chunks.need(c, [](const failure&, const decoded_chunks::bytes&) {})) {
        chunks.arrived(c, {}, one(c));
        again += round > 0;
      }
  CHECK(again < 9 * 60 / 2);
}

TEST_CASE("a chunk that cannot be decoded is told to all who wait, and is tried again by the next one") {
  decoded_chunks chunks(2);
  int failed = 0;
  const auto count = [&](const failure& f, const decoded_chunks::bytes&) { failed += f ? 1 : 0; };
  CHECK(chunks.need(7, count));
  CHECK_FALSE(chunks.need(7, count));
  chunks.arrived(7, {errc::corrupt, "damaged"}, nullptr);
  CHECK(failed == 2);
  CHECK(chunks.need(7, count));
  chunks.arrived(7, {}, one(7));
  CHECK(failed == 2);
}

TEST_CASE("threads that need the same chunks get each of them, and nobody decodes one that another is decoding") {
  const std::uint64_t seed = random_seed("decoded_chunks");
  decoded_chunks chunks(5);
  std::atomic<int> used{0}, wrong{0};
  std::atomic<int> decoding[20] = {};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      for (int i = 0; i < 5000; ++i) {
        const std::uint64_t c = between(random, 0, 19);
        const bool mine = chunks.need(c, [&, c](const failure& f, const decoded_chunks::bytes& b) {
          wrong += f || b[0] != static_cast<std::byte>(c);
          ++used;
        });
        if (!mine) continue;
        wrong += decoding[c].fetch_add(1) != 0;
        const auto b = one(c);
        decoding[c].fetch_sub(1);
        chunks.arrived(c, {}, b);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(used == 20'000);
  CHECK(wrong == 0);
}

TEST_CASE("a chunk that is taken out takes its room along, and brings it back") {
  decoded_chunks chunks(3);
  const auto nothing = [](const failure&, const decoded_chunks::bytes&) {};
  const auto comes = [&](std::uint64_t c) {
    if (!chunks.need(c, nothing)) return false;
    chunks.arrived(c, {}, one(c));
    return true;
  };
  for (std::uint64_t c = 1; c <= 3; ++c) CHECK(comes(c));
  const decoded_chunks::bytes taken = chunks.take(2);
  REQUIRE(taken);
  CHECK_FALSE(chunks.take(7));
  CHECK(comes(4));
  CHECK(comes(5));
  CHECK(comes(4));  // one alone fits
  taken[0] = std::byte{99};
  chunks.put(2, taken);
  chunks.give_room();
  CHECK(comes(5));
  CHECK_FALSE(comes(4));
  CHECK_FALSE(comes(2));
  int value = 0;
  CHECK_FALSE(chunks.need(2, [&](const failure&, const decoded_chunks::bytes& b) { value = static_cast<int>(b[0]); }));
  CHECK(value == 99);
}
