// Entries are written with the first write to their region: nobody's neighbours may suffer from it.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "support/node_fixture.hpp"
#include "support/random_seed.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr file_id touched_file = 12;

bool all(const std::byte* b, std::uint64_t n, char c) {
  return std::all_of(b, b + n, [&](std::byte x) { return x == static_cast<std::byte>(c); });
}

}  // namespace

TEST_CASE("a writer killed while it first touches a region leaves acknowledged neighbours readable") {
  std::mt19937_64 random(random_seed("first_touch"));
  constexpr std::uint64_t chunks = 4096;  // four regions
  for (int round = 0; round < 8; ++round) {
    temporary_folder folder;
    const shape_ptr shape = make_shape(touched_file, {0, 1, 65536}, chunks * chunk_size, true, {std::byte{'f'}});
    {
      auto node = open_local_node(folder.path(), {.workers = 2});
      REQUIRE_FALSE(create(*node, shape));
    }
    // Two processes write chunks of either parity and say which were acknowledged.
    int pipes[2][2];
    pid_t children[2];
    for (int p = 0; p < 2; ++p) {
      REQUIRE(::pipe(pipes[p]) == 0);
      children[p] = ::fork();
      REQUIRE(children[p] >= 0);
      if (children[p] != 0) continue;
      auto node = open_local_node(folder.path(), {.workers = 2, .direct_io = false});
      const bytes b(chunk_size, static_cast<std::byte>('0' + p));
      for (std::uint64_t i = 0;; ++i) {
        const std::uint64_t c = (i * 1023 * 2 + static_cast<std::uint64_t>(p)) % chunks;
        if (write(*node, shape, 0, request::contiguous(c * chunk_size, chunk_size), b.data())) ::_exit(1);
        if (::write(pipes[p][1], &c, sizeof c) != sizeof c) ::_exit(2);
      }
    }
    const auto acknowledged = between(random, 1, 200);
    std::vector<std::uint64_t> done[2];
    for (int p = 0; p < 2; ++p) ::close(pipes[p][1]);
    std::uint64_t c = 0;
    for (std::uint64_t n = 0; n < acknowledged; ++n)
      for (int p = 0; p < 2; ++p) {
        REQUIRE(::read(pipes[p][0], &c, sizeof c) == sizeof c);
        done[p].push_back(c);
      }
    for (int p = 0; p < 2; ++p) ::kill(children[p], SIGKILL);
    for (int p = 0; p < 2; ++p) {
      while (::read(pipes[p][0], &c, sizeof c) == sizeof c) done[p].push_back(c);
      ::close(pipes[p][0]);
      REQUIRE(::waitpid(children[p], nullptr, 0) == children[p]);
    }
    auto node = open_local_node(folder.path(), {.workers = 2});
    const auto [e, report] = verify(*node, shape);
    REQUIRE_FALSE(e);
    INFO((report.problems.empty() ? "" : report.problems[0]));
    CHECK(report.corrupt == 0);
    CHECK(report.lost == 0);
    bytes b(chunk_size);
    for (int p = 0; p < 2; ++p)
      for (const std::uint64_t at : done[p]) {
        const failure f = read(*node, shape, 0, request::contiguous(at * chunk_size, chunk_size), b.data());
        INFO(f.what);
        REQUIRE_FALSE(f);
        REQUIRE(all(b.data(), chunk_size, static_cast<char>('0' + p)));
      }
  }
}

TEST_CASE("threads that touch one region at once keep each other's chunks") {
  for (int round = 0; round < 20; ++round) {
    temporary_folder folder;
    const shape_ptr shape = make_shape(touched_file, {0, 1, 65536}, 256 * chunk_size);
    auto node = open_local_node(folder.path(), {.workers = 4});
    REQUIRE_FALSE(create(*node, shape));
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const bytes b(chunk_size, static_cast<std::byte>('0' + t));
        for (std::uint64_t c = t; c < 64; c += 4)
          if (write(*node, shape, 0, request::contiguous(c * chunk_size, chunk_size), b.data())) ++failures;
      });
    for (auto& t : threads) t.join();
    REQUIRE(failures == 0);
    bytes b(256 * chunk_size);
    REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(0, b.size()), b.data()));
    for (std::uint64_t c = 0; c < 64; ++c)
      REQUIRE(all(b.data() + c * chunk_size, chunk_size, static_cast<char>('0' + c % 4)));
    REQUIRE(all(b.data() + 64 * chunk_size, 192 * chunk_size, '\0'));
  }
}

TEST_CASE("what a loss of power took of a region first touched since the last sync reads as filled") {
  temporary_folder folder;
  const shape_ptr shape = make_shape(touched_file, {0, 1, 65536}, 2048 * chunk_size, true, {std::byte{'f'}});
  auto node = open_local_node(folder.path());
  REQUIRE_FALSE(create(*node, shape));
  const bytes b(chunk_size, std::byte{'n'});
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, chunk_size), b.data()));
  REQUIRE_FALSE(sync(*node, shape));
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(1500 * chunk_size, chunk_size), b.data()));
  node.reset();
  // The mark of the second region reached the disk, its entries did not.
  const std::string zeros(1024 * 8, '\0');
  std::fstream s(node_folder(folder.path()).sums(touched_file), std::ios::in | std::ios::out | std::ios::binary);
  s.seekp(4096 + 1024 * 8);
  s << zeros;
  s.close();
  change_boot(folder.path(), touched_file);
  node = open_local_node(folder.path());
  bytes got(2048 * chunk_size);
  REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(0, got.size()), got.data()));
  CHECK(all(got.data(), chunk_size, 'n'));
  CHECK(all(got.data() + chunk_size, 2047 * chunk_size, 'f'));
}

TEST_CASE("a large sparse stripe object is made, written here and there, shrunk and grown quickly") {
  temporary_folder folder;
  constexpr std::uint64_t size = std::uint64_t{1} << 34;  // several groups of marks
  const shape_ptr shape = make_shape(touched_file, {0, 1, 65536}, size, true);
  auto node = open_local_node(folder.path());
  REQUIRE_FALSE(create(*node, shape));
  const bytes b(3 * chunk_size, std::byte{'n'});
  bytes got(5 * chunk_size);
  for (const std::uint64_t at :
       {std::uint64_t{0}, 448 * 4 * (std::uint64_t{1} << 20) - chunk_size, size - 4 * chunk_size}) {
    REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(at, b.size()), b.data()));
    REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(at, b.size() + chunk_size), got.data()));
    CHECK(all(got.data(), b.size(), 'n'));
    CHECK(all(got.data() + b.size(), chunk_size, '\0'));
  }
  const shape_ptr less = make_shape(touched_file, shape->striping, size / 2 + 5, true);
  REQUIRE_FALSE(resize(*node, less, 0, size));
  REQUIRE_FALSE(resize(*node, shape, 0, less->size));
  REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(size - 4 * chunk_size, 4 * chunk_size), got.data()));
  CHECK(all(got.data(), 4 * chunk_size, '\0'));
  REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(size / 2, 4 * chunk_size), got.data()));
  CHECK(all(got.data(), 4 * chunk_size, '\0'));
}
