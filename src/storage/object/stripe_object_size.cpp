// How long a stripe object is: growth and cuts, none of them durable before a sync, and what is left of them after a
// loss of power.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "storage/object/stripe_object.hpp"

namespace ooc::storage {
namespace {

int shorten(int fd, std::uint64_t bytes) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return errno;
  if (static_cast<std::uint64_t>(st.st_size) <= bytes) return 0;
  return ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

}  // namespace

int flush_folder(const std::filesystem::path& path) {
  const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd && ::fsync(fd.get()) == 0 ? 0 : errno;
}

int extend_file(int fd, std::uint64_t from, std::uint64_t bytes, bool reserved) {
  if (bytes <= from) return 0;
  if (reserved) {
    int e = 0;
    do {
      e = ::fallocate(fd, 0, static_cast<off_t>(from), static_cast<off_t>(bytes - from)) == 0 ? 0 : errno;
    } while (e == EINTR);
    if (e != EOPNOTSUPP) return e;
    e = ::posix_fallocate(fd, static_cast<off_t>(from), static_cast<off_t>(bytes - from));
    if (e != EOPNOTSUPP && e != EINVAL) return e;
  }
  return ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

int stripe_object::mark_resized(checksum_header& h, std::uint64_t chunks) {
  lock_guard lock(header_);
  if (const int e = read_header(h)) return e;
  const bool before = (h.required & checksum_header::size_unsynced) != 0;
  const std::uint64_t kept = std::min(before ? h.synced_chunks : h.chunks, chunks);
  if (before && kept == h.synced_chunks && h.says_unsynced(this_boot())) return 0;
  h.required |= checksum_header::size_unsynced;
  h.synced_chunks = kept;
  return write_mark(h);
}

int stripe_object::set_chunks(std::uint64_t chunks, std::uint64_t cuts) {
  return change_header(
      [&](checksum_header& h) {
        h.chunks = chunks;
        if (cuts != 0) {
          h.cuts = cuts;
          h.writes_since = 0;
        }
      },
      false);
}

int stripe_object::cut_off(std::uint64_t chunks) const {
  const int error = shorten(sums_.fd(), checksum_file::bytes_for(chunks));
  return error != 0 ? error : shorten(data(), chunks * chunk_size);
}

int stripe_object::lengthen(std::uint64_t have, std::uint64_t chunks, bool reserved) const {
  const std::uint64_t region_end = checksum_file::regions_for(have) * checksum_file::region_chunks;
  int error = extend_file(sums_.fd(), checksum_file::bytes_for(have), checksum_file::bytes_for(chunks), reserved);
  if (error == 0) error = sums_.mark_untouched(checksum_file::regions_for(have), checksum_file::regions_for(chunks));
  if (error == 0 && have < region_end) error = sums_.clear(have, std::min(region_end, chunks));
  if (error == 0 && sides_) error = sides_.file().lengthen(chunks, reserved);
  if (error == 0) error = extend_file(data(), have * chunk_size, chunks * chunk_size, reserved);
  return error;
}

// Mends changes of the size that the end of another boot has cut short: header and files were stored or not, each by
// itself.  The files get the size that the header says.
int stripe_object::recover_size(int data_file, const checksum_header& h) const {
  if (const int e = cut_off(h.chunks)) return e;
  struct stat data_now {
  }, sums_now{};
  if (::fstat(data_file, &data_now) != 0 || ::fstat(sums_.fd(), &sums_now) != 0) return errno;
  const std::uint64_t there = static_cast<std::uint64_t>(data_now.st_size) / chunk_size;
  const auto sum_bytes = static_cast<std::uint64_t>(sums_now.st_size);
  // Chunks that were synced are there, or somebody has damaged the files.
  int error = 0;
  if (there >= h.synced_chunks) error = extend_file(data_file, there * chunk_size, h.chunks * chunk_size, false);
  if (error == 0 && sum_bytes >= checksum_file::bytes_for(h.synced_chunks))
    error = extend_file(sums_.fd(), sum_bytes, checksum_file::bytes_for(h.chunks), false);
  return error == 0 ? sums_.mend_new(h.synced_chunks, h.chunks, h.syncs) : error;
}

// The metadata know a size that was lost here with the power, before it was synced.
int stripe_object::restore_size(std::uint64_t chunks) {
  range_locks::hold hold;
  if (const int e = ranges_.lock_object(hold)) return e;
  checksum_header h;
  if (const int e = read_header(h)) return e;
  if (h.chunks >= chunks) return 0;  // another process did it
  int error = mark_resized(h, h.chunks);
  if (error == 0) error = cut_off(h.chunks);
  if (error == 0) error = lengthen(h.chunks, chunks, false);
  return error == 0 ? set_chunks(chunks) : error;
}

}  // namespace ooc::storage
