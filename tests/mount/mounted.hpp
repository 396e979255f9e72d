// A store that is mounted for the time of a test.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "support/run_command.hpp"
#include "support/servers.hpp"
#include "support/soon.hpp"
#include "support/temporary_folder.hpp"

namespace ooc::testing {

/// False, and says so, where nothing can be mounted.
inline bool can_mount() {
  const int fd = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fd < 0) std::cout << "SKIPPED: /dev/fuse cannot be opened here, so nothing is mounted" << std::endl;
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

/// One mount: `ooc mount -f` as a child process.
class mount_process {
 public:
  mount_process(const std::string& url, fs::path folder, const std::string& options = "",
                const std::vector<std::string>& environment = {})
      : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    struct stat before {};
    REQUIRE(::stat(folder_.c_str(), &before) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      for (const std::string& e : environment) ::putenv(const_cast<char*>(e.c_str()));
      ::execl(OOC_COMMAND, "ooc", "mount", "-f", "-o", options.c_str(), url.c_str(), folder_.c_str(), nullptr);
      ::_exit(127);
    }
    REQUIRE(soon([&] {
      struct stat now {};
      return ::stat(folder_.c_str(), &now) == 0 && now.st_dev != before.st_dev;
    }));
  }
  ~mount_process() {
    if (pid_ < 0) return;
    run_command(OOC_COMMAND " umount -l " + folder_.string(), folder_.string());
    wait();
  }
  mount_process(const mount_process&) = delete;
  mount_process& operator=(const mount_process&) = delete;

  const fs::path& folder() const { return folder_; }
  fs::path operator/(const std::string& name) const { return folder_ / name; }

  /// As a crash would end it.
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
    run_command(OOC_COMMAND " umount -l " + folder_.string(), folder_.string());
  }
  /// Unmounts; its exit status.
  int stop(const std::string& options = "") {
    const auto o = run_command(OOC_COMMAND " umount " + options + " " + folder_.string(), folder_.string());
    INFO(o.err);
    CHECK(o.status == 0);
    return wait();
  }
  int signal(int number) {
    ::kill(pid_, number);
    return wait();
  }

 private:
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  fs::path folder_;
  pid_t pid_ = -1;
};

/// A store, embedded or served, without a mount.
struct mountable_store {
  explicit mountable_store(bool served, const std::string& url_options = "") {
    if (served) {
      running = std::make_unique<servers>(folder / "servers", 2);
      url = running->url() + url_options;
    } else {
      url = "local:" + (folder / "n0").string() + "," + (folder / "n1").string();
      (void)ooc::store::open(url);
    }
  }
  std::shared_ptr<storage::store_core> core() const { return ooc::store::open(url).core(); }

  temporary_folder folder;
  std::unique_ptr<servers> running;
  std::string url;
};

/// An embedded store, mounted.
struct mounted_store : mountable_store {
  explicit mounted_store(const std::vector<std::string>& environment = {})
      : mountable_store(false), mount(url, folder / "mount", "", environment) {}
  mount_process mount;
};

/// An open file descriptor.
class descriptor {
 public:
  descriptor(const fs::path& path, int flags, mode_t mode = 0644) : fd_(::open(path.c_str(), flags, mode)) {
    INFO(path << ": " << std::strerror(errno));
    REQUIRE(fd_ >= 0);
  }
  ~descriptor() { close(); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  operator int() const { return fd_; }
  int close() {
    const int r = fd_ < 0 ? 0 : ::close(fd_);
    fd_ = -1;
    return r;
  }

 private:
  int fd_;
};

inline int error_of(long result) { return result < 0 ? errno : 0; }

/// fstat() that asks the mount, whatever the kernel knows.
inline struct statx asked(int fd) {
  struct statx st {};
  REQUIRE(::statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st) == 0);
  return st;
}

/// Bytes that differ from place to place.
inline std::string pattern(std::size_t n) {
  std::string s(n, '\0');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(i * 2654435761u >> 13);
  return s;
}

}  // namespace ooc::testing
