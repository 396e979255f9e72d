// Everything but reading and writing: the life of a stripe object, sync and verify.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

#include "storage/base/file_access.hpp"
#include "storage/node/node_operations.hpp"
#include "storage/object/stripe_object_writer.hpp"

namespace ooc::storage {
namespace {

constexpr const char* without_commits = "the file was made without commits";

// A verification goes on for so many chunks at a time.
constexpr std::uint64_t verify_slice = 1024;

// Chunks that the stripe object had when it was made or last resized, or that its files have room for: none of
// those beyond was ever written, whatever size a request states.
int chunks_on_disk(stripe_object& s, std::uint64_t& chunks) {
  struct stat data {};
  if (::fstat(s.data(), &data) != 0) return errno;
  checksum_header h;
  if (const int e = s.read_header(h)) return e;
  chunks = std::max(in_chunks(static_cast<std::uint64_t>(data.st_size)), h.chunks);
  if (s.sides() && chunks != 0) chunks = chunk_at(chunks - 1) + 1;
  return 0;
}

// The mode of the files of a stripe object, from that of their file: nobody executes them.
std::uint32_t object_mode(const file_permissions& p) { return p.mode & 0666; }

// Others than the owner may write it: then the log is there from the beginning, for a log that one of
// them made would be his.
bool needs_undo_log_at_once(const file_permissions& p) { return (p.mode & 022) != 0; }

/// Where space is about to be taken: what a reservation that fails has taken may come back late.
class space_there {
 public:
  explicit space_there(const std::filesystem::path& folder) noexcept : known_(::statvfs(folder.c_str(), &v_) == 0) {}

  std::string text(std::uint64_t needed) const {
    std::string t = "it needs " + std::to_string(needed) + " bytes there";
    if (known_) t += ", " + std::to_string(std::uint64_t{v_.f_bavail} * v_.f_frsize) + " are available";
    return t + " (a sparse file reserves nothing)";
  }

 private:
  struct statvfs v_ {};
  bool known_;
};

// The same creation may be asked for twice: a server ended before it could answer.  0: what is there is what was to be
// made; ENOENT: nothing is there any more.
int create_again(stripe_object_cache& cache, const node_folder& folder, const object_identity& who, const file_shape& f,
                 std::uint64_t chunks) {
  std::shared_ptr<stripe_object> there;
  std::string why;
  checksum_header h;
  const int found = cache.get(who, there, why);
  if (found == ENOENT || found == EBADMSG) {  // a header comes last: without one it holds nothing
    for (const auto& path : folder.files(f.id))
      if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno;
    return ENOENT;
  }
  if (found != 0 || there->read_header(h) != 0) return EEXIST;
  if (h.chunks != chunks || h.generation != f.generation || h.commit != f.commit) return EEXIST;
  bool touched = false;
  for (std::uint64_t r = 0; r < checksum_file::regions_for(chunks); ++r)
    if (there->sums().is_touched(r, touched) != 0 || touched) return EEXIST;
  return 0;
}

}  // namespace

failure node_operations::create(operation& op, bool durably) {
  const file_shape& f = *op.file;
  if (f.striping.nn == 0 || f.striping.sf == 0 || op.stripe_index >= f.striping.nn)
    return refused(op, "no such stripe index, or a striping without nodes or stripes");
  const std::uint64_t chunks = places_of_file(op);
  const auto folder = folder_.sums(f.id).parent_path();
  if (const int e = make_folder_like(folder, folder_.path())) return failed(op, e);

  // Made durably, or to be made durable by its first sync: then a loss of power may take it.
  const bool late = !durably && !f.commits && f.generation == 1 && late_.allows(f.id);
  constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  const auto make = [&](const std::filesystem::path& path) {
    int fd = ::open(path.c_str(), flags, 0600);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
      cache_.close_some();
      fd = ::open(path.c_str(), flags, 0600);
    }
    return file_descriptor(fd);
  };
  const auto permit = [&](const file_descriptor& fd) {
    return set_access(fd.get(), object_mode(f.permissions), f.permissions.owner, f.permissions.group);
  };
  file_descriptor sums = make(folder_.sums(f.id));
  if (!sums && errno == EEXIST) {
    if ((errno = create_again(cache_, folder_, identity(op), f, chunks)) == 0) return {};
    if (errno == ENOENT) sums = make(folder_.sums(f.id));
  }
  if (!sums) return failed(op, errno, "making the checksum file");
  file_descriptor data = make(folder_.data(f.id));
  const bool made = static_cast<bool>(data);
  int error = made ? 0 : errno;
  if (error == 0) error = permit(sums);
  if (error == 0) error = permit(data);
  const file_descriptor sides = f.commits && error == 0 ? make(folder_.sides(f.id)) : file_descriptor{};
  if (error == 0 && f.commits) error = sides ? permit(sides) : errno;
  if (error == 0 && needs_undo_log_at_once(f.permissions)) {
    const file_descriptor undo = make(folder_.undo(f.id));
    error = undo ? permit(undo) : errno == EEXIST ? 0 : errno;
  }

  checksum_header h;
  h.set_identity(identity(op));
  h.chunks = chunks;
  h.generation = f.generation;
  h.claims.end_before(f.claim);
  if (f.cut) h.cuts = f.cuts;
  if (f.commits) {
    h.required = checksum_header::two_sides;
    h.commit = f.commit;
  }
  if (late) {
    h.unsynced = this_boot();
    h.flags = checksum_header::unsynced_known;
    h.required = checksum_header::size_unsynced;
  }
  const std::uint64_t sum_bytes = checksum_file::bytes_for(chunks);
  std::string space;
  const space_there there(folder_.path());
  if (error == 0) error = extend_file(sums.get(), 0, sum_bytes, !f.sparse);
  if (error == 0 && sides) error = extend_file(sides.get(), 0, side_file::bytes_for(chunks), !f.sparse);
  if (error == 0) error = extend_file(data.get(), 0, chunks * chunk_size, !f.sparse);
  if (error == ENOSPC) space = there.text(f.sparse ? 0 : sum_bytes + chunks * chunk_size);
  const checksum_file file(std::move(sums), object_seeds(identity(op)));
  // Entries come with the first write to their region: see checksum_file.hpp.  Without the marks they are lost.
  if (error == 0 && !op.lost) error = file.mark_untouched(0, checksum_file::regions_for(chunks));
  if (error == 0) error = file.write_header(h);
  if (error == 0 && !late && (::fsync(file.fd()) != 0 || ::fsync(data.get()) != 0)) error = errno;
  if (error == 0 && sides && ::fsync(sides.get()) != 0) error = errno;
  if (error == 0 && !late) error = flush_folder(folder);
  if (error == 0 && !late) error = flush_folder(folder.parent_path());
  if (error == 0) return {};

  const failure result = failed(op, error, space);
  ::unlink(folder_.sums(f.id).c_str());
  if (made) {
    ::unlink(folder_.data(f.id).c_str());
    ::unlink(folder_.undo(f.id).c_str());
    ::unlink(folder_.sides(f.id).c_str());
  }
  return result;
}

bool node_operations::resize(operation& op, io_worker& w) {
  if (!op.claimed) {
    const striping& s = op.file->striping;
    // A client that ends a cut that another has begun states an old size of 0, whatever there was.
    const bool held_nothing = !op.file->cut && s.nn != 0 && s.sf != 0 && op.stripe_index < s.nn &&
                              s.object_size(op.stripe_index, op.old_size) == 0;
    if (op.lost && op.file->commits) {
      op.result = refused(op, "a file with commits cannot go on without what was lost: remove it");
      return true;
    }
    std::string why;
    const int found = held_nothing || op.lost ? cache_.get(identity(op), op.target, why) : 0;
    if (op.lost && found == 0) return true;
    if (found == ENOENT || found == EBADMSG) {
      // The remains of a creation that was cut short are in the way; its header comes last.
      ::unlink(folder_.sums(op.file->id).c_str());
      ::unlink(folder_.data(op.file->id).c_str());
      ::unlink(folder_.sides(op.file->id).c_str());
      op.result = create(op, op.lost);
      return true;
    }
    if (!begin(op)) return true;
    if (!claim(op, {all_chunks}, true)) return false;
  }
  op.result = resize_claimed(op, w);
  op.target->chunks().unlock(op.claim);
  return true;
}

failure node_operations::resize_claimed(operation& op, io_worker& w) {
  const file_shape& f = *op.file;
  stripe_object& s = *op.target;
  const std::uint64_t before = f.striping.object_size(op.stripe_index, op.old_size);
  const std::uint64_t after = f.striping.object_size(op.stripe_index, f.size);
  const std::uint64_t chunks = f.commits ? places_for(in_chunks(after)) : in_chunks(after);

  range_locks::hold hold;
  if (const int e = s.ranges().lock_object(hold)) return failed(op, e, "locking");
  checksum_header h;
  if (const int e = s.read_header(h)) return failed(op, e);
  if (failure lost = lost_claim(op, h)) return lost;
  // The chunks that are there count, not those that should be: an earlier attempt may have been cut short.
  const std::uint64_t have = h.chunks;
  const std::uint64_t cuts = f.cut ? f.cuts : 0;
  const bool shortens = after < before && (chunks < have || (chunks == have && after % chunk_size != 0));
  // A cut also lets writes pass that were refused for a move which has come to nothing.
  const bool changes_refusals = cuts != 0 && (cuts != h.cuts || h.writes_since != 0);
  if (f.generation < h.generation && (shortens || changes_refusals)) return is_late(op, h.generation);
  if (f.commits && after < before) return commits_.forget_end(op, w, before, after);
  if (after >= before && chunks <= have && !changes_refusals) {
    const int e = h.generation < f.generation ? s.advance(f.generation, f.claim) : 0;
    return e == 0 ? failure{} : failed(op, e);
  }
  if (const int e = s.mark_resized(h, std::min(have, chunks))) return failed(op, e, "marking the stripe object");

  int error = 0;
  std::string more;
  // The kept part of the last chunk must read as the pattern when the stripe object grows again.
  if (after < before && after % chunk_size != 0 && after / chunk_size < have) {
    const chunk_places as_numbered;
    stripe_object_writer writer(w, s, f, op.stripe_index, as_numbered, h);
    if (const object_error e = writer.erase_tail(after / chunk_size, after % chunk_size)) return failed(op, e);
  }
  if (chunks <= have) {
    // The header first: what it does not count is made anew when the stripe object grows.
    const std::uint64_t left = after < before ? chunks : have;
    error = s.set_chunks(left, cuts);
    if (error == 0) error = s.cut_off(left);
  } else {
    const std::uint64_t growth = (chunks - have) * chunk_size;
    error = s.cut_off(have);  // what a resize that was cut short has left
    const space_there there(folder_.path());
    if (error == 0) error = s.lengthen(have, chunks, !f.sparse);
    if (error == 0) error = s.set_chunks(chunks, cuts);
    if (error == ENOSPC) more = there.text(f.sparse ? 0 : (chunks - have) * sizeof(checksum_entry) + growth);
    if (error != 0 && s.cut_off(have) != 0) more += "; the space that was reserved in part could not be given back";
  }
  if (error == 0 && h.generation < f.generation) error = s.advance(f.generation, f.claim);
  return error == 0 ? failure{} : failed(op, error, more);
}

bool node_operations::remove(operation& op) {
  if (!op.claimed) {
    // Whatever it is: only the id counts.
    op.target = cache_.find(op.file->id);
    if (!op.target) {
      const file_descriptor sums(::open(folder_.sums(op.file->id).c_str(), O_RDWR | O_CLOEXEC));
      range_locks locks(sums.get());
      {
        range_locks::hold hold;
        if (sums) locks.lock_object(hold);
        op.result = remove_files(op);
      }
      // Without the lock: who is opening it now may be waiting for that, to recover it, and finds no header then.
      cache_.drop(op.file->id);
      return true;
    }
    if (!claim(op, {all_chunks}, true)) return false;
  }
  {
    range_locks::hold hold;
    op.target->ranges().lock_object(hold);
    op.result = remove_files(op);
  }
  cache_.drop(op.file->id);
  op.target->chunks().unlock(op.claim);
  return true;
}

failure node_operations::remove_files(operation& op) {
  int error = 0;
  bool found = false;
  // Other processes may have it open, and must not read on what may be written elsewhere by then (take_over).
  [[maybe_unused]] const int emptied = ::truncate(folder_.sums(op.file->id).c_str(), 0);
  for (const auto& path : folder_.files(op.file->id)) {
    if (::unlink(path.c_str()) == 0)
      found = true;
    else if (errno != ENOENT)
      error = errno;
  }
  if (error == 0 && !found) error = ENOENT;
  return error == 0 ? failure{} : failed(op, error);
}

bool node_operations::advance(operation& op) {
  if (!op.claimed) {
    if (op.file->generation == 0) {
      op.result = refused(op, "generation 0");
      return true;
    }
    if (!begin(op)) return true;
    if (!claim(op, {all_chunks}, true)) return false;
  }
  op.result = advance_claimed(op);
  op.target->chunks().unlock(op.claim);
  return true;
}

failure node_operations::advance_claimed(operation& op) {
  const std::uint64_t wanted = op.file->generation;
  range_locks::hold hold;
  if (const int e = op.target->ranges().lock_object(hold)) return failed(op, e, "locking");
  checksum_header h;
  if (const int e = op.target->read_header(h)) return failed(op, e);
  if (failure lost = lost_claim(op, h)) return lost;
  if (h.generation > wanted) {
    failure f = damaged(op, "it is of generation " + std::to_string(h.generation) +
                                " of the file, the metadata know generation " + std::to_string(wanted - 1) +
                                ": the database is an old copy, or the stripe object of another time; "
                                "put the newest copy back");
    f.code = errc::conflict;
    return f;
  }
  const int e = op.target->advance(wanted, op.file->claim, op.file->cut);
  return e == 0 ? failure{} : failed(op, e);
}

// io_kind::sync, and of a file with commits prepare and roll_back.
bool node_operations::sync(operation& op) {
  if (!op.claimed) {
    counters.add(&io_stats::syncs, op.kind == io_kind::roll_back ? 0 : 1);
    if (op.kind != io_kind::sync && !op.file->commits) {
      op.result = refused(op, without_commits);
      return true;
    }
    if (!begin(op)) return true;
    if (op.target->sync_failed()) {
      op.result = failed(op, EIO);
      return true;
    }
    if (op.kind != io_kind::roll_back && (op.result = commits_.lost_with_power(op))) return true;
    checksum_header h;
    const bool durable = op.target->read_header(h) == 0 && h.unsynced == boot_id{};
    const bool clean = op.kind == io_kind::sync && durable;
    if (!clean && op.target->read_only() != 0) {
      op.result = failed(op, op.target->read_only(),
                         "there are writes that are not durable yet, and its files may only be read");
      return true;
    }
    // The long part, with writers going on; then the rest with writers kept out.
    if (const int e = durable || op.kind == io_kind::roll_back ? 0 : op.target->flush()) {
      op.result = failed(op, e);
      return true;
    }
    if (!claim(op, {all_chunks}, !clean)) return false;
  }
  op.result = sync_claimed(op);
  op.target->chunks().unlock(op.claim);
  return true;
}

failure node_operations::sync_claimed(operation& op) {
  range_locks::hold hold;
  if (op.claim.exclusive) {
    checksum_header h;
    int error = op.target->ranges().lock_object(hold);
    if (error == 0) error = op.kind == io_kind::sync ? op.target->settle_as_durable() : op.target->read_header(h);
    if (error != 0) return failed(op, error);
    if (op.kind == io_kind::sync) return {};
    failure lost = lost_claim(op, h);
    if (lost) return lost;
    return op.kind == io_kind::prepare ? commits_.prepare(op) : commits_.roll_back(op);
  }
  // Another sync has said that all is durable, and may have been about to make that durable: it has ended now.
  if (const int e = op.target->ranges().lock_chunks({}, hold)) return failed(op, e, "locking");
  // If that failed in another process, the descriptor of this one tells of it, too.
  const int e = op.target->make_durable(op.target->sums().fd());
  return e == 0 ? failure{} : failed(op, e);
}

// A slice of the stripe object in each step, so that others have their turns in between, a client that goes
// ends it, and the list of suspects stays short.
step_result node_operations::verify(operation& op, io_worker& w) {
  if (!op.claimed) {
    if (!op.target) {
      if (!begin(op)) return step_result::ended;
      std::uint64_t there = 0;
      if (const int e = chunks_on_disk(*op.target, there)) {
        op.result = failed(op, e);
        return step_result::ended;
      }
      if ((op.result = commits_.lost_with_power(op))) return step_result::ended;
      op.chunks = std::min(there, in_chunks(op.file->striping.object_size(op.stripe_index, op.file->size)));
      op.next_cost = verify_slice * chunk_size;
    }
    const chunk_range slice{op.chunk, std::min(op.chunk + verify_slice, op.chunks)};
    op.result = commits_.check(op, w, slice);
    if (op.result) return step_result::ended;
    op.chunk = slice.end;
    if (!op.bad.empty()) {
      std::vector<chunk_range> suspects = chunks_of(op.bad);
      op.bad.clear();
      if (!claim(op, std::move(suspects), false)) return step_result::parked;
    }
  }
  if (op.claimed) {
    op.result = verify_claimed(op, w);
    op.target->chunks().unlock(op.claim);
    op.claimed = false;
    op.bad.clear();
  }
  return op.result || op.chunk >= op.chunks ? step_result::ended : step_result::to_be_continued;
}

failure node_operations::verify_claimed(operation& op, io_worker& w) {
  range_locks::hold hold;
  if (const int e = op.target->ranges().lock_chunks(op.claim.ranges, hold))
    return failed(op, e, "locking the stripe object");
  for (const chunk_range& r : op.claim.ranges)
    if (failure e = commits_.check(op, w, r)) return e;
  for (const bad_chunk& b : op.bad) {
    ++(b.found == verdict::torn   ? op.answer->report.torn
       : b.found == verdict::lost ? op.answer->report.lost
                                  : op.answer->report.corrupt);
    if (op.answer->report.problems.size() < 100) op.answer->report.problems.push_back(chunk_text(op, b));
  }
  return {};
}

// By name, without opening: also those may pass a file on who may not read it.
failure node_operations::permit(operation& op) {
  const file_id id = op.file->id;
  const file_permissions& p = op.file->permissions;
  const auto undo = folder_.undo(id);
  struct stat st {};
  // One that lost its bytes in a truncation is still there, others never were.
  if (op.file->striping.object_size(op.stripe_index, op.file->size) == 0 &&
      ::stat(folder_.sums(id).c_str(), &st) != 0 && errno == ENOENT)
    return {};
  if (::stat(folder_.sums(id).c_str(), &st) != 0 && errno == ENOENT && may_have_lost(op, op.file->generation))
    if (const failure e = make_again(op, op.file->generation)) return e;
  if (needs_undo_log_at_once(p)) {
    const file_descriptor fd(::open(undo.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd && errno != EEXIST) return failed(op, errno, "making the undo log");
  }
  for (const auto& path : folder_.files(id)) {
    const int e = set_access(path, object_mode(p), p.owner, p.group);
    if (e == 0 || (e == ENOENT && (path == undo || path == folder_.sides(id)))) continue;
    const bool whose = e == EPERM && ::stat(path.c_str(), &st) == 0;
    return failed(
        op, e,
        whose ? "its stripe object belongs to user " + std::to_string(st.st_uid) + ": only he or root can do that"
              : "");
  }
  return {};
}

bool node_operations::may_have_lost(const operation& op, std::uint64_t generation) {
  return generation == 1 && !op.file->commits && late_.may_be_lost(op.file->id);
}

// Nobody has a stripe object open that cannot be opened, and the lock keeps out who wants the same.
failure node_operations::make_again(operation& op, std::uint64_t generation) {
  const auto lock = late_.lock();
  std::string why;
  const int e = cache_.get(identity(op), op.target, why, true, places_of_file(op));
  if (e == 0) return {};
  if (e != ENOENT && e != EBADMSG) return failed(op, e, why);
  for (const auto& path : folder_.files(op.file->id))
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed(op, errno);
  file_shape as_before = *op.file;
  as_before.generation = generation;
  const shape_ptr wanted = std::exchange(op.file, std::make_shared<const file_shape>(std::move(as_before)));
  failure f = create(op, true);  // noting it as late would move the bounds of what may be lost
  op.file = wanted;
  return f;
}

}  // namespace ooc::storage
