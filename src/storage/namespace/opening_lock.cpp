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

namespace ooc::storage {

using namespace std::chrono_literals;

opening_lock::opening_lock(const std::filesystem::path& node_file, opening how)
    : fd_(::open(node_file.c_str(), O_RDONLY | O_CLOEXEC)) {
  const auto fail = [&](int error, const std::string& what) {
    throw io_error({error, std::generic_category()}, "'" + node_file.string() + "' " + what);
  };
  if (!fd_) fail(errno, "cannot be opened");
  const int kind = (how == opening::alone ? LOCK_EX : LOCK_SH) | LOCK_NB;
  const auto end = std::chrono::steady_clock::now() + 60s;
  for (std::chrono::microseconds pause = 100us; ::flock(fd_.get(), kind) != 0;
       pause = std::min<std::chrono::microseconds>(2 * pause, 20ms)) {
    if (errno != EWOULDBLOCK && errno != EINTR) fail(errno, "cannot be locked");
    if (std::chrono::steady_clock::now() > end)
      fail(ETIMEDOUT, "has been locked for 60 s by another process that opens the store: look for one "
                      "that is stopped");
    std::this_thread::sleep_for(pause);
  }
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
