#include "storage/object/stripe_object_writer.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "storage/base/whole_transfer.hpp"
#include "storage/layout/fill_pattern.hpp"

namespace ooc::storage {
namespace {

constexpr std::size_t written_slots = 1024;

bool needs_base(const chunk_slot& s) noexcept { return s.bounced && s.covered < chunk_size; }

}  // namespace

object_error stripe_object_writer::write(std::span<const region> regions, const std::byte* memory,
                                         const std::uint32_t* given) {
  // The engine's lists serve both directions; memory and sums are not written to in this one.
  auto* sums = const_cast<std::uint32_t*>(given);
  assert(!overlap(regions));
  const bool any_memory = !s_.direct();
  for (const region& p : regions) {
    std::uint64_t at = p.node_offset;
    while (at < p.node_end()) {
      const std::byte* const from = memory + p.memory_offset + (at - p.node_offset);
      const std::uint64_t within = at % chunk_size;
      const std::uint64_t left = p.node_end() - at;
      const std::uint64_t chunk = at / chunk_size;
      const bool whole = within == 0 && left >= chunk_size;
      const bool same = !w_.slots.empty() && w_.slots.back().bounced && w_.slots.back().place == places_.of(chunk);
      // A chunk that has been begun must be finished in its batch.
      if (!same && (planned_ >= io_worker::batch_chunks || w_.slots.size() >= written_slots))
        if (const object_error e = flush()) return e;
      if (whole && (any_memory || aligned(from))) {
        const std::uint64_t n = places_.run(chunk, std::min(left / chunk_size, io_worker::batch_chunks - planned_));
        plan_slot(chunk, {0, static_cast<std::uint32_t>(n), 0, const_cast<std::byte*>(from), false, sums});
        if (sums != nullptr) sums += n;
        at += n * chunk_size;
        continue;
      }
      if (!same) {
        if (bounced_ == w_.bounce_chunks())
          if (const object_error e = flush()) return e;
        plan_slot(chunk, {0, 1, 0, w_.bounce_chunk(bounced_++), true, whole ? sums : nullptr});
        if (whole && sums != nullptr) ++sums;
      }
      const std::uint64_t n = std::min(chunk_size - within, left);
      chunk_slot& slot = w_.slots.back();
      slot.covered += static_cast<std::uint32_t>(n);
      assert(slot.bounced && slot.place == places_.of(chunk) && slot.covered <= chunk_size);
      patches_.push_back({slot.at + within, from, n});
      at += n;
    }
  }
  return flush();
}

object_error stripe_object_writer::erase_tail(std::uint64_t chunk, std::uint64_t from) {
  assert(from < chunk_size);
  checksum_entry e;
  if (const int error = s_.sums().read(places_.base(chunk), {&e, 1}))
    return {error, verdict::good, chunk * chunk_size, "reading checksums"};
  if (e == checksum_entry{} && places_.base(chunk) == places_.of(chunk)) return {};
  std::byte pattern[chunk_size];
  const std::uint64_t at = chunk * chunk_size + from;
  fill_object_bytes(f_, stripe_index_, at, {pattern, chunk_size - from});
  const region p{at, 0, chunk_size - from};
  past_end_ = true;
  return write({&p, 1}, pattern);
}

void stripe_object_writer::plan_slot(std::uint64_t chunk, chunk_slot slot) {
  slot.place = places_.of(chunk);
  slot.base = places_.base(chunk);
  assert(!places_.are_chunks() || w_.slots.empty() || slot.place >= w_.slots.back().place + w_.slots.back().count);
  w_.slots.push_back(slot);
  planned_ += slot.count;
}

// Calls f(slot, entry, place, bytes) for every chunk of the batch.
template <class F>
void stripe_object_writer::each_chunk(F&& f) {
  auto entry = w_.sums.begin();
  for (const chunk_slot& slot : w_.slots)
    for (std::uint32_t i = 0; i < slot.count; ++i, ++entry) f(slot, *entry, slot.place + i, slot.at + i * chunk_size);
}

// Calls f(slot, bytes) for every chunk that the request covers in part.
template <class F>
void stripe_object_writer::each_partial(F&& f) {
  for (const chunk_slot& slot : w_.slots)
    if (needs_base(slot)) f(slot, slot.at);
}

object_error stripe_object_writer::flush() {
  if (w_.slots.empty()) return {};
  if (!places_.are_chunks()) w_.sort_slots();  // entries and extents of a batch stand in the order of its slots
  const auto failed = [this](int e, const char* step) {
    return object_error{e, verdict::good, offset_of(w_.slots.front().place), step};
  };
  object_error error;
  bool untouched = false;
  if (const int e = w_.load_sums(s_, untouched)) error = failed(e, "reading checksums");
  assert(error || w_.sums.size() == planned_);
  if (!error) forget_cut_off();
  if (!error) error = resolve();
  if (!error) error = load_bases();
  if (!error) error = log_bases();
  if (!error && untouched)
    if (const int e = touch_regions()) error = failed(e, "preparing checksums");
  if (!error) {
    for (const patch& p : patches_) std::memcpy(p.to, p.from, p.bytes);
    // (a) what was, and what will be
    each_chunk([](const chunk_slot& slot, checksum_entry& e, std::uint64_t place, const std::byte* bytes) {
      e.next = slot.sums != nullptr ? slot.sums[place - slot.place] : chunk_sum(bytes);
    });
    if (const int e = put_sums()) error = failed(e, "writing checksums");
  }
  if (!error) {
    // (b) the data
    w_.plan.clear();
    for (const chunk_slot& slot : w_.slots) w_.plan.add(slot.place * chunk_size, slot.at, slot.count * chunk_size);
    w_.run(s_, direction::write);
    error = w_.first_error("writing data", places_);
    // (c) what is
    if (error) settle_failed();
    each_chunk([&](const chunk_slot&, checksum_entry& e, std::uint64_t, const std::byte*) {
      if (!error) e.current = e.next;
    });
    if (const int e = put_sums(); e != 0 && !error) error = failed(e, "writing checksums");
  }
  w_.plan.clear();
  w_.slots.clear();
  patches_.clear();
  bounced_ = 0;
  planned_ = 0;
  return error;
}

int stripe_object_writer::touch_regions() {
  for (const chunk_slot& slot : w_.slots)
    if (const int e = s_.touch(slot.place, slot.count, header_)) return e;
  return 0;
}

// Chunks that somebody has cut off since the request was made have no entries any more, and were never written.
void stripe_object_writer::forget_cut_off() {
  each_chunk([&](const chunk_slot&, checksum_entry& e, std::uint64_t place, const std::byte*) {
    const std::uint32_t seed = s_.sums().seeds().of_chunk(place);
    if (place >= header_.chunks && e == checksum_entry{seed, seed}) e = {};
  });
}

// Overwrites that a crash cut short: `current` becomes what is on disk, so that the coming
// overwrite starts from a value that is true.  A torn chunk keeps its entry; only a whole overwrite
// mends it.
object_error stripe_object_writer::resolve() {
  object_error error;
  each_chunk([&](const chunk_slot&, checksum_entry& e, std::uint64_t place, const std::byte*) {
    if (error || e.settled()) return;
    if (const int failed = settle(place, e, e.next)) error = {failed, verdict::good, offset_of(place), "reading data"};
  });
  return error;
}

// Looks at a chunk: `e` becomes {sum, sum} if the data are the old ones or `intended`, {0, 0} if a
// first write left nothing that counts, and stays if the chunk is torn.
int stripe_object_writer::settle(std::uint64_t place, checksum_entry& e, std::uint32_t intended) {
  const auto look = [&] { return read_whole(s_.data(), w_.spare(), chunk_size, place * chunk_size); };
  const bool direct = s_.direct();
  int failed = look();
  if (failed == EINVAL && direct && s_.give_up_direct() == 0) failed = look();
  if (failed != 0) return failed;
  const std::uint32_t sum = chunk_sum(w_.spare());
  if (sum == intended || sum == e.current)
    e = {sum, sum};
  else if (e.current == 0)
    e = {};
  return 0;
}

bool stripe_object_writer::covers_end(const chunk_slot& slot) const noexcept {
  if (past_end_) return false;
  const std::uint64_t end = f_.striping.object_size(stripe_index_, f_.size), begin = offset_of(slot.place);
  return end > begin && end - begin < chunk_size && slot.covered == end - begin;
}

object_error stripe_object_writer::load_bases() {
  w_.plan.clear();
  std::vector<checksum_entry> bases;
  if (const int e = read_bases(bases))
    return {e, verdict::good, offset_of(w_.slots.front().place), "reading checksums"};
  auto base = bases.begin();
  each_partial([&](const chunk_slot& slot, std::byte* bytes) {
    checksum_entry& e = *base++;
    // Nothing is lost that the stripe object has: what follows its last byte is the fill value.
    if (e.settled() && e.current == s_.sums().seeds().of_chunk(slot.base) && covers_end(slot)) e = {};
    if (e.current == 0)
      fill_object_bytes(f_, stripe_index_, offset_of(slot.base), {bytes, chunk_size});
    else
      w_.plan.add(slot.base * chunk_size, bytes, chunk_size);
  });
  if (w_.plan.extents.empty()) return {};
  w_.run(s_, direction::read);
  constexpr const char* step = "reading the rest of a partly written chunk";
  object_error error = w_.first_error(step, places_);
  base = bases.begin();
  each_partial([&](const chunk_slot& slot, std::byte* bytes) {
    const checksum_entry e = *base++;
    if (error || e.current == 0) return;
    const verdict v = judge(e, chunk_sum(bytes), s_.sums().seeds().of_chunk(slot.base));
    if (v != verdict::good) error = {0, v, offset_of(slot.base), step};
  });
  return error;
}

// The entries of what those chunks leave as it is that are written in part.
int stripe_object_writer::read_bases(std::vector<checksum_entry>& bases) {
  int error = 0;
  each_chunk([&](const chunk_slot& slot, checksum_entry& e, std::uint64_t place, std::byte*) {
    if (error != 0 || !needs_base(slot)) return;
    checksum_entry base = e;
    if (slot.base != place) {
      error = s_.sums().read(slot.base, {&base, 1});
      if (error == 0 && !base.settled()) error = settle(slot.base, base, base.next);
    }
    bases.push_back(base);
  });
  return error;
}

object_error stripe_object_writer::log_bases() {
  if ((header_.flags & checksum_header::synced_once) == 0 || s_.sides()) return {};
  std::vector<undo_image> images;
  each_chunk([&](const chunk_slot& slot, checksum_entry& e, std::uint64_t place, std::byte* bytes) {
    if (needs_base(slot)) images.push_back({place, e.current, bytes});
  });
  if (images.empty()) return {};
  if (const int e = s_.undo().log(header_.syncs, images))
    return {e, verdict::good, images.front().chunk * chunk_size, "writing the undo log"};
  return {};
}

// Writes the batch's entries; exactly those, for the ones between belong to others.
int stripe_object_writer::put_sums() {
  std::size_t first_entry = 0;
  for (std::size_t i = 0; i < w_.slots.size();) {
    const std::uint64_t first = w_.slots[i].place;
    std::uint64_t end = first;
    for (; i < w_.slots.size() && w_.slots[i].place == end; ++i) end += w_.slots[i].count;
    const std::size_t n = end - first;
    if (const int e = s_.sums().write(first, std::span(w_.sums).subspan(first_entry, n))) return e;
    first_entry += n;
  }
  return 0;
}

void stripe_object_writer::settle_failed() {
  auto extent = w_.plan.extents.begin();
  each_chunk([&](const chunk_slot&, checksum_entry& e, std::uint64_t place, const std::byte*) {
    const std::uint64_t at = place * chunk_size;
    while (at >= extent->offset + extent->bytes) ++extent;
    // Where even looking fails, the entry keeps both values and a reader decides.
    if (extent->error == 0)
      e.current = e.next;
    else
      settle(place, e, e.next);
  });
}

}  // namespace ooc::storage
