// Another user of this host, or one who sees a folder on a read-only mount: a process that is forked before the
// test opens anything (a connection to the database must not be used in a child), and told step by step
// what to do.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"

namespace ooc::testing {

inline constexpr uid_t stranger = 65534;

/// False, and a line that says so, where the tests do not run as root.
inline bool can_be_others() {
  if (::geteuid() == 0) return true;
  WARN("not run: becoming another user, or mounting, needs root");
  return false;
}

class other_user {
 public:
  /// Returns what the step has found; by convention "" where all is well.
  using step = std::function<std::string()>;

  /// A process with these ids, which then does `steps` when it is told to.
  other_user(uid_t uid, gid_t gid, std::vector<gid_t> groups, std::vector<step> steps)
      : other_user(
            [=] {
              return ::setgroups(groups.size(), groups.data()) == 0 && ::setresgid(gid, gid, gid) == 0 &&
                     ::setresuid(uid, uid, uid) == 0;
            },
            std::move(steps)) {}

  /// A process to which `folder` is mounted read-only.
  struct on_read_only_mount {
    std::filesystem::path folder;
  };
  other_user(const on_read_only_mount& where, std::vector<step> steps)
      : other_user(
            [folder = where.folder] {
              return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     ::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
                     ::mount(nullptr, folder.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
            },
            std::move(steps)) {}

  other_user(const other_user&) = delete;
  ~other_user() {
    // Processes that were forked later have these pipes too, so closing them tells it nothing.
    if (::write(ask_, &end, 1) != 1) ::kill(child_, SIGKILL);
    ::close(ask_);
    ::close(answer_);
    int status = 0;
    ::waitpid(child_, &status, 0);
  }

  /// The result of step number `n`, or what it threw.
  std::string run(unsigned char n) {
    if (::write(ask_, &n, 1) != 1) return "the process has ended";
    std::uint32_t length = 0;
    if (::read(answer_, &length, sizeof length) != sizeof length) return "the process has died";
    std::string text(length, '\0');
    for (std::size_t at = 0; at < length;) {
      const ssize_t got = ::read(answer_, text.data() + at, length - at);
      if (got <= 0) return "the process has died";
      at += static_cast<std::size_t>(got);
    }
    return text;
  }

 private:
  static constexpr unsigned char end = 255;

  other_user(const std::function<bool()>& become, std::vector<step> steps) {
    int ask[2], answer[2];
    if (::pipe2(ask, O_CLOEXEC) != 0 || ::pipe2(answer, O_CLOEXEC) != 0) throw std::exception();
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ask[1]);
      ::close(answer[0]);
      const bool ready = become();
      unsigned char n = 0;
      while (::read(ask[0], &n, 1) == 1 && n != end) {
        std::string text = ready ? "" : "the process cannot become what it should be";
        try {
          if (ready) text = steps[n]();
        } catch (const std::exception& e) {
          text = std::string("thrown: ") + e.what();
        }
        const auto length = static_cast<std::uint32_t>(text.size());
        if (::write(answer[1], &length, sizeof length) != sizeof length ||
            ::write(answer[1], text.data(), length) != static_cast<ssize_t>(length))
          break;
      }
      std::cout.flush();
      ::_exit(0);
    }
    ::close(ask[0]);
    ::close(answer[1]);
    ask_ = ask[1];
    answer_ = answer[0];
  }

  pid_t child_ = -1;
  int ask_ = -1, answer_ = -1;
};

/// The errno with which a file cannot be opened for reading; 0: it can.
inline int raw_read_error(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

}  // namespace ooc::testing
