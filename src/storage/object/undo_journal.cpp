#include "storage/object/undo_journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "storage/base/file_access.hpp"
#include "storage/base/whole_transfer.hpp"
#include "storage/object/checksum_file.hpp"

namespace ooc::storage {
namespace {

int file_bytes(int fd, std::uint64_t& bytes) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return errno;
  bytes = static_cast<std::uint64_t>(st.st_size);
  return 0;
}

// Held while records are appended, so that two processes do not take the same place.
int lock_file(int fd, short type) {
  struct flock l {};
  l.l_type = type;
  l.l_whence = SEEK_SET;
  while (::fcntl(fd, F_OFD_SETLKW, &l) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

}  // namespace

int undo_journal::open(bool create) {
  if (fd_) return 0;
  file_descriptor fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd && errno == ENOENT && create) {
    fd = file_descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) return errno;
    struct stat like {};
    if (like_ >= 0 && ::fstat(like_, &like) == 0)
      if (const int e = set_access(fd.get(), like.st_mode & 0777, like.st_uid, like.st_gid)) return e;
    file_descriptor folder(::open(path_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder || ::fsync(folder.get()) != 0) return errno;
  }
  if (!fd) return errno;
  fd_ = std::move(fd);
  return 0;
}

int undo_journal::log(std::uint64_t syncs, std::span<const undo_image> images) {
  lock_guard lock(mutex_);
  if (logged_for_ != syncs) {
    logged_.clear();
    logged_for_ = syncs;
  }
  std::vector<undo_image> fresh;
  for (const undo_image& i : images)
    if (!logged_.contains(i.chunk)) fresh.push_back(i);
  if (fresh.empty()) return 0;

  if (const int e = open(true)) return e;
  if (const int e = lock_file(fd_.get(), F_WRLCK)) return e;
  std::uint64_t end = 0;
  int error = file_bytes(fd_.get(), end);
  // A record that was cut short (a full disk, a crash) is written over.
  end -= end % sizeof(undo_record);
  const auto r = std::make_unique<undo_record>();
  for (const undo_image& i : fresh) {
    if (error != 0) break;
    *r = {};
    r->chunk = i.chunk;
    r->syncs = syncs;
    r->sum = i.sum;
    if (i.sum != 0) std::memcpy(r->image, i.bytes, chunk_size);
    r->crc = crc32c(r.get(), sizeof *r) ^ seed_;
    error = write_whole(fd_.get(), r.get(), sizeof *r, end);
    end += sizeof *r;
  }
  lock_file(fd_.get(), F_UNLCK);
  if (error == 0 && ::fdatasync(fd_.get()) != 0) error = errno;
  if (error != 0) return error;
  for (const undo_image& i : fresh) logged_.insert(i.chunk);
  return 0;
}

int undo_journal::replay(std::uint64_t syncs, const std::function<int(const undo_record&)>& restore) {
  lock_guard lock(mutex_);
  if (const int e = open(false)) return e == ENOENT ? 0 : e;
  return scan(fd_.get(), syncs, restore);
}

int undo_journal::waits(std::uint64_t syncs, bool& yes) const {
  yes = false;
  const file_descriptor fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno == ENOENT ? 0 : errno;
  return scan(fd.get(), syncs, [&](const undo_record&) {
    yes = true;
    return 0;
  });
}

int undo_journal::scan(int fd, std::uint64_t syncs, const std::function<int(const undo_record&)>& found) const {
  std::uint64_t end = 0;
  if (const int e = file_bytes(fd, end)) return e;
  const auto r = std::make_unique<undo_record>();
  std::unordered_set<std::uint64_t> done;
  for (std::uint64_t at = 0; at + sizeof *r <= end; at += sizeof *r) {
    if (const int e = read_whole(fd, r.get(), sizeof *r, at)) return e;
    const std::uint32_t crc = std::exchange(r->crc, 0);
    if (r->magic != undo_record::expected_magic || (crc32c(r.get(), sizeof *r) ^ seed_) != crc) continue;
    if (r->syncs != syncs || !done.insert(r->chunk).second) continue;
    if (const int e = found(*r)) return e;
  }
  return 0;
}

void undo_journal::forget() {
  lock_guard lock(mutex_);
  logged_.clear();
  if (open(false) == 0 && ::ftruncate(fd_.get(), 0) != 0) {
    // Stale records stay; replay() passes over them.
  }
}

}  // namespace ooc::storage
