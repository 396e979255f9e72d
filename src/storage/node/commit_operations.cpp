#include "storage/node/commit_operations.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "storage/base/log.hpp"
#include "storage/object/stripe_object_reader.hpp"
#include "storage/object/stripe_object_writer.hpp"

namespace ooc::storage {

namespace {

std::string numbered(std::uint64_t commit) { return "commit " + std::to_string(commit); }

}  // namespace

failure commit_operations::prepare(operation& op) {
  const int e = op.target->sides().prepare(*op.target, op.file->commit);
  return e == 0 ? failure{} : no_places(op, e);
}

failure commit_operations::roll_back(operation& op) {
  std::vector<std::uint64_t> regions;
  const auto add = [&](std::uint64_t region) { regions.push_back(region); };
  object_sides& sides = op.target->sides();
  const std::uint64_t commit = op.file->commit;
  int e = sides.roll_back(*op.target, commit, add);
  if (e == 0 && op.file->sparse && commit > 0) e = sides.file().find_changes(commit - 1, commit, add);
  if (e != 0) return no_places(op, e);
  if (!op.file->sparse) return {};
  std::ranges::sort(regions);
  regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
  for (const std::uint64_t r : regions) {
    constexpr std::uint64_t n = checksum_file::region_chunks;
    const failure f = trim(op, {r * n, (r + 1) * n});
    if (!f) continue;
    // It has gone back, whatever comes of its space.
    detail::log_error("what came after a commit was forgotten, and its space was not given back: " + f.what);
    break;
  }
  return {};
}

failure commit_operations::find_changes(operation& op, std::uint64_t end) {
  constexpr std::uint64_t region_bytes = checksum_file::region_chunks * chunk_size;
  std::vector<byte_interval>& all = op.answer->ranges;
  const int e = op.target->sides().file().find_changes(op.since, op.file->commit, [&](std::uint64_t region) {
    const byte_interval r{region * region_bytes, std::min((region + 1) * region_bytes, end)};
    if (r.begin >= end) return;
    if (!all.empty() && (all.back().end == r.begin || all.size() == most_ranges))
      all.back().end = r.end;
    else
      all.push_back(r);
  });
  return e == 0 ? failure{} : no_places(op, e);
}

failure commit_operations::trim(operation& op, chunk_range chunks) {
  chunk_places newest, committed;
  int e = newest.find(*op.target, {&chunks, 1});
  if (e == 0) e = committed.find(*op.target, {&chunks, 1}, op.file->commit);
  if (e != 0) return no_places(op, e);
  const auto other = [&](std::uint64_t c) { return place_of(c, committed.of(c) == place_of(c, 0) ? 1 : 0); };
  const auto is_free = [&](std::uint64_t c) { return newest.of(c) == committed.of(c); };
  for (std::uint64_t c = chunks.first; c < chunks.end;) {
    std::uint64_t n = 1;
    if (is_free(c)) {
      while (c + n < chunks.end && is_free(c + n) && other(c + n) == other(c) + n) ++n;
      if (failure f = punch(op, other(c), n)) return f;
    }
    c += n;
  }
  return {};
}

failure commit_operations::punch(operation& op, std::uint64_t place, std::uint64_t chunks) {
  constexpr int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const auto at = static_cast<off_t>(place * chunk_size), bytes = static_cast<off_t>(chunks * chunk_size);
  int e = 0;
  do e = ::fallocate(op.target->data(), how, at, bytes) == 0 ? 0 : errno;
  while (e == EINTR);
  return e == 0 ? failure{} : failed(op, e, "giving back what counts no more");
}

int commit_operations::find(const operation& op, std::span<const chunk_range> chunks, chunk_places& places) const {
  return places.find(*op.target, chunks, op.file->at_commit ? op.file->commit : chunk_places::newest);
}

failure commit_operations::choose(operation& op, std::span<const chunk_range> chunks, const checksum_header& h,
                                  chunk_places& places) {
  if (!op.target->sides()) return {};
  if (failure lost = lost_with_power(op)) return lost;
  int error = h.commit > op.file->commit ? ESTALE : 0;
  if (error == 0) error = places.choose(*op.target, chunks, op.file->commit);
  return error == 0 ? failure{} : no_places(op, error);
}

failure commit_operations::settle(operation& op, const chunk_places& places) {
  const int e = places.settle(*op.target);
  return e == 0 ? failure{} : no_places(op, e);
}

failure commit_operations::clear(operation& op, chunk_range chunks, const checksum_header& h,
                                 const chunk_places& places) {
  for (std::uint64_t c = chunks.first; c < chunks.end;) {
    const std::uint64_t n = places.run(c, chunks.end - c);
    int e = op.target->touch(places.of(c), n, h);
    if (e == 0) e = op.target->sums().clear(places.of(c), places.of(c) + n);
    if (e != 0) return failed(op, e, "clearing checksums");
    if (const failure f = op.file->sparse ? punch(op, places.of(c), n) : failure{})
      detail::log_error("what was cut off was forgotten, and its space was not given back: " + f.what);
    c += n;
  }
  return {};
}

failure commit_operations::lost_with_power(const operation& op) {
  if (op.file->at_commit || !op.target->sides().roll_back_due(*op.target)) return {};
  return failed(op, EIO,
                "the machine went down before what was written after " + numbered(op.file->commit) +
                    " was durable; close the array and open it again: it goes back to that commit");
}

failure commit_operations::no_longer_there(const operation& op) {
  if (!op.file->at_commit) return {};
  checksum_header h;
  if (const int e = op.target->read_header(h)) return failed(op, e, "reading the header of its checksums");
  return h.commit > op.file->commit ? no_places(op, ESTALE) : failure{};
}

failure commit_operations::no_places(const operation& op, int error) {
  if (error == EBADMSG) return damaged(op, "its file of sides ('.side') is damaged");
  if (error != ESTALE) return failed(op, error, "its file of sides ('.side')");
  checksum_header h;
  const bool known = op.target->read_header(h) == 0;
  std::string later;
  if (known && h.commit > op.file->commit) later = ": what is there was written after " + numbered(h.commit);
  failure f = failed(op, ESTALE, numbered(op.file->commit) + " is no longer kept" + later + "; open the array again");
  f.code = errc::conflict;
  return f;
}

failure commit_operations::forget_end(operation& op, io_worker& w, std::uint64_t before, std::uint64_t after) {
  checksum_header h;
  if (const int e = op.target->mark_unsynced(h, op.file->commit)) return failed(op, e, "marking the stripe object");
  // Where nothing was written there is nothing to forget.
  std::vector<chunk_range> written;
  for (std::uint64_t c = after / chunk_size; c < in_chunks(before);) {
    const std::uint64_t region = c / checksum_file::region_chunks;
    const std::uint64_t end = std::min(in_chunks(before), (region + 1) * checksum_file::region_chunks);
    side_bits bits;
    bool there = false;
    const int e = op.target->sides().file().read_present(region, bits, there);
    if (e != 0) return no_places(op, e);
    if (there) written.push_back({c, end});
    c = end;
  }
  if (written.empty()) return {};
  chunk_places places;
  if (failure e = choose(op, written, h, places)) return e;
  const std::uint64_t kept_in_part = after / chunk_size;
  if (after % chunk_size != 0 && written.front().first == kept_in_part) {
    stripe_object_writer writer(w, *op.target, *op.file, op.stripe_index, places, h);
    if (const object_error e = writer.erase_tail(kept_in_part, after % chunk_size)) return failed(op, e);
    if (++written.front().first == written.front().end) written.erase(written.begin());
  }
  for (const chunk_range& r : written)
    if (failure e = clear(op, r, h, places)) return e;
  return settle(op, places);
}

failure commit_operations::check(operation& op, io_worker& w, chunk_range chunks) {
  chunk_places newest, committed;
  int error = newest.find(*op.target, {&chunks, 1});
  if (error == 0 && !newest.are_chunks()) error = committed.find(*op.target, {&chunks, 1}, op.file->commit);
  const bool has_committed = error == 0 && !newest.are_chunks();
  if (error == ESTALE) error = 0;         // there are later ones, which nobody has told of yet
  if (error == EBADMSG && !op.claimed) {  // perhaps a writer was in between
    for (std::uint64_t c = chunks.first; c < chunks.end; ++c) op.bad.push_back({c, verdict::corrupt});
    return {};
  }
  if (error != 0) return no_places(op, error);
  const std::uint64_t written_before = op.answer->report.chunks;
  stripe_object_reader reader(w, *op.target, *op.file, op.stripe_index, newest);
  stripe_object_reader second(w, *op.target, *op.file, op.stripe_index, committed);
  for (std::uint64_t c = chunks.first; c < chunks.end;) {
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(w.bounce_chunks(), chunks.end - c));
    object_error e = reader.check(c, n, op.answer->report.chunks, op.bad);
    std::uint64_t counted_before = 0;
    for (std::uint64_t i = c; !e && has_committed && i < c + n; ++i)
      if (committed.of(i) != newest.of(i)) e = second.check(i, 1, counted_before, op.bad);
    if (e) return failed(op, e);
    c += n;
  }
  if (op.claimed) op.answer->report.chunks = written_before;
  return {};
}

}  // namespace ooc::storage
