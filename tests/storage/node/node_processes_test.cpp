// Several processes with the same folder open.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "support/node_fixture.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

int in_child(const std::function<int()>& body, pid_t& child) {
  child = ::fork();
  if (child == 0) ::_exit(body());
  return child > 0 ? 0 : -1;
}

}  // namespace

TEST_CASE("processes that write parts of the same chunks lose nothing") {
  temporary_folder folder;
  constexpr std::uint64_t size = 512 << 10;
  constexpr int processes = 3;
  const shape_ptr f = make_shape(1, {0, 1, 8000}, size);
  {
    auto node = open_local_node(folder.path());
    REQUIRE_FALSE(create(*node, f));
  }
  // Process p owns the bytes b with b / 700 % processes == p, in four requests at a time.
  const auto mine = [&](int p, std::uint64_t quarter) {
    const std::uint64_t from = quarter * (size / 4) / (700 * processes) * (700 * processes);
    const std::uint64_t groups = size / 4 / (700 * processes) - 1;
    return request::strided({from + 700 * static_cast<std::uint64_t>(p), 0, 700, groups, 700 * processes, 0});
  };
  pid_t children[processes];
  for (int p = 0; p < processes; ++p)
    REQUIRE(in_child(
                [&] {
                  auto node = open_local_node(folder.path(), {.workers = 3, .staging = 64 << 10});
                  for (int round = 1; round <= 10; ++round) {
                    std::atomic<int> failed{0};
                    std::atomic<int> open{4};
                    std::promise<void> done;
                    bytes b(size, static_cast<std::byte>(round * 10 + p));
                    for (std::uint64_t q = 0; q < 4; ++q)
                      node->write(f, 0, std::make_shared<const request>(mine(p, q)), b.data(), [&](const failure& e) {
                        if (e) ++failed;
                        if (--open == 0) done.set_value();
                      });
                    done.get_future().get();
                    if (failed != 0) return 1;
                    if (round % 4 == 0 && sync(*node, f)) return 2;
                    bytes c(size);
                    for (std::uint64_t q = 0; q < 4; ++q) {
                      const request r = mine(p, q);
                      if (read(*node, f, 0, r, c.data())) return 3;
                      if (!std::equal(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(r.bytes()), b.begin()))
                        return 4;
                    }
                  }
                  return 0;
                },
                children[p]) == 0);
  for (pid_t c : children) {
    int status = 0;
    REQUIRE(::waitpid(c, &status, 0) == c);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  auto node = open_local_node(folder.path());
  const auto [e, report] = verify(*node, f);
  CHECK_FALSE(e);
  CHECK(report.corrupt + report.torn == 0);
  bytes b(size);
  for (int p = 0; p < processes; ++p)
    for (std::uint64_t q = 0; q < 4; ++q) {
      const request r = mine(p, q);
      REQUIRE_FALSE(read(*node, f, 0, r, b.data()));
      CHECK(std::all_of(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(r.bytes()),
                        [&](std::byte x) { return x == static_cast<std::byte>(100 + p); }));
    }
}

TEST_CASE("a busy process does not shut another out of a region") {
  temporary_folder folder;
  const shape_ptr f = make_shape(1, {0, 1, 65536}, 1 << 20);
  {
    auto node = open_local_node(folder.path());
    REQUIRE_FALSE(create(*node, f));
  }
  int working[2], enough[2];  // the child says the one, and is told the other
  REQUIRE(::pipe(working) == 0);
  REQUIRE(::pipe(enough) == 0);
  pid_t busy = 0;
  REQUIRE(in_child(
              [&] {
                ::close(enough[1]);
                bytes b(16 << 10, std::byte{1});
                std::atomic<int> open{0};
                auto node = open_local_node(folder.path(), {.workers = 4, .staging = 64 << 10});
                // It ends by itself where the other is shut out for good.
                const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
                pollfd told{enough[0], POLLIN, 0};
                for (std::uint64_t i = 0; ::poll(&told, 1, 0) == 0; ++i) {
                  if (std::chrono::steady_clock::now() > end) return 1;
                  if (i == 64 && ::write(working[1], "w", 1) != 1) return 2;
                  while (open > 8) std::this_thread::yield();
                  ++open;
                  node->write(f, 0, std::make_shared<const request>(request::contiguous(i % 32 * 16384 + 1, 16000)),
                              b.data(), [&](const failure&) { --open; });
                }
                return 0;
              },
              busy) == 0);
  char byte = 0;
  REQUIRE(::read(working[0], &byte, 1) == 1);
  auto node = open_local_node(folder.path(), {.workers = 2, .staging = 64 << 10});
  bytes b(100, std::byte{2});
  for (int i = 0; i < 5; ++i) CHECK_FALSE(write(*node, f, 0, request::contiguous((1 << 20) - 100, 100), b.data()));
  CHECK_FALSE(sync(*node, f));
  ::close(enough[1]);
  int status = 0;
  REQUIRE(::waitpid(busy, &status, 0) == busy);
  CHECK(status == 0);  // it was at work all the time
  for (const int fd : {working[0], working[1], enough[0]}) ::close(fd);
}
