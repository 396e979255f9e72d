#include "storage/namespace/file_locks.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "oocarray/error.hpp"
#include "storage/base/file_access.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/namespace/metadata_schema.hpp"

namespace ooc::storage {

namespace {

// Byte `id` stands for the file's size, byte `writers + id` for its writers.
constexpr std::int64_t writers = std::int64_t{1} << 62;

std::shared_ptr<file_descriptor> open_locks(const std::filesystem::path& locks) {
  // A lock belongs to this descriptor alone (not to the process, as with plain fcntl locks).
  auto guard = std::make_shared<file_descriptor>(::open(locks.c_str(), O_RDWR | O_CLOEXEC));
  if (!*guard && errno == ENOENT) {
    // Whoever may write the database must be able to lock, whatever the umask of who came first.
    struct stat database {};
    const bool known = ::stat((locks.parent_path() / metadata_file_name).c_str(), &database) == 0;
    *guard = file_descriptor(::open(locks.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (*guard && known)
      (void)set_access(guard->get(), database.st_mode & 0666, keep_id, database.st_gid);
  }
  if (!*guard)
    throw io_error({errno, std::generic_category()}, "'" + locks.string() + "' cannot be opened");
  return guard;
}

// False where somebody else's lock is in the way.
bool try_lock(const file_descriptor& fd, const std::filesystem::path& locks, std::int64_t at,
              short type) {
  struct flock byte = {};
  byte.l_type = type;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(at);
  byte.l_len = 1;
  if (::fcntl(fd.get(), F_OFD_SETLK, &byte) == 0) return true;
  if (errno != EAGAIN && errno != EACCES && errno != EINTR)
    throw io_error({errno, std::generic_category()}, "'" + locks.string() + "' cannot be locked");
  return false;
}

}  // namespace

std::shared_ptr<void> lock_size(const std::filesystem::path& locks, file_id id) {
  auto guard = open_locks(locks);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (auto pause = std::chrono::microseconds(200);
       !try_lock(*guard, locks, static_cast<std::int64_t>(id), F_WRLCK);
       pause = std::min(2 * pause, std::chrono::microseconds(50'000))) {
    if (std::chrono::steady_clock::now() > deadline)
      throw io_error({ETIMEDOUT, std::generic_category()},
                     "file number " + std::to_string(id) +
                         ": another process has been changing its size for 60 s: look for one "
                         "that is stopped");
    std::this_thread::sleep_for(pause);
  }
  return guard;
}

std::shared_ptr<void> claim_writer(const std::filesystem::path& locks, file_id id, bool together) {
  auto guard = open_locks(locks);
  if (!try_lock(*guard, locks, writers + static_cast<std::int64_t>(id),
                together ? F_RDLCK : F_WRLCK))
    return nullptr;
  return guard;
}

}  // namespace ooc::storage
