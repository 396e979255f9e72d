#include "storage/namespace/file_locks.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/file_access.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/namespace/metadata_schema.hpp"

namespace ooc::storage {

namespace {

// Byte `id` stands for the file's size, byte `writers + id` for its writers.
constexpr std::int64_t writers = std::int64_t{1} << 62;

struct flock one_byte(std::int64_t at, short type) {
  struct flock byte = {};
  byte.l_type = type;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(at);
  byte.l_len = 1;
  return byte;
}

/// A lock belongs to its descriptor (not to the process, as with plain fcntl locks).  A child that is forked meanwhile
/// has the descriptor too: there closing it is all, and here not enough.
struct held_byte {
  held_byte(file_descriptor f, std::int64_t b) : fd(std::move(f)), at(b) {}
  ~held_byte() {
    if (::getpid() != owner) return;
    struct flock byte = one_byte(at, F_UNLCK);
    (void)::fcntl(fd.get(), F_OFD_SETLK, &byte);
  }
  held_byte(const held_byte&) = delete;
  held_byte& operator=(const held_byte&) = delete;

  const file_descriptor fd;
  const std::int64_t at;
  const pid_t owner = ::getpid();
};

file_descriptor open_locks(const std::filesystem::path& locks) {
  file_descriptor fd(::open(locks.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd && errno == ENOENT) {
    // Whoever may write the database must be able to lock, whatever the umask of who came first.
    struct stat database {};
    const bool known = ::stat((locks.parent_path() / metadata_file_name).c_str(), &database) == 0;
    fd = file_descriptor(::open(locks.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd && known) (void)set_access(fd.get(), database.st_mode & 0666, keep_id, database.st_gid);
  }
  if (!fd) throw io_error({errno, std::generic_category()}, "'" + locks.string() + "' cannot be opened");
  return fd;
}

// False where somebody else's lock is in the way.
bool try_lock(const file_descriptor& fd, const std::filesystem::path& locks, std::int64_t at, short type) {
  struct flock byte = one_byte(at, type);
  if (::fcntl(fd.get(), F_OFD_SETLK, &byte) == 0) return true;
  if (errno != EAGAIN && errno != EACCES && errno != EINTR)
    throw io_error({errno, std::generic_category()}, "'" + locks.string() + "' cannot be locked");
  return false;
}

}  // namespace

file_descriptor locks_of_one_process() {
  file_descriptor fd(::memfd_create("oocarray locks", MFD_CLOEXEC));
  if (!fd) throw io_error({errno, std::generic_category()}, "memory for the locks of files cannot be had");
  return fd;
}

std::shared_ptr<void> lock_size(const std::filesystem::path& locks, file_id id) {
  file_descriptor fd = open_locks(locks);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (auto pause = std::chrono::microseconds(200); !try_lock(fd, locks, static_cast<std::int64_t>(id), F_WRLCK);
       pause = std::min(2 * pause, std::chrono::microseconds(50'000))) {
    if (std::chrono::steady_clock::now() > deadline)
      throw io_error::in_full({ETIMEDOUT, std::generic_category()},
                              "file number " + std::to_string(id) +
                                  ": another process has been changing its size for 60 s: look for one "
                                  "that is stopped");
    std::this_thread::sleep_for(pause);
  }
  return std::make_shared<held_byte>(std::move(fd), static_cast<std::int64_t>(id));
}

std::shared_ptr<void> claim_writer(const std::filesystem::path& locks, file_id id, bool together) {
  file_descriptor fd = open_locks(locks);
  const std::int64_t at = writers + static_cast<std::int64_t>(id);
  if (!try_lock(fd, locks, at, together ? F_RDLCK : F_WRLCK)) return nullptr;
  return std::make_shared<held_byte>(std::move(fd), at);
}

}  // namespace ooc::storage
