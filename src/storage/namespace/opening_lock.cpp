#include "storage/namespace/opening_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/notice.hpp"

namespace ooc::storage {

using namespace std::chrono_literals;

int lock_within(int fd, int kind, std::chrono::milliseconds patience, const std::string& whom) {
  const auto start = std::chrono::steady_clock::now(), end = start + patience;
  bool said = false;
  for (std::chrono::microseconds pause = 100us; ::flock(fd, kind | LOCK_NB) != 0;
       pause = std::min<std::chrono::microseconds>(2 * pause, 20ms)) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno;
    const auto now = std::chrono::steady_clock::now();
    if (!said && now - start >= notice_after) {
      said = true;
      notice("waiting for " + whom + ", " + until_text(end, patience));
    }
    if (now > end) return ETIMEDOUT;
    std::this_thread::sleep_for(pause);
  }
  return 0;
}

opening_lock::opening_lock(const std::filesystem::path& node_file, opening how) {
  // A network file system wants a file that is locked alone to be open for writing; others do not.
  if (how == opening::alone) fd_ = file_descriptor(::open(node_file.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd_) fd_ = file_descriptor(::open(node_file.c_str(), O_RDONLY | O_CLOEXEC));
  const auto fail = [&](int error, const std::string& what) {
    throw io_error({error, std::generic_category()}, "'" + node_file.string() + "' " + what);
  };
  if (!fd_) fail(errno, "cannot be opened");
  const int error = lock_within(fd_.get(), how == opening::alone ? LOCK_EX : LOCK_SH, 60s,
                                "another process that opens the store of '" + node_file.string() + "' or reads it");
  if (error == ETIMEDOUT)
    fail(error,
         "has been locked for 60 s by another process that opens the store or reads it: look for one that is "
         "stopped");
  if (error != 0) fail(error, "cannot be locked");
}

opening_lock& opening_lock::operator=(opening_lock&& o) noexcept {
  std::swap(fd_, o.fd_);
  return *this;
}

// A child that was forked meanwhile has the descriptor too, so closing would not be enough.
opening_lock::~opening_lock() {
  if (fd_) ::flock(fd_.get(), LOCK_UN);
}

}  // namespace ooc::storage
