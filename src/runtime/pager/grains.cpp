#include "runtime/pager/grains.hpp"

#include <sched.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "runtime/pager/signals.hpp"

namespace ooc::detail {

// --- out -> in_grains

bool grains::wanted(segment_state& s, block_index b) noexcept {
  if (s.at(b).promised.load(std::memory_order_relaxed)) return false;
  return s.past.comes_in_grains(b, state_.bytes_to_stay() <= state_.memory.pool().budget());
}

bool grains::begin(segment_state& s, block_index index, bool ahead) noexcept {
  assert(s.grains && !s.parent && index < s.blocks);
  block& b = s.at(index);
  const unique_lock l(state_.mutex());
  if (b.state() != block_state::out) return true;
  if (!wanted(s, index) || (ahead && index >= s.held_off)) return false;
  if (!b.try_take(block_state::out)) return true;
  if (b.promised.load(std::memory_order_relaxed)) {  // since the look above
    b.publish(block_state::out);
    return false;
  }
  b.stays_in_grains = 0;  // by now it may be read
  state_.memory.tables().begin(*s.grains, index);
  state_.memory.trace.note(traced::in_grains, s.traced_as, index);
  b.publish(block_state::in_grains);
  return true;
}

// --- in_grains -> loading

bool grains::filled_up(const segment_state& g, block_index grain) noexcept {
  return g.block_of(grain).grains >= g.grains_in_block / 2;
}

frame* grains::merge(unique_lock& l, segment_state& g, block_index grain) {
  segment_state& s = *g.parent;
  const block_index index = grain / g.grains_in_block;
  block& b = s.at(index);
  const block_range of = s.grains_of({index, index + 1});
  if (b.stays_in_grains) return nullptr;
  frame* const f = state_.memory.obtain_ahead(l, s);
  if (!f) return nullptr;
  if (index >= s.held_off || !b.try_take(block_state::in_grains)) {
    state_.memory.abandon(f);
    state_.waiters.made_evictable();
    return nullptr;
  }
  if (!take_parts(l, g, of)) {
    state_.memory.abandon(f);
    state_.give_back(b, block_state::in_grains);
    state_.memory.tables().end_if_empty(g, index);  // a grain may have gone meanwhile
    return nullptr;
  }
  assert(s.grains == &g && !f->merging && !f->parts);
  f->merging = true;
  for (frame* part : parts_) f->parts = (part->next = f->parts, part);
  state_.memory.assign(f, s, index);
  s.past.filled();
  state_.memory.trace.note(traced::whole, s.traced_as, index);
  state_.transfer_begins(s);
  b.advance(block_state::loading);
  return f;
}

// Takes all grains that are in memory, unmapped; false, and takes none, where one is being written or
// somebody is busy with it.
bool grains::take_parts(unique_lock& l, segment_state& g, const block_range& of) {
  parts_.clear();
  for (block_index i = of.first; i < of.last; ++i) {
    const block_state now = g.at(i).state();
    if (now == block_state::writing || now == block_state::flush || now == block_state::busy) return false;
    if (!is_transient(now) && now != block_state::out && g.frame_of(g.at(i))->pins) return false;
  }
  std::vector<block_state> was;
  bool all = true;
  for (block_index i = of.first; all && i < of.last; ++i) {
    block& x = g.at(i);
    const block_state now = x.state();
    if (now == block_state::out) continue;
    if (now == block_state::queued) {
      x.publish(block_state::out);  // who waits finds the block instead
    } else if (now == block_state::loading) {
      g.frame_of(x)->stale = true;
    } else if (!is_transient(now) && x.try_take(now)) {
      frame* const part = g.frame_of(x);
      if (part->pins || part->copying) {
        x.publish(now);
        all = false;
        break;
      }
      state_.memory.order().forget(part);
      parts_.push_back(part);
      was.push_back(now);
    } else {
      all = false;
    }
  }
  {
    const unlocked gap(l, state_.mutex());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (was[i] == block_state::ready) continue;
      if (state_.memory.map_out(parts_[i], access_in(was[i])))
        was[i] = block_state::ready;
      else
        all = false;  // the kernel holds it
    }
  }
  if (all) return true;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    state_.memory.order().make_active(parts_[i]);
    g.at(parts_[i]->block).publish(was[i]);
  }
  return false;
}

// They are in no list, and nobody else's.
void grains::take_over(frame* f) noexcept OOC_NO_THREAD_SAFETY_ANALYSIS {
  assert(f->merging);
  const std::size_t n = f->parts ? f->parts->cls->bytes : 0;
  for (const frame* part = f->parts; part; part = part->next)
    std::memcpy(f->memory + part->block % part->segment->grains_in_block * n, part->memory, n);
}

void grains::end_merge(frame* f, bool taken_over) noexcept {
  assert(f->merging && is_transient(f->segment->at(f->block).state()));
  f->merging = false;
  for (frame *part = std::exchange(f->parts, nullptr), *next; part; part = next) {
    next = std::exchange(part->next, nullptr);
    if (taken_over && part->dirty.load(std::memory_order_relaxed)) state_.memory.mark_dirty(f);
    assert(part->segment == f->segment->grains && !part->pins && !part->copying);
    part->past.read_ahead = false;
    state_.memory.release(part);
  }
  state_.memory.tables().end_if_empty(*f->segment->grains, f->block);
}

void grains::undo_merge(frame* f) noexcept {
  assert(f->merging && is_transient(f->segment->at(f->block).state()));
  f->merging = false;
  block& b = f->segment->at(f->block);
  for (frame *part = std::exchange(f->parts, nullptr), *next; part; part = next) {
    next = std::exchange(part->next, nullptr);
    state_.memory.order().make_inactive(part);
    part->segment->at(part->block).publish(block_state::ready);
  }
  b.stays_in_grains = 1;
  const segment_state& s = *f->segment;
  const block_index index = f->block;
  state_.memory.abandon(f);
  state_.memory.tables().begin(*s.grains, index);  // the last of its grains that were forgotten may have ended it
  b.publish(block_state::in_grains);
  state_.memory.tables().end_if_empty(*s.grains, index);
}

bool grains::take_out(segment_state& g, block_index index) noexcept {
  grain_hold hold(g, index);
  if (!hold) return false;
  if (g.at(index).try_take(block_state::out)) return true;
  const guarded_lock l(state_.mutex());
  hold.end();
  state_.memory.tables().grain_left(g, index);
  return false;
}

void grains::let_in(segment_state& g, block_index index) noexcept {
  g.at(index).publish(block_state::out);
  const guarded_lock l(state_.mutex());
  state_.memory.tables().grain_left(g, index);
}

// --- in_grains -> out

failure grains::leave(segment_state& s, std::span<const block_range> which) {
  if (!s.grains) return {};
  for (const block_range& r : which)
    for (block_index b = r.first; b < std::min(r.last, s.blocks.load()); ++b)
      if (failure f = leave(s, b)) return f;
  return {};
}

failure grains::leave(segment_state& s, block_index index) {
  block& b = s.at(index);
  for (;;) {
    const std::uint32_t word = b.word.load(std::memory_order_acquire);
    const block_state now = state_of(word);
    if (now == block_state::busy) {
      b.wait(word, false);
      continue;
    }
    if (now != block_state::in_grains) return {};
    const signals_blocked no_signals;
    if (!b.try_take(block_state::in_grains)) {
      ::sched_yield();  // somebody brings a grain in
      continue;
    }
    const failure f = clear(*s.grains, s.grains_of({index, index + 1}));
    const guarded_lock l(state_.mutex());
    if (!f) state_.memory.tables().end(*s.grains, index);
    b.publish(f ? block_state::in_grains : block_state::out);
    return f;
  }
}

// The block is the caller's: no grain comes in any more.
failure grains::clear(segment_state& g, const block_range& of) {
  for (;;) {
    bool all = true;
    for (block_index i = of.first; i < of.last; ++i) all &= let_go(g, i);
    if (all) return {};
    if (failure f = writer_.writeback(g, {&of, 1})) return f;
  }
}

// Drops a grain, or unmaps it where it is modified: false.
bool grains::let_go(segment_state& g, block_index index) {
  block& x = g.at(index);
  for (;;) {
    const std::uint32_t word = x.word.load(std::memory_order_acquire);
    const block_state now = state_of(word);
    if (now == block_state::out) return true;
    if (is_transient(now)) {
      x.wait(word, false);
      continue;
    }
    guarded_lock l(state_.mutex());
    if (!x.try_take(now)) continue;
    frame* const f = g.frame_of(x);
    if (f->pins || f->copying) {
      const std::uint32_t seen = state_.waiters.look();
      x.publish(now);
      const unlocked gap(l, state_.mutex());
      state_.waiters.wait(seen);
      continue;
    }
    state_.memory.order().forget(f);
    if (now != block_state::ready) {
      bool out;
      {
        const unlocked gap(l, state_.mutex());
        out = state_.memory.map_out(f, access_in(now));
      }
      if (!out) {
        state_.memory.give_back_held(f, now);
        return false;
      }
    }
    if (f->dirty.load(std::memory_order_relaxed)) {
      state_.memory.order().make_inactive(f);
      x.publish(block_state::ready);
      return false;
    }
    state_.memory.release(f);
    state_.waiters.made_evictable();
    return true;
  }
}

}  // namespace ooc::detail
