#include "storage/node/commit_steps.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

#include "storage/node/node_operations.hpp"
#include "storage/object/clone_chunks.hpp"

namespace ooc::storage {

namespace {

// So much is cloned at a time, and a commit waits for no more.
constexpr std::uint64_t slice_chunks = 16 * checksum_file::region_chunks;

}  // namespace

commit_steps::commit_steps(node_operations& node, commit_operations& commits, stripe_object_cache& cache)
    : node_messages(node.folder().path()), node_(node), commits_(commits), cache_(cache) {}

bool commit_steps::find_changes(operation& op) {
  if (!op.claimed) {
    if (!op.file->commits) {
      op.result = refused(op, "the file was made without commits");
      return true;
    }
    if (!node_.begin(op)) return true;
    if (!node_.claim(op, {all_chunks}, false)) return false;
  }
  range_locks::hold hold;
  if (const int e = op.target->ranges().lock_chunks({}, hold))  // not while another process prepares a commit
    op.result = failed(op, e, "locking the stripe object");
  else
    op.result = commits_.find_changes(op, op.file->striping.object_size(op.stripe_index, op.file->size));
  op.target->chunks().unlock(op.claim);
  return true;
}

// One region that the commit has changed in each step: others have their turns in between.
step_result commit_steps::trim(operation& op) {
  if (!op.claimed) {
    if (!op.target) {
      if (!op.file->commits || op.file->commit == 0 || !op.file->sparse) {
        op.result = refused(op, "only what a sparse file with commits had in the one before is given back");
        return step_result::ended;
      }
      if (!node_.begin(op)) return step_result::ended;
      checksum_header h;
      if (const int e = op.target->read_header(h)) {
        op.result = failed(op, e, "reading the header of its checksums");
        return step_result::ended;
      }
      // Also beyond the end of the file, which had been longer.
      op.chunks = h.chunks == 0 ? 0 : chunk_at(h.chunks - 1) + 1;
      op.next_cost = checksum_file::region_chunks * chunk_size;
      op.since = op.file->commit - 1;
      op.answer = std::make_shared<node_answer>();
      if ((op.result = commits_.find_changes(op, op.chunks * chunk_size))) return step_result::ended;
    }
    const auto& changed = op.answer->ranges;
    const auto next = std::ranges::upper_bound(changed, op.chunk * chunk_size, {}, &byte_interval::end);
    if (next == changed.end()) return step_result::ended;
    op.chunk = std::max(op.chunk, next->begin / chunk_size);
    const std::uint64_t end_of_region = (op.chunk / checksum_file::region_chunks + 1) * checksum_file::region_chunks;
    if (!node_.claim(op, {{op.chunk, std::min(end_of_region, op.chunks)}}, true)) return step_result::parked;
  }
  op.result = trim_claimed(op);
  op.target->chunks().unlock(op.claim);
  op.claimed = false;
  return op.result || op.chunk >= op.chunks ? step_result::ended : step_result::to_be_continued;
}

failure commit_steps::trim_claimed(operation& op) {
  range_locks::hold hold;
  if (const int e = op.target->ranges().lock_chunks(op.claim.ranges, hold))
    return failed(op, e, "locking the stripe object");
  checksum_header h;  // says that earlier commits are not kept
  if (const int e = op.target->mark_unsynced(h, op.file->commit)) return failed(op, e, "marking the stripe object");
  if (failure lost = lost_claim(op, h)) return lost;
  // It comes late: by now the sides may be those of a later commit.
  if (h.commit > op.file->commit) return commits_.no_places(op, ESTALE);
  const chunk_range chunks = op.claim.ranges.front();
  op.chunk = chunks.end;
  return commits_.trim(op, chunks);
}

step_result commit_steps::clone(operation& op, io_worker& w) {
  if (!op.claimed) {
    if (!op.target) {
      if (!op.into || !op.file->at_commit || op.into->commits || op.into->size != op.file->size ||
          op.into->striping != op.file->striping || op.into->fill != op.file->fill) {
        op.result = refused(op, "only what it has in a commit is shared, with a file like it that has no commits");
        return step_result::ended;
      }
      if (!node_.begin(op) || (op.result = open_copy(op))) return step_result::ended;
      op.chunks = in_chunks(op.file->striping.object_size(op.stripe_index, op.file->size));
      op.next_cost = checksum_file::region_chunks * chunk_size;
    }
    if (!node_.claim(op, {{op.chunk, std::min(op.chunk + slice_chunks, op.chunks)}}, false)) return step_result::parked;
  }
  op.result = clone_slice(op, w);
  op.target->chunks().unlock(op.claim);
  op.claimed = false;
  return op.result || op.chunk >= op.chunks ? step_result::ended : step_result::to_be_continued;
}

// Who asks again, because the answer was lost, finds what the first time has left.
failure commit_steps::open_copy(operation& op) {
  std::string why;
  const object_identity who = identity_of(node_.store(), *op.into, op.stripe_index);
  const std::uint64_t chunks = in_chunks(op.into->striping.object_size(op.stripe_index, op.into->size));
  const int e = cache_.get(who, op.copy, why, true, chunks);
  if (e != 0)
    return failed(op, e, "the stripe object of '" + op.into->name + "' " + (why.empty() ? "is missing" : why));
  if (op.copy->read_only() != 0)
    return failed(op, op.copy->read_only(), "that of '" + op.into->name + "' may only be read");
  std::uint64_t found = 0;
  // Who opens it for writing, once it has a name, gives it the second generation.
  if (op.copy->check_generation(op.into->generation, found) != 0 || found > 1)
    return refused(op, "'" + op.into->name + "' is in use");
  return {};
}

failure commit_steps::clone_slice(operation& op, io_worker& w) {
  const chunk_range slice = op.claim.ranges.front();
  range_locks::hold hold, of_copy;
  int e = op.target->ranges().lock_chunks(op.claim.ranges, hold);
  if (e == 0) e = op.copy->ranges().lock_chunks(op.claim.ranges, of_copy);
  if (e != 0) return failed(op, e, "locking the stripe object");
  checksum_header h;
  if ((e = op.copy->mark_unsynced(h)) != 0) return failed(op, e, "marking that of '" + op.into->name + "'");
  chunk_places places;
  if ((e = commits_.find(op, {&slice, 1}, places)) != 0) return commits_.no_places(op, e);
  for (std::uint64_t c = slice.first; c < slice.end;) {
    const std::uint64_t n = places.run(c, slice.end - c);
    e = clone_chunks(op.copies ? &w : nullptr, *op.target, places.of(c), *op.copy, c, n, h);
    if (e == EOPNOTSUPP)
      return failed(op, e,
                    "its file system shares no space between files, as XFS and btrfs do; copied (--copy) it takes its "
                    "space again");
    if (e != 0) return failed(op, e, "with '" + op.into->name + "'");
    c += n;
  }
  op.chunk = slice.end;
  return commits_.no_longer_there(op);
}

}  // namespace ooc::storage
