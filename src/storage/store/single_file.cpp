#include "storage/store/single_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "oocarray/error.hpp"

namespace ooc::storage {
namespace {

/// The lock of an open file of the whole of it; an errno.
int set_file_lock(int fd, short type) {
  struct flock l {};
  l.l_type = type;
  l.l_whence = SEEK_SET;
  int e = 0;
  do e = ::fcntl(fd, F_OFD_SETLK, &l) == 0 ? 0 : errno;
  while (e == EINTR);
  return e;
}

struct held_file_lock {
  explicit held_file_lock(std::shared_ptr<const plain_file> f) : file(std::move(f)) {}
  ~held_file_lock() {
    // A child that was forked meanwhile shares the lock: it is not the child's to end.
    if (::getpid() == owner) static_cast<void>(set_file_lock(file->file.get(), F_UNLCK));
  }
  held_file_lock(const held_file_lock&) = delete;
  held_file_lock& operator=(const held_file_lock&) = delete;

  const std::shared_ptr<const plain_file> file;
  const pid_t owner = ::getpid();
};

}  // namespace

void refuse_in_place(const entry& e, const char* what) {
  throw usage_error(errc::invalid_request,
                    "'" + e.path + "' is a file in place, of no store, and cannot " + what);
}

entry single_file::lookup(std::string_view path) {
  if (path == entry_.path) return entry_;
  throw usage_error(std::make_error_code(std::errc::no_such_file_or_directory),
                    "'" + std::string(path) + "'");
}

entry single_file::open(std::string_view path, bool write, bool) {
  entry e = lookup(path);
  if (write && !file_->writable)
    throw usage_error(std::make_error_code(std::errc::permission_denied),
                      "'" + entry_.path + "' was opened for reading");
  return e;
}

std::shared_ptr<void> single_file::lock(short type, const char* doing, claim_holder* in_the_way) {
  const int e = set_file_lock(file_->file.get(), type);
  if (e == EAGAIN || e == EACCES) {
    if (in_the_way) *in_the_way = {.name = {}, .ends = {}, .doing = doing};
    return nullptr;
  }
  // Else it is locked, or the file system has no locks, and nobody is kept apart.
  return std::make_shared<held_file_lock>(file_);
}

std::shared_ptr<void> single_file::claim_writer(file_id, bool together, claim_holder* in_the_way) {
  return lock(together ? F_RDLCK : F_WRLCK,
              together ? "is open for writing in another process" : "is open in another process",
              in_the_way);
}

std::shared_ptr<void> single_file::claim_reader(file_id, claim_holder* in_the_way) {
  return lock(F_RDLCK, "is open for writing in another process", in_the_way);
}

}  // namespace ooc::storage
