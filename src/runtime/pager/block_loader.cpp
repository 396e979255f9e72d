#include "runtime/pager/block_loader.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/pager/signals.hpp"

namespace ooc::detail {

bool block_loader::start_miss(unique_lock& l, const touch_event& e) {
  block& b = e.segment->at(e.block);
  if (b.state() != block_state::queued) return true;
  frame* f = state_.memory.obtain(l, *e.segment);
  if (!f) {
    // A segment with a limit of its own may have nothing but dirty blocks, all of them active.
    const segment_state& s = *e.segment;
    if (s.options.max_resident && s.resident_count >= s.options.max_resident && s.transfers == 0)
      writer_.clean_oldest(l, &s);
    return false;
  }
  state_.memory.assign(f, *e.segment, e.block);
  const bool promised = e.kind == touch::write && b.promised.load(std::memory_order_relaxed);
  state_.transfer_begins(*e.segment);
  b.advance(block_state::loading);
  start_load(l, f, promised ? load_part::outside_promise : load_part::whole);
  return true;
}

bool block_loader::load_inline(segment_state& s, block_index index) noexcept {
  block& b = s.at(index);
  frame* f = nullptr;
  {
    grain_hold hold(s, index);
    if (!hold || !b.try_take(block_state::out)) return false;
    unique_lock l(state_.mutex());
    f = state_.memory.obtain(l, s);
    if (!f) {
      b.publish(block_state::out);
      return false;
    }
    state_.memory.assign(f, s, index);
    f->partial = f->zeroed = false;
    state_.transfer_begins(s);
    b.advance(block_state::loading);
  }
  state_.memory.mapping().about_to_wait();
  f->cls->mapping->before_load(f);
  const std::uint64_t bytes = s.source->load_inline(index, f->memory);
  if (bytes > 0) count_read(s, index, bytes);
  const unique_lock l(state_.mutex());
  // A block that was invalidated meanwhile is loaded anew by another thread: not in a fault handler.
  const bool good = bytes > 0 && !f->stale.exchange(false);
  if (good) {
    state_.memory.order().make_active(f);
    b.publish(block_state::ready);
  } else {
    const grain_hold stay(s, index);  // the block of a grain, for who tries another way next
    state_.memory.release(f);
  }
  state_.transfer_ends(s);
  return good;
}

bool block_loader::fetch(unique_lock& l, segment_state& s, std::span<const block_index> which, arrival then) {
  std::array<frame*, most_together> frames;
  std::size_t n = 0;
  frame* to_be_touched = nullptr;
  bool room = true;
  for (const block_index index : which) {
    if (index >= std::min(s.blocks.load(std::memory_order_relaxed), s.held_off))
      continue;  // cut off since it was wanted
    block& b = s.at(index);
    const load_part part = b.promised.load(std::memory_order_relaxed) ? load_part::outside_promise : load_part::whole;
    if (s.source->nothing_to_load(index, part)) continue;
    grain_hold hold(s, index);
    if (!hold) continue;
    const bool taken = b.try_take(block_state::out);
    frame* const f = taken ? state_.memory.obtain_ahead(l, s) : nullptr;
    if (!f) {
      if (taken) b.publish(block_state::out);
      hold.end();
      state_.memory.tables().grain_left(s, index);
      room = !taken;
      if (taken) break;
      continue;
    }
    state_.memory.assign(f, s, index);
    f->past.read_ahead = then != arrival::due;
    state_.memory.count(s, f->past.read_ahead ? &counters::read_ahead_blocks : &counters::faults);
    if (!f->past.read_ahead) state_.memory.trace.note(traced::called_in, s.traced_as, index);
    state_.transfer_begins(s);
    b.advance(block_state::loading);
    // obtain() released the lock: the promise may have been taken back meanwhile.
    if (part == load_part::outside_promise && b.promised.load(std::memory_order_relaxed)) {
      start_load(l, f, part);
      continue;
    }
    frames[n++] = f;
    if (then != arrival::maps_itself) continue;
    f->past.maps_itself = to_be_touched && to_be_touched->past.stands_for < most_for_a_touch;
    if (f->past.maps_itself)
      ++to_be_touched->past.stands_for;
    else
      to_be_touched = f;
  }
  if (n == 1) start_load(l, frames[0], load_part::whole);
  if (n > 1) start_joint_load(l, s, {frames.data(), n});
  return room;
}

// The block is `loading`, the frame is its own, and the transfer has been counted.
void block_loader::start_load(unique_lock& l, frame* f, load_part part) {
  f->partial = part == load_part::outside_promise;
  segment_state& s = *f->segment;
  assert(s.at(f->block).state() == block_state::loading && s.transfers > 0);
  state_.call_begins(s);
  {
    const unlocked gap(l, state_.mutex());
    load(f, part);
  }
  state_.call_ends(s);
}

void block_loader::load(frame* f, load_part part) {
  segment_state& s = *f->segment;
  const block_index b = f->block;
  f->cls->mapping->before_load(f);
  if (part == load_part::outside_promise && !f->zeroed) std::memset(f->memory, 0, s.block_bytes());
  f->zeroed = false;
  if (s.source->nothing_to_load(b, part)) {
    on_loaded(f, {}, 0);
    return;
  }
  try {
    s.source->load(b, part, f->memory, [this, f](const failure& r, std::uint64_t bytes) { on_loaded(f, r, bytes); });
  } catch (const std::exception& e) {
    on_loaded(f, {std::make_error_code(std::errc::not_enough_memory), e.what()}, 0);
  }
}

void block_loader::on_loaded(frame* f, const failure& result, std::uint64_t bytes) {
  const signals_blocked no_signals;
  if (bytes > 0) count_read(*f->segment, f->block, bytes);
  if (f->merging && !result && !f->stale.load()) grains::take_over(f);
  unique_lock l(state_.mutex());
  segment_state& s = *f->segment;
  block& b = s.at(f->block);
  const bool stale = !result && f->stale.exchange(false);
  if (f->merging && result) {
    grains_.undo_merge(f);
    state_.transfer_ends(s);
    return;
  }
  if (f->merging) grains_.end_merge(f, !stale);
  const std::uint32_t word = b.word.load(std::memory_order_acquire);
  assert(state_of(word) == block_state::loading && s.frame_of(b) == f);
  if (result) {
    if (word & fault_bit) {
      // The threads that wait for it sleep on until the service thread ends the process.
      state_.fail(described(s, f->block, "cannot be read", result));
    } else {
      if (word & waiters_bit) s.load_errors[f->block] = described(s, f->block, "cannot be read", result);
      f->past.read_ahead = false;
      state_.memory.release(f);
    }
  } else if (stale) {
    // Somebody wants it: once more, now with what the store holds.  Who waits for a grain looks at its
    // block first.
    if ((word & waiters_bit) && !s.parent) {
      f->partial = f->partial && b.promised.load(std::memory_order_relaxed);
      const load_part part = f->partial ? load_part::outside_promise : load_part::whole;
      state_.call_begins(s);
      l.unlock();
      load(f, part);
      l.lock();
      state_.call_ends(s);
      return;
    }
    state_.memory.release(f);
  } else {
    if (!s.load_errors.empty()) s.load_errors.erase(f->block);
    if (f->past.maps_itself) {
      map_ahead(l, f);
    } else {
      if (f->past.read_ahead) state_.memory.trace.note(traced::arrived, s.traced_as, f->block);
      state_.memory.order().make_active(f);
      b.publish(block_state::ready);
    }
  }
  state_.transfer_ends(s);
}

// Without a touch there is no signal, which costs more than the mapping.
void block_loader::map_ahead(unique_lock& l, frame* f) {
  block& b = f->segment->at(f->block);
  b.advance(block_state::busy);
  state_.memory.guess_dirty(f);  // with the lock: a write-back sees it, or comes first
  {
    const unlocked gap(l, state_.mutex());
    state_.memory.map_in(f, f->dirty.load(std::memory_order_relaxed));
  }
  f->past.maps_itself = f->past.read_ahead = false;
  state_.memory.trace.note(traced::mapped_ahead, f->segment->traced_as, f->block);
  state_.memory.order().make_active(f);
  state_.give_back(b, f->dirty.load(std::memory_order_relaxed) ? block_state::rw : block_state::ro);
}

// As start_load(), for whole blocks of one segment.
void block_loader::start_joint_load(unique_lock& l, segment_state& s, std::span<frame* const> frames) {
  std::array<block_place, most_together> places;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    frames[i]->partial = frames[i]->zeroed = false;
    frames[i]->cls->mapping->before_load(frames[i]);
    places[i] = {frames[i]->block, frames[i]->memory};
  }
  state_.call_begins(s);
  try {
    const unlocked gap(l, state_.mutex());
    s.source->load_together({places.data(), frames.size()},
                            [this, all = std::vector<frame*>(frames.begin(), frames.end())](
                                const failure& r, std::uint64_t bytes) { on_joint_load(all, r, bytes); });
  } catch (const std::exception& e) {
    const unlocked gap(l, state_.mutex());
    on_joint_load(frames, {std::make_error_code(std::errc::not_enough_memory), e.what()}, 0);
  }
  state_.call_ends(s);
}

// A failure does not say which block it is about: each is then loaded by itself.
void block_loader::on_joint_load(std::span<frame* const> frames, const failure& result, std::uint64_t bytes) {
  const std::uint64_t each = bytes / frames.size();
  std::uint64_t rest = bytes % frames.size();
  for (frame* f : frames) {
    if (!result) {
      on_loaded(f, {}, each + std::exchange(rest, 0));
      continue;
    }
    count_read(*f->segment, f->block, each + std::exchange(rest, 0));
    signals_blocked no_signals;
    segment_state& s = *f->segment;
    {
      unique_lock l(state_.mutex());
      state_.call_begins(s);
    }
    load(f, load_part::whole);
    {
      unique_lock l(state_.mutex());
      state_.call_ends(s);
    }
  }
}

void block_loader::count_read(segment_state& s, block_index b, std::uint64_t bytes) noexcept {
  state_.memory.count(s, &counters::bytes_read, bytes);
  if (s.at(b).known.exchange(1, std::memory_order_relaxed)) state_.memory.count(s, &counters::bytes_reread, bytes);
}

}  // namespace ooc::detail
