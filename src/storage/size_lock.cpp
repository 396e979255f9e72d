#include "storage/size_lock.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <string>
#include <thread>

#include "oocarray/error.hpp"
#include "storage/file_descriptor.hpp"

namespace ooc::storage {

std::shared_ptr<void> lock_size(const std::filesystem::path& locks, file_id id) {
  // One byte of the lock file stands for one file.  The lock belongs to this descriptor alone (not
  // to the process, as with plain fcntl locks) and goes when it is closed.
  auto guard =
      std::make_shared<file_descriptor>(::open(locks.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!*guard)
    throw io_error({errno, std::generic_category()}, "'" + locks.string() + "' cannot be opened");
  struct flock byte = {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(id & std::numeric_limits<std::int64_t>::max());
  byte.l_len = 1;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (auto pause = std::chrono::microseconds(200); ::fcntl(guard->get(), F_OFD_SETLK, &byte) != 0;
       pause = std::min(2 * pause, std::chrono::microseconds(50'000))) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
      throw io_error({errno, std::generic_category()}, "'" + locks.string() + "' cannot be locked");
    if (std::chrono::steady_clock::now() > deadline)
      throw io_error({ETIMEDOUT, std::generic_category()},
                     "file number " + std::to_string(id) +
                         ": another process has been changing its size for 60 s: look for one "
                         "that is stopped");
    std::this_thread::sleep_for(pause);
  }
  return guard;
}

}  // namespace ooc::storage
