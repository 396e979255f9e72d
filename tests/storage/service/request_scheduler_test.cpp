#include "storage/service/request_scheduler.hpp"

#include <catch2/catch.hpp>
#include <memory_resource>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "support/random_seed.hpp"

using ooc::storage::client_number;
using ooc::storage::request_scheduler;

namespace {

using scheduler = request_scheduler<std::string>;

std::string order(scheduler& s) {
  std::string all;
  while (const auto job = s.next()) all += *job;
  CHECK(s.empty());
  return all;
}

/// Has memory for so many more chunks of a pool.  What the pool keeps about its chunks is always there: libstdc++ 12
/// loses the exception where that cannot be had.
class scarce_memory : public std::pmr::memory_resource {
 public:
  std::size_t left = 1000;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    constexpr std::size_t least_chunk = 256;
    if (bytes >= least_chunk && left == 0) throw std::bad_alloc();
    if (bytes >= least_chunk) --left;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

TEST_CASE("a request for which memory is wanting leaves nothing behind of its client") {
  for (std::size_t allocations = 0;; ++allocations) {
    scarce_memory memory;
    std::pmr::memory_resource* const usual = std::pmr::set_default_resource(&memory);
    scheduler s(10, 1);
    std::pmr::set_default_resource(usual);
    memory.left = allocations;
    std::string job = "a";
    bool added = true;
    try {
      s.add({1, 1}, {}, 5, std::move(job));
    } catch (const std::bad_alloc&) {
      added = false;
    }
    memory.left = 1000;
    if (!added) {
      CHECK(job == "a");
      CHECK(s.empty());
      CHECK_FALSE(s.next());
      s.add({1, 1}, {}, 5, std::move(job));
    }
    CHECK(order(s) == "a");
    if (added) break;
  }
}

TEST_CASE("requests of equal places are served in the order in which they came") {
  scheduler s(10, 1);
  for (const char* job : {"a", "b", "c", "d"}) s.add({}, {}, 5, job);
  CHECK(order(s) == "abcd");
}

TEST_CASE("a client's requests are served in the order of the disk, from where it is") {
  scheduler s(100, 1);
  s.add({1, 1}, {7, 500}, 1, "e");
  CHECK(s.next() == "e");
  s.add({1, 1}, {7, 100}, 1, "a");
  s.add({1, 1}, {7, 600}, 1, "f");
  s.add({1, 1}, {8, 0}, 1, "g");
  s.add({1, 1}, {7, 300}, 1, "c");
  s.add({1, 1}, {7, 501}, 1, "E");
  CHECK(s.waiting() == 5);
  // A process that had nothing to do begins at the front.
  CHECK(order(s) == "acEfg");
}

TEST_CASE("a small request waits for one stripe index of each other client, whatever they have queued") {
  scheduler s(100, 0);
  for (std::uint64_t client = 1; client <= 3; ++client)
    for (std::uint64_t i = 0; i < 50; ++i) s.add({1, client}, {client, i}, 100, "L");
  CHECK(s.next() == "L");
  s.add({1, 4}, {}, 1, "s");
  CHECK(order(s).find('s') <= 3);
}

TEST_CASE("users have equal stripe indexes, however many processes act for them") {
  scheduler s(100, 0);
  for (std::uint64_t process = 1; process <= 60; ++process)
    for (std::uint64_t i = 0; i < 5; ++i) s.add({1, process}, {0, i}, 100, "a");
  for (std::uint64_t i = 0; i < 5; ++i) s.add({2, 1000}, {0, i}, 100, "b");
  CHECK(order(s).substr(0, 10) == "ababababab");
}

TEST_CASE("over time clients get equal bytes, whatever the sizes of their requests") {
  const std::uint64_t seed = ooc::testing::random_seed("scheduler");
  std::mt19937_64 random(seed);
  request_scheduler<std::pair<std::size_t, std::uint64_t>> s(1 << 20, 0);
  const std::uint64_t sizes[] = {4096, 65536, 1 << 20};
  std::uint64_t served[3] = {};
  const auto fill = [&](std::size_t c) {
    const std::uint64_t bytes = 1 + random() % sizes[c];
    s.add({c, c + 1}, {0, random() % 1000}, bytes, {c, bytes});
  };
  for (std::size_t c = 0; c < 3; ++c)
    for (int i = 0; i < 2000; ++i) fill(c);
  for (int i = 0; i < 100000; ++i) {
    const auto [c, bytes] = *s.next();
    served[c] += bytes;
    fill(c);
  }
  // Within a turn and a request of each other.
  for (std::size_t c = 1; c < 3; ++c) {
    const auto apart = served[c] > served[0] ? served[c] - served[0] : served[0] - served[c];
    CHECK(apart <= (2 << 20));
  }
}
