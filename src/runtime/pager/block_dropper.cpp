#include "runtime/pager/block_dropper.hpp"

#include <vector>

#include "runtime/pager/signals.hpp"

namespace ooc::detail {

namespace {

/// Of the grains that a block which becomes whole takes over; nobody writes to them meanwhile.
bool has_modified_parts(const frame& f) noexcept OOC_REQUIRES(pager_mutex) {
  for (const frame* part = f.parts; part; part = part->next)
    if (part->dirty.load(std::memory_order_relaxed)) return true;
  return false;
}

}  // namespace

segment::invalidated block_dropper::invalidate(segment_state& s, std::span<const block_range> which, bool discard) {
  std::vector<block_index> resident;
  {
    guarded_lock g(state_.mutex());
    for (frame* f = s.resident; f; f = f->segment_next) {
      if (!contains(which, f->block)) continue;
      if (f->pins) return segment::invalidated::pinned;
      if (!discard && f->dirty.load(std::memory_order_relaxed)) return segment::invalidated::dirty;
      resident.push_back(f->block);
    }
  }
  auto result = segment::invalidated::done;
  for (block_index b : resident)
    if (const auto r = drop(s, b, discard); r != segment::invalidated::done) result = r;
  return result;
}

// Forgets one block; one that is being loaded is dropped on arrival.  One that was pinned since
// invalidate() looked, or modified by a touch that it should have been spared, stays.
segment::invalidated block_dropper::drop(segment_state& s, block_index index, bool discard) {
  block& b = s.at(index);
  for (;;) {
    {
      guarded_lock g(state_.mutex());
      const block_state state = b.state();
      if (state == block_state::out || state == block_state::queued || state == block_state::in_grains)
        return segment::invalidated::done;
      if (state == block_state::loading) {
        // Grains that were written since invalidate() looked at them are on their way into the block.
        if (!discard && has_modified_parts(*s.frame_of(b))) return segment::invalidated::dirty;
        if (!s.frame_of(b)->stale.exchange(true)) count_invalidated(s);
        return segment::invalidated::done;
      }
      if (!is_transient(state)) {
        if (!b.try_take(state)) continue;
        frame* f = s.frame_of(b);
        if (f->copying) {
          b.publish(state);
          state_.changed.wait(g);
          continue;
        }
        const bool modified = !discard && f->dirty.load(std::memory_order_relaxed);
        if (f->pins || modified) {
          b.publish(state);
          return modified ? segment::invalidated::dirty : segment::invalidated::pinned;
        }
        state_.memory.order().forget(f);
        if (state != block_state::ready) {
          g.unlock();
          state_.memory.drop_bytes(f, access_in(state));
          g.lock();
        }
        state_.memory.release(f);
        state_.memory.trace.note(traced::dropped, s.traced_as, index);
        state_.waiters.made_evictable();
        count_invalidated(s);
        return segment::invalidated::done;
      }
    }
    const std::uint32_t word = b.word.load(std::memory_order_acquire);
    if (is_transient(state_of(word)) && state_of(word) != block_state::loading) b.wait(word, false);
  }
}

// A block in memory is marked where its next touch will be a fault, which uses the mark up; it counts if the block is
// evicted before.  So the access to a block that may be read is taken away: a read that nobody sees would leave the
// mark, and a later write of a part would then store zeros in place of what was read.  A pinned block is not marked.
void block_dropper::promise(segment_state& s, std::span<const block_range> which) {
  signals_blocked no_signals;
  for (const block_range& r : which)
    for (block_index i = r.first; i < r.last; ++i) {
      // The elements that others wrote beside the box must be there to compare with.
      if (s.twinned(i) || !s.may_write(i)) continue;
      block& b = s.at(i);
      state_.memory.trace.note(traced::promised, s.traced_as, i);
      const block_state state = b.state();
      if (state == block_state::loading) {
        unique_lock l(state_.mutex());
        if (b.state() == block_state::loading) drop_partial(s.frame_of(b));
        continue;
      }
      if (is_transient(state) || state == block_state::rw || state == block_state::in_grains || !b.try_take(state))
        continue;
      if (state == block_state::out) {
        b.promised.store(1, std::memory_order_relaxed);
        b.publish(state);
      } else {
        promise_in_memory(s.frame_of(b), state);
      }
    }
  state_.waiters.made_evictable();
}

// The caller owns the block.
void block_dropper::promise_in_memory(frame* f, block_state state) noexcept {
  block& b = f->segment->at(f->block);
  unique_lock l(state_.mutex());
  b.promised.store(f->pins == 0, std::memory_order_relaxed);
  if (f->partial) {
    state_.memory.release(f);
  } else if (state == block_state::ro && f->pins == 0) {
    const block_state now = state_.memory.ageing().take_access(l, f, state);
    if (now == block_state::busy)
      b.promised.store(0, std::memory_order_relaxed);
    else
      b.publish(now);
  } else {
    b.publish(state);
  }
}

void block_dropper::clear_promises(segment_state& s, std::span<const block_range> which) {
  for (const block_range& r : which)
    for (block_index b = r.first; b < r.last; ++b) s.at(b).promised = 0;
  guarded_lock g(state_.mutex());
  for (frame *f = s.resident, *next; f; f = next) {
    next = f->segment_next;
    if (contains(which, f->block)) drop_partial(f);
  }
  state_.waiters.made_evictable();
}

// Forgets a block that nobody has touched and that holds, or will hold, only what lay outside a
// promise.
void block_dropper::drop_partial(frame* f) noexcept {
  block& b = f->segment->at(f->block);
  if (b.state() == block_state::loading) {
    if (f->partial) f->stale = true;
  } else if (b.try_take(block_state::ready)) {
    if (f->partial)
      state_.memory.release(f);
    else
      b.publish(block_state::ready);
  }
}

void block_dropper::drop_all(unique_lock& l, segment_state& s) {
  while (frame* f = s.resident) {
    block& b = s.at(f->block);
    const std::uint32_t word = b.word.load(std::memory_order_acquire);
    const block_state state = state_of(word);
    if (is_transient(state)) {  // another thread lets it age or evicts it
      const unlocked gap(l, state_.mutex());
      b.wait(word, false);
      continue;
    }
    if (!b.try_take(state)) continue;
    state_.memory.order().forget(f);
    if (state != block_state::ready) {
      const unlocked gap(l, state_.mutex());
      state_.memory.drop_bytes(f, access_in(state));
    }
    state_.memory.release(f);
  }
}

void block_dropper::count_invalidated(const segment_state& s) noexcept {
  state_.memory.count(s, &counters::blocks_invalidated);
  state_.memory.count(s, &counters::bytes_invalidated, s.block_bytes());
}

}  // namespace ooc::detail
