// A full disk.  As root: a tmpfs of a few MiB in a mount namespace of a child process.  Otherwise a
// limit on file sizes in the child (EFBIG in place of ENOSPC); nothing is skipped.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <iostream>

#include "storage/node_fixture.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr std::uint64_t space = 4 << 20;

// Runs `body` in a child whose `folder` has little space; `mounted` says by which means.
int in_small_space(const fs::path& folder, const std::function<int(bool mounted)>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=4m") == 0;
    if (!mounted) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{space, space};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(99);
    }
    ::_exit(body(mounted));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// In the child, in place of Catch's macros: the line of the first expectation that failed.
#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      std::cerr << __FILE__ << ':' << __LINE__ << ": " #condition << std::endl; \
      return __LINE__ % 250 + 1;                                                \
    }                                                                           \
  } while (false)

bool full(const failure& f) {
  return f.code == std::errc::no_space_on_device || f.code == std::errc::file_too_large;
}

}  // namespace

TEST_CASE("creation on a full disk fails, says the sizes and leaves nothing behind") {
  temporary_folder folder;
  CHECK(in_small_space(folder.path(), [&](bool mounted) {
          auto node = open_local_node(folder.path());
          const failure e = create(*node, make_shape(1, {0, 1, 65536}, 64 << 20));
          EXPECT(full(e));
          EXPECT(e.what.find(folder.path().string()) != std::string::npos);
          EXPECT(e.what.find("plate/a") != std::string::npos);
          if (mounted) {
            EXPECT(e.what.find("67244032") != std::string::npos);  // data, sums, header
            EXPECT(e.what.find("available") != std::string::npos);
          }
          EXPECT(list(*node).second.empty());
          // The space is free again.
          EXPECT(!create(*node, make_shape(2, {0, 1, 65536}, 2 << 20)));
          return 0;
        }) == 0);
}

TEST_CASE("growing on a full disk fails and leaves the file as it was") {
  temporary_folder folder;
  CHECK(in_small_space(folder.path(), [&](bool) {
          auto node = open_local_node(folder.path());
          const shape_ptr small = make_shape(1, {0, 1, 65536}, 1 << 20);
          EXPECT(!create(*node, small));
          bytes b(1 << 20, std::byte{7});
          EXPECT(!write(*node, small, 0, request::contiguous(0, 1 << 20), b.data()));
          EXPECT(full(resize(*node, make_shape(1, {0, 1, 65536}, 64 << 20), 0, 1 << 20)));
          bytes c(1 << 20);
          EXPECT(!read(*node, small, 0, request::contiguous(0, 1 << 20), c.data()));
          EXPECT(b == c);
          EXPECT(!resize(*node, make_shape(1, {0, 1, 65536}, 2 << 20), 0, 1 << 20));
          return 0;
        }) == 0);
}

TEST_CASE("a disk that fills up amid a write leaves every chunk readable, old or new") {
  temporary_folder folder;
  CHECK(in_small_space(folder.path(), [&](bool) {
          auto node = open_local_node(folder.path());
          const shape_ptr f = make_shape(1, {0, 1, 65536}, 16 << 20, true);
          EXPECT(!create(*node, f));
          aligned_bytes m(16 << 20);
          std::fill_n(m.data(), m.size(), std::byte{1});
          EXPECT(!write(*node, f, 0, request::contiguous(0, 1 << 20), m.data()));
          std::fill_n(m.data(), m.size(), std::byte{2});
          const failure e = write(*node, f, 0, request::contiguous(0, 16 << 20), m.data());
          EXPECT(full(e));
          EXPECT(e.what.find("write of 'plate/a'") != std::string::npos);
          // Unaligned, through the bounce buffer.
          EXPECT(full(write(*node, f, 0, request::contiguous((12 << 20) + 5, 3 << 20), m.data())));
          const auto [failed, report] = verify(*node, f);
          EXPECT(!failed);
          EXPECT(report.corrupt == 0);
          EXPECT(report.torn == 0);
          EXPECT(!read(*node, f, 0, request::contiguous(0, 16 << 20), m.data()));
          for (std::uint64_t at = 0; at < m.size(); at += 4096) {
            EXPECT(std::all_of(&m[at], &m[at] + 4096, [&](std::byte b) { return b == m[at]; }));
            EXPECT(m[at] == std::byte{2} || m[at] == (at < 1 << 20 ? std::byte{1} : std::byte{0}));
          }
          return 0;
        }) == 0);
}
