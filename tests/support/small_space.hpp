// A folder with little space, for tests of full disks.
//
// A tmpfs of 4 MiB in a mount namespace of a child process, in a user namespace too where the tests
// do not run as root.  Where the system allows neither, a limit on file sizes in the child (EFBIG
// in place of ENOSPC); nothing is skipped.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <iostream>
#include <string>

#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::testing {

inline constexpr std::uint64_t small_space = 4 << 20;  // bytes

/// What `body`, which opens what it needs itself, returned in a child; 99 where it threw, 128 and the signal where one
/// ended it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Runs `body` in a child whose `folder` has little space; `mounted` says by which means.  Returns
/// what `body` returned.
inline int in_small_space(const std::filesystem::path& folder, const std::function<int(bool mounted)>& body) {
  return in_child([&] {
    const bool mounted = (::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
                         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=4m") == 0;
    if (!mounted) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{small_space, small_space};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(99);
    }
    return body(mounted);
  });
}

/// Takes all the space that is left in the folder.
inline void fill_up(const std::filesystem::path& folder) {
  const storage::file_descriptor fd(::open((folder / "ballast").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  const std::string some(4096, 'x');
  while (::write(fd.get(), some.data(), some.size()) > 0) {
  }
}

// In the child, in place of Catch's macros: the line of the first expectation that failed.
#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      std::cerr << __FILE__ << ':' << __LINE__ << ": " #condition << std::endl; \
      return __LINE__ % 250 + 1;                                                \
    }                                                                           \
  } while (false)

inline bool is_full(const failure& f) {
  return f.code == std::errc::no_space_on_device || f.code == std::errc::file_too_large;
}

}  // namespace ooc::testing
