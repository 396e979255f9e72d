// Reading and writing, and how an operation waits for its chunks.
#include "storage/node/node_operations.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "storage/node/small_reads.hpp"
#include "storage/object/stripe_object_writer.hpp"

namespace ooc::storage {
namespace {

// The chunks that the regions (sorted) touch.
std::vector<chunk_range> touched_chunks(const std::vector<region>& regions) {
  std::vector<chunk_range> ranges;
  for (const region& p : regions) {
    const chunk_range r{p.node_offset / chunk_size, (p.node_end() - 1) / chunk_size + 1};
    if (!ranges.empty() && r.first <= ranges.back().end)
      ranges.back().end = std::max(ranges.back().end, r.end);
    else
      ranges.push_back(r);
  }
  return ranges;
}

// Those parts of the regions that lie in the ranges.
std::vector<region> clipped(const std::vector<region>& regions, const std::vector<chunk_range>& ranges) {
  std::vector<region> out;
  for (const region& p : regions) {
    const std::uint64_t from = p.node_offset / chunk_size;
    auto r = std::partition_point(ranges.begin(), ranges.end(), [&](const chunk_range& c) { return c.end <= from; });
    for (; r != ranges.end() && r->first * chunk_size < p.node_end(); ++r) {
      const std::uint64_t begin = std::max(p.node_offset, r->first * chunk_size);
      const std::uint64_t end = std::min(p.node_end(), r->end * chunk_size);
      out.push_back({begin, p.memory_offset + (begin - p.node_offset), end - begin});
    }
  }
  return out;
}

std::uint64_t bytes_of(const std::vector<region>& regions) {
  std::uint64_t n = 0;
  for (const region& p : regions) n += p.length;
  return n;
}

failure list(const node_folder& folder, std::vector<file_id>& ids) {
  const int e = folder.list(ids);
  if (e == 0) return {};
  const std::error_code code(e, std::generic_category());
  return {code, "node " + folder.path().string() + ": listing its stripe objects failed: " + code.message()};
}

}  // namespace

node_operations::node_operations(std::filesystem::path folder, bool direct_io, std::function<void(operation*)> resume)
    : node_messages(std::move(folder)),
      commits_(folder_.path()),
      cache_(folder_, direct_io),
      commit_steps_(*this, commits_, cache_),
      late_(folder_),
      resume_(std::move(resume)) {}

step_result node_operations::step(operation& op, io_worker& w) {
  const auto whole = [](bool ended) { return ended ? step_result::ended : step_result::parked; };
  switch (op.kind) {
    case io_kind::read: return whole(read(op, w));
    case io_kind::write: return whole(write(op, w));
    case io_kind::advance: return whole(advance(op));
    case io_kind::sync:
    case io_kind::prepare:
    case io_kind::roll_back: return whole(sync(op));
    case io_kind::find_changes: return whole(commit_steps_.find_changes(op));
    case io_kind::resize: return whole(resize(op, w));
    case io_kind::remove: return whole(remove(op));
    case io_kind::verify: return verify(op, w);
    case io_kind::trim: return commit_steps_.trim(op);
    case io_kind::clone: return commit_steps_.clone(op, w);
    case io_kind::create: op.result = create(op); break;
    case io_kind::permit: op.result = permit(op); break;
    case io_kind::list: op.result = list(folder_, op.answer->ids); break;
    case io_kind::find_locality: break;
  }
  return step_result::ended;
}

bool node_operations::begin(operation& op) {
  const file_shape& f = *op.file;
  if (f.striping.nn == 0 || f.striping.sf == 0 || op.stripe_index >= f.striping.nn) {
    op.result = refused(op, "no such stripe index, or a striping without nodes or stripes");
    return false;
  }
  // Where it has been cut off there is the fill value.
  const bool past_a_cut = op.kind == io_kind::read && f.cuts != 0;
  if (op.wanted && op.wanted->file_end() > f.size && !past_a_cut) {
    op.result = refused(op, "the request ends at byte " + std::to_string(op.wanted->file_end()) + ", the file at " +
                                std::to_string(f.size));
    return false;
  }
  std::string why;
  const bool to_write = op.kind == io_kind::write || op.kind == io_kind::resize || op.kind == io_kind::advance ||
                        op.kind == io_kind::prepare || op.kind == io_kind::roll_back || op.kind == io_kind::trim;
  // For a stripe object that is being resized the chunks that are there count, not those that should be.
  const std::uint64_t chunks = op.kind == io_kind::resize ? 0 : places_of_file(op);
  int e = cache_.get(identity(op), op.target, why, to_write, chunks);
  const std::uint64_t known = op.kind == io_kind::advance ? f.generation - 1 : f.generation;
  // Of one that is read nobody knows whether it has been removed, unless the reader has asked.
  const bool may_be_made = e == EBADMSG || (e == ENOENT && (op.kind != io_kind::read || f.still_there));
  if (may_be_made && may_have_lost(op, known)) {
    op.result = make_again(op, known);
    if (op.result) return false;
    e = cache_.get(identity(op), op.target, why, to_write, chunks);
  }
  if (e != 0) {
    op.result = e == EUCLEAN || e == EBADMSG ? damaged(op, why)
                                             : failed(op, e, e == ENOENT ? "the stripe object is missing" : why);
    return false;
  }
  if (to_write && op.target->read_only() != 0) {
    op.result = failed(op, op.target->read_only(), "its files may only be read");
    return false;
  }
  if (f.commits != static_cast<bool>(op.target->sides())) {
    op.result = damaged(op, f.commits ? "it keeps no commits, and the metadata say that its file has some"
                                      : "it keeps commits, and the metadata say that its file has none");
    return false;
  }
  std::uint64_t found = 0;
  // A stripe object without bytes is not opened with the others.
  const bool empty = op.kind == io_kind::resize && f.striping.object_size(op.stripe_index, op.old_size) == 0;
  const std::uint64_t least = empty ? 0 : known;
  if (const int error = op.target->check_generation(least, found)) {
    op.result = error != EUCLEAN ? failed(op, error, "reading the header of its checksums")
                                 : damaged(op, "it is an old copy: it is of generation " + std::to_string(found) +
                                                   " of the file, the metadata know generation " +
                                                   std::to_string(least) + "; put the newest copy back");
    return false;
  }
  return true;
}

// The regions of the operation, by node offset; on failure it has ended.
bool node_operations::find_regions(operation& op) {
  if (!op.part) {
    object_regions(*op.wanted, op.file->striping, op.stripe_index, op.regions);
    return true;
  }
  op.regions = op.part->regions;
  if (op.kind == io_kind::write && !sums_match(*op.part, op.memory, op.sums)) {
    op.result = {{EBADMSG, std::generic_category()},
                 "node " + folder_.path().string() + ": " + name_of(op.kind) + " of '" + op.file->name +
                     "': the bytes were damaged on the way; nothing of this part was written"};
    return false;
  }
  return true;
}

bool node_operations::claim(operation& op, std::vector<chunk_range> ranges, bool exclusive) {
  assert(!op.claimed && op.target);  // all chunks are asked for at once, while nothing is held
  op.claim.ranges = std::move(ranges);
  op.claim.exclusive = exclusive;
  op.claim.resume = [this, &op] { resume_(&op); };
  op.claimed = true;  // when it is next looked at
  try {
    return op.target->chunks().lock(op.claim);
  } catch (...) {
    op.claimed = false;
    throw;
  }
}

bool node_operations::read(operation& op, io_worker& w) {
  if (!op.claimed) {
    counters.add(&io_stats::read_requests, 1);
    if (!begin(op)) return true;
    if (!find_regions(op)) return true;
    counters.add(&io_stats::read_regions, node_runs(op.regions));
    if ((op.result = commits_.lost_with_power(op))) return true;
    chunk_places places;
    const int found = op.target->sides() ? commits_.find(op, touched_chunks(op.regions), places) : 0;
    if (found != 0 && found != EBADMSG) {
      op.result = commits_.no_places(op, found);
      return true;
    }
    if (found == 0) {
      stripe_object_reader reader(w, *op.target, *op.file, op.stripe_index, places);
      if (const object_error e = reader.read(op.regions, op.memory, false, op.bad, op.sums, op.who)) {
        op.result = failed(op, e);
        return true;
      }
    }
    op.bytes = bytes_of(op.regions);
    if (found == 0 && op.bad.empty()) {
      if (!(op.result = commits_.no_longer_there(op))) delivered(op);
      return true;
    }
    // Perhaps a writer was in between: look again at those chunks with writers kept out.
    // Checksums are made anew for all of the part at the end, so nothing in it may be left for the caller to check.
    const bool all = found != 0 || (op.sums != nullptr && op.who == checking::by_caller);
    std::vector<chunk_range> suspects = all ? touched_chunks(op.regions) : chunks_of(op.bad);
    op.regions = clipped(op.regions, suspects);
    op.bad.clear();
    if (!claim(op, std::move(suspects), false)) return false;
  }
  op.result = read_claimed(op, w);
  op.target->chunks().unlock(op.claim);
  return true;
}

// A read has brought everything to its memory.
void node_operations::delivered(operation& op) {
  counters.add(&io_stats::bytes_read, op.bytes);
  if (op.part && op.part->rest) op.sums[op.part->whole] = rest_sum(*op.part, op.memory);
}

namespace {
bool is_as_known(stripe_object& s, const object_identity& identity, std::uint64_t generation) noexcept {
  std::uint64_t found = 0;
  return s.identity() == identity && s.check_generation(generation, found) == 0 && !s.sides().roll_back_due(s);
}
}  // namespace

bool node_operations::read_inline(const file_shape& f, std::uint32_t stripe_index, const io_part& part,
                                  std::byte* memory, std::uint32_t* sums) {
  const std::shared_ptr<stripe_object> s = f.at_commit ? nullptr : cache_.find(f.id);
  if (!s || !is_as_known(*s, identity_of(store_, f, stripe_index), f.generation)) return false;
  if (!page_cache_read(*s, part, memory, sums)) return false;
  counters.add(&io_stats::read_requests, 1);
  counters.add(&io_stats::read_regions, node_runs(part.regions));
  counters.add(&io_stats::bytes_read, part.bytes);
  return true;
}

bool node_operations::read_inline(const file_shape& f, std::uint32_t stripe_index, std::uint64_t node_offset,
                                  std::byte* memory, std::size_t bytes) noexcept {
  const std::shared_ptr<stripe_object> s = f.at_commit ? nullptr : cache_.find_now(f.id);
  if (!s || !is_as_known(*s, identity_of(store_, f, stripe_index), f.generation)) return false;
  if (!read_whole_chunks(*s, node_offset, memory, bytes)) return false;
  counters.add(&io_stats::read_requests, 1);
  counters.add(&io_stats::read_regions, 1);
  counters.add(&io_stats::bytes_read, bytes);
  counters.add(&io_stats::device_reads, 1);
  counters.add(&io_stats::device_bytes_read, bytes);
  return true;
}

failure node_operations::read_claimed(operation& op, io_worker& w) {
  assert(op.claimed);
  range_locks::hold hold;
  if (const int e = op.target->ranges().lock_chunks(op.claim.ranges, hold))
    return failed(op, e, "locking the stripe object");
  checksum_header h;
  if (const int e = op.target->read_header(h)) return failed(op, e, "reading the header of its checksums");
  chunk_places places;
  if (const int e = commits_.find(op, op.claim.ranges, places)) return commits_.no_places(op, e);
  stripe_object_reader reader(w, *op.target, *op.file, op.stripe_index, places, h.chunks);
  if (const object_error e = reader.read(op.regions, op.memory, true, op.bad)) return failed(op, e);
  if (failure gone = commits_.no_longer_there(op)) return gone;
  if (op.bad.empty()) {
    if (op.sums != nullptr) compute_sums(*op.part, op.memory, op.sums);
    delivered(op);
    return {};
  }
  const bad_chunk& first = op.bad.front();
  return failed(op, {0, first.found, first.chunk * chunk_size, "reading data"});
}

bool node_operations::write(operation& op, io_worker& w) {
  if (!op.claimed) {
    counters.add(&io_stats::write_requests, 1);
    if (!begin(op)) return true;
    if (!find_regions(op)) return true;
    counters.add(&io_stats::write_regions, node_runs(op.regions));
    if (op.regions.empty()) return true;
    if (overlap(op.regions)) {
      op.result = refused(op, "regions of the request overlap in the file");
      return true;
    }
    if (!claim(op, touched_chunks(op.regions), true)) return false;
  }
  op.result = write_claimed(op, w);
  op.target->chunks().unlock(op.claim);
  return true;
}

failure node_operations::write_claimed(operation& op, io_worker& w) {
  assert(op.claimed && op.claim.exclusive);
  range_locks::hold hold;
  if (const int e = op.target->ranges().lock_chunks(op.claim.ranges, hold))
    return failed(op, e, "locking the stripe object");
  checksum_header h;
  if (const int e = op.target->mark_unsynced(h, op.file->commit))
    return failed(op, e, "marking the stripe object as written");
  if (failure lost = lost_claim(op, h)) return lost;
  // Where there are no chunks, a cut has ended halfway.
  const std::uint64_t known = op.file->cuts;
  if (known != 0 && h.cuts != 0 && (known < h.cuts || op.claim.ranges.back().end > h.chunks)) return was_cut_off(op);
  if (op.file->generation < h.writes_since) return was_moved(op);
  chunk_places places;
  if (failure e = commits_.choose(op, op.claim.ranges, h, places)) return e;
  stripe_object_writer writer(w, *op.target, *op.file, op.stripe_index, places, h);
  if (const object_error e = writer.write(op.regions, op.memory, op.sums)) return failed(op, e);
  if (failure e = commits_.settle(op, places)) return e;
  counters.add(&io_stats::bytes_written, bytes_of(op.regions));
  return {};
}

}  // namespace ooc::storage
