// Chunks that are files of their own, or lie in shards, written to by processes that die, and by several at a time.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "oocarray/open_file.hpp"
#include "runtime/array/chunk_folder.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

constexpr std::size_t lines = 50, width = 1024;

/// Ends the process with 0 if `f` returns true.
template <class F>
pid_t child(F f) {
  const pid_t p = ::fork();
  if (p == 0) {
    bool good = false;
    try {
      good = f();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    ::_exit(good ? 0 : 1);
  }
  return p;
}

int status_of(pid_t p) {
  int status = -1;
  static_cast<void>(::waitpid(p, &status, 0));
  return status;
}

}  // namespace

TEST_CASE("a process that dies loses nothing that it had written back") {
  const chunk_folder f;
  const file_contents contents{.extents = {lines, width}, .chunks = f.chunks({10, 256}, GENERATE(0, 3))};
  const pid_t p = child([&]() -> bool {
    runtime rt{{.memory = 8_MiB}};
    auto a = open_file<double, 2>(rt, f.description, ooc::open, contents, {.block = 8192});
    for (std::size_t i = 0; i < lines; ++i) a[i][i] = static_cast<double>(i);
    a.writeback();
    a[7][0] = 1;
    static_cast<void>(::kill(::getpid(), SIGKILL));
    return false;
  });
  CHECK(WIFSIGNALED(status_of(p)));
  runtime rt{{.memory = 8_MiB}};
  const auto a = open_file<double, 2>(rt, f.description, open_read_only, contents);
  for (std::size_t i = 0; i < lines; ++i) CHECK(a[i][i] == static_cast<double>(i));
  CHECK(a[7][0] == 0);
}

TEST_CASE("a process that exits with an array open loses nothing") {
  const chunk_folder f;
  const file_contents contents{.extents = {lines, width}, .chunks = f.chunks({10, 256}, GENERATE(0, 3))};
  const pid_t p = child([&]() -> bool {
    runtime rt{{.memory = 8_MiB}};
    auto a = open_file<double, 2>(rt, f.description, ooc::open, contents, {.block = 8192});
    for (std::size_t i = 0; i < lines; ++i) a[i][i] = static_cast<double>(i);
    std::exit(0);
  });
  CHECK(status_of(p) == 0);
  runtime rt{{.memory = 8_MiB}};
  const auto a = open_file<double, 2>(rt, f.description, open_read_only, contents);
  for (std::size_t i = 0; i < lines; ++i) CHECK(a[i][i] == static_cast<double>(i));
}

TEST_CASE("processes write different chunks, and see each other's after writeback and invalidate") {
  const chunk_folder f;
  file_chunks c = f.chunks({10, 1024}, GENERATE(0, 3));  // shards have chunks of both
  c.filters = {chunk_filter::gzip};
  const file_contents contents{.extents = {lines, width}, .chunks = c};
  int to_child[2], to_parent[2];
  REQUIRE((::pipe(to_child) == 0 && ::pipe(to_parent) == 0));
  const array_options<double> options{.block = 8192, .shared = true};
  const auto tell = [](int fd) { return ::write(fd, "x", 1) == 1; };
  const auto hear = [](int fd) {
    char x = 0;
    return ::read(fd, &x, 1) == 1;
  };
  // Each writes the chunks of its parity and reads those of the other, some rounds long.
  const auto part = [&](std::size_t me, int from, int to) {
    runtime rt{{.memory = 8_MiB}};
    auto a = open_file<double, 2>(rt, f.description, ooc::open, contents, options);
    for (int round = 1; round <= 5; ++round) {
      for (std::size_t i = 0; i < lines; ++i)
        if (i / 10 % 2 == me)
          for (std::size_t j = 0; j < width; ++j) a[i][j] = round;
      a.writeback();
      if (!tell(to) || !hear(from)) return false;
      a.invalidate();
      for (std::size_t i = 0; i < lines; ++i)
        for (std::size_t j = 0; j < width; ++j)
          if (a[i][j] != round) return false;
      if (!tell(to) || !hear(from)) return false;
    }
    return true;
  };
  const pid_t p = child([&] { return part(1, to_child[0], to_parent[1]); });
  CHECK(part(0, to_parent[0], to_child[1]));
  CHECK(status_of(p) == 0);
}
