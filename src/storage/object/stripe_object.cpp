#include "storage/object/stripe_object.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "storage/base/whole_transfer.hpp"

namespace ooc::storage {
namespace {

int open_data(const std::filesystem::path& path, int flags, file_descriptor& fd) {
  fd = file_descriptor(::open(path.c_str(), O_CLOEXEC | flags));
  return fd ? 0 : errno;
}

// A process that may not write may still read.
bool is_forbidden(int error) { return error == EACCES || error == EROFS || error == EPERM; }

int flush_file(int fd) { return ::fdatasync(fd) == 0 ? 0 : errno; }

int make_name_durable(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  const int error = flush_folder(folder);
  return error != 0 ? error : flush_folder(folder.parent_path());
}

}  // namespace

stripe_object::stripe_object(const node_folder& folder, const object_identity& who, file_descriptor direct,
                             file_descriptor buffered, checksum_file sums, int read_only)
    : identity_(who),
      data_path_(folder.data(who.id)),
      read_only_(read_only),
      direct_(std::move(direct)),
      buffered_(std::move(buffered)),
      data_(direct_ ? direct_.get() : buffered_.get()),
      sums_(std::move(sums)),
      ranges_(sums_.fd(), read_only != 0),
      undo_(folder.undo(who.id), sums_.seeds().of_undo(), sums_.fd()) {}

int stripe_object::open(const node_folder& folder, const object_identity& who, bool direct_io, std::uint64_t chunks,
                        std::shared_ptr<stripe_object>& out, std::string& why) {
  const file_id id = who.id;
  file_descriptor sums, direct, buffered;
  const auto open_files = [&](int access) {
    int e = open_data(folder.sums(id), access, sums);
    if (e != 0) return e;
    e = direct_io ? open_data(folder.data(id), access | O_DIRECT, direct) : EINVAL;
    return e == EINVAL ? open_data(folder.data(id), access, buffered) : e;
  };
  int error = open_files(O_RDWR);
  int read_only = 0;
  if (is_forbidden(error)) {
    read_only = error;
    error = open_files(O_RDONLY);
    if (is_forbidden(error)) why = "its files may not be read by user " + std::to_string(::geteuid());
  }
  if (error != 0) return error;

  const object_seeds seeds(who);
  std::shared_ptr<stripe_object> s(new stripe_object(folder, who, std::move(direct), std::move(buffered),
                                                     checksum_file(std::move(sums), seeds), read_only));
  checksum_header h;
  error = s->read_header(h);
  if (error == EINVAL || error == EBADMSG) {
    why = "the header of its checksums is damaged";
    return s->sums_.has_header() ? EUCLEAN : EBADMSG;
  }
  if (error != 0) return error;
  why = difference(who, h.identity());
  constexpr std::uint32_t known = checksum_header::size_unsynced | checksum_header::two_sides;
  if (const auto unknown = h.required & ~known; why.empty() && unknown != 0)
    why = "it uses a feature that this release does not know (number " + std::to_string(unknown) +
          "); use a later release";
  if (why.empty() && (h.required & checksum_header::two_sides) != 0) {
    file_descriptor sides;
    error = open_data(folder.sides(id), read_only != 0 ? O_RDONLY : O_RDWR, sides);
    if (error == ENOENT)
      why = "its file of sides ('.side') is missing";
    else if (error != 0)
      return error;
    s->sides_.use(side_file(std::move(sides), seeds));
  }
  if (!why.empty()) return EUCLEAN;
  if (h.unsynced != boot_id{} && h.unsynced != this_boot()) {
    error = read_only != 0 ? s->require_nothing_waits(why) : s->recover_from_power_loss();
    if (error != 0) return error;
    if (const int e = s->read_header(h)) return e;
  }
  if (read_only == 0 && (h.flags & checksum_header::power_lost) != 0 && h.chunks < chunks)
    if (const int e = s->restore_size(chunks)) return e;
  s->generation_ = h.generation;
  if (s->sides_ && object_sides::is_behind(h)) s->sides_.expect_roll_back();
  out = std::move(s);
  return 0;
}

int stripe_object::give_up_direct() {
  lock_guard lock(header_);
  if (!direct()) return 0;
  if (const int e = open_data(data_path_, read_only_ != 0 ? O_RDONLY : O_RDWR, buffered_)) return e;
  // The direct descriptor stays open: other threads may be using it.
  data_.store(buffered_.get(), std::memory_order_release);
  return 0;
}

int stripe_object::read_header(checksum_header& h) const {
  // Another process may be writing its mark at this moment: look again before calling it damaged.
  int error = EINVAL;
  for (int attempt = 0; error == EINVAL && attempt < 100; ++attempt) {
    if (attempt > 0) std::this_thread::yield();
    error = sums_.read_header(h);
  }
  // Another process has removed it.
  return error == EINVAL && !sums_.has_header() ? EBADMSG : error;
}

int stripe_object::mark_unsynced(checksum_header& h, std::uint64_t commit) {
  const auto said = [&] { return h.says_unsynced(this_boot()) && h.commit >= commit; };
  if (const int e = read_header(h)) return e;
  if (said()) return 0;
  lock_guard lock(header_);
  if (const int e = read_header(h)) return e;
  if (said()) return 0;
  h.commit = std::max(h.commit, commit);
  return write_mark(h);
}

// Others see the mark before it is durable, and must not take it for that.  Processes that mark at the same time write
// the same bytes, but for the flag, without which the next one only makes it durable once more; a sync excludes them
// all.
int stripe_object::write_mark(checksum_header& h) {
  h.unsynced = this_boot();
  h.flags &= ~checksum_header::unsynced_known;
  if (const int e = sums_.write_header(h)) return e;
  if (const int e = make_durable(sums_.fd())) return e;
  h.flags |= checksum_header::unsynced_known;
  return sums_.write_header(h);
}

// Of two that flush at once one is told of the failure, and the other would take what is lost for durable.
int stripe_object::make_durable(int file) {
  if (read_only_ == EROFS) return 0;  // a file system that nobody can write to may know no flushing
  lock_guard lock(flushing_);
  if (sync_failed_) return EIO;
  const int error = flush_file(file);
  if (error != 0) sync_failed_ = true;
  return error;
}

int stripe_object::flush() {
  int error = make_durable(data());
  if (error == 0) error = make_durable(sums_.fd());
  if (error == 0 && sides_) error = make_durable(sides_.file().fd());
  return error;
}

int stripe_object::settle_as_durable() {
  if (const int e = flush()) return e;
  checksum_header now;
  if (const int e = read_header(now)) return e;
  // From the second generation on it must not be missing.
  if (now.generation == 1)
    if (const int e = make_name_durable(data_path_)) {
      sync_failed_ = true;  // as make_durable()
      return e;
    }
  const int error = change_header([&](checksum_header& h) {
    h.unsynced = {};
    h.syncs += 1;
    h.flags = (h.flags | checksum_header::synced_once) & ~checksum_header::unsynced_known;
    h.required &= ~checksum_header::size_unsynced;
    h.synced_chunks = 0;
    if (h.generation == 1) h.generation = 2;
  });
  if (error != 0) {
    // For other processes, which have not been told.  Where even this fails their own descriptors tell them, if they
    // have the files open (sync_claimed).
    (void)change_header([](checksum_header& h) { h.unsynced = this_boot(); }, false);
    return error;
  }
  if (now.generation == 1) generation_ = 2;
  undo_.forget();
  return 0;
}

int stripe_object::change_header(const std::function<void(checksum_header&)>& change, bool durably) {
  lock_guard lock(header_);
  checksum_header h;
  if (const int e = read_header(h)) return e;
  change(h);
  if (const int e = sums_.write_header(h)) return e;
  return durably ? make_durable(sums_.fd()) : 0;
}

int stripe_object::touch(std::uint64_t first, std::uint64_t count, const checksum_header& h) {
  lock_guard lock(touching_);
  return sums_.touch(first, count, h.syncs, h.chunks);
}

int stripe_object::check_generation(std::uint64_t expected, std::uint64_t& found) {
  found = generation_.load(std::memory_order_relaxed);
  if (found >= expected) return 0;
  checksum_header h;  // another process may have set it since
  if (const int e = read_header(h)) return e;
  generation_ = found = h.generation;
  return found >= expected ? 0 : EUCLEAN;
}

int stripe_object::advance(std::uint64_t generation, const write_claim& begins, bool ends_writes) {
  if (sync_failed_) return EIO;  // what the header says may not be durable
  checksum_header h;
  if (const int e = read_header(h)) return e;
  if (h.generation == 1 && generation > 1)
    if (const int e = settle_as_durable()) return e;
  const bool ends_claims = h.claims.end_before(begins);
  if ((h.generation == generation || generation_ == generation) && !ends_claims && !ends_writes) {
    generation_ = generation;
    return 0;
  }
  const int error = change_header([&](checksum_header& now) {
    now.generation = generation;
    now.claims.end_before(begins);
    if (ends_writes) now.writes_since = generation + 1;
  });
  if (error != 0) return error;
  generation_ = generation;
  return 0;
}

// Damage from the end of the other boot is found chunk by chunk, by their checksums, except for the chunks that the
// undo log has: there both the old and the new bytes are good, and the old ones count.
int stripe_object::require_nothing_waits(std::string& why) {
  range_locks::hold hold;
  if (const int e = ranges_.lock_chunks({}, hold)) return e;  // not while another process applies it
  checksum_header h;
  if (const int e = read_header(h)) return e;
  if (h.unsynced == boot_id{} || h.unsynced == this_boot()) return 0;
  bool waits = false;
  if (const int e = undo_.waits(h.syncs, waits)) return e;
  if (!waits) return 0;
  std::filesystem::path log = data_path_;
  why = "writes to it were under way when the machine went down, and its undo log ('" +
        log.replace_extension(".undo").string() +
        "') waits to be applied: let somebody who may write the file read it once (`ooc verify`)";
  return read_only_ == EROFS ? EROFS : EACCES;
}

int stripe_object::recover_from_power_loss() {
  range_locks::hold hold;
  if (const int e = ranges_.lock_object(hold)) return e;
  checksum_header h;
  if (const int e = read_header(h)) return e;
  if (h.unsynced == boot_id{} || h.unsynced == this_boot()) return 0;  // another process did it

  file_descriptor data_file;
  if (const int e = open_data(data_path_, O_RDWR, data_file)) return e;
  int error = (h.required & checksum_header::size_unsynced) != 0 ? recover_size(data_file.get(), h) : 0;
  if (error == 0) error = sums_.mend_touched_after(h.syncs, h.chunks);
  if (error == 0 && sides_) error = sides_.mend(*this, h.chunks);
  if (error != 0) return error;
  error = undo_.replay(h.syncs, [&](const undo_record& r) {
    if (r.chunk >= h.chunks) return 0;
    const checksum_entry entry{r.sum, r.sum};
    if (r.sum != 0)
      if (const int e = write_whole(data_file.get(), r.image, chunk_size, r.chunk * chunk_size)) return e;
    return sums_.write(r.chunk, {&entry, 1});
  });
  if (error == 0) error = flush_file(data_file.get());
  if (error == 0) error = sums_.make_durable();
  if (error != 0) return error;
  h.unsynced = {};
  h.required &= ~checksum_header::size_unsynced;
  h.synced_chunks = 0;
  h.flags = (h.flags | checksum_header::power_lost) & ~checksum_header::unsynced_known;
  if (sides_) h.flags |= checksum_header::roll_back_due;
  error = sums_.write_header(h);
  if (error == 0) error = sums_.make_durable();
  if (error == 0) undo_.forget();
  return error;
}

}  // namespace ooc::storage
