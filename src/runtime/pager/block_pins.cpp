#include "runtime/pager/block_pins.hpp"

#include <cassert>
#include <utility>
#include <vector>

#include "runtime/blocks/untracked.hpp"
#include "runtime/pager/exact_access.hpp"
#include "runtime/pager/signals.hpp"

namespace ooc::detail {
namespace {

/// Whether the block as a whole is not in memory, yet or any more.
bool is_missing(block_state s) noexcept {
  return s == block_state::out || s == block_state::queued || s == block_state::loading || s == block_state::in_grains;
}

}  // namespace

failure block_pins::pin(segment_state& s, std::span<const block_range> which, access_mode mode) {
  if (failure f = budget_.count_pins(s, which)) return f;
  if (failure f = grains_.leave(s, which)) {
    guarded_lock g(state_.mutex());
    budget_.uncount_pins(s, which);
    return f;
  }
  ahead_.fetch(s, which, arrival::due);
  std::vector<block_range> done;  // all or nothing: what to let go of
  for (const block_range& r : which) {
    done.push_back({r.first, r.first});
    for (block_index& b = done.back().last; b < r.last; ++b) {
      failure f = pin_block(s, b, mode == access_mode::write);
      if (!f) continue;
      const block_index reached = b;
      unpin(s, done, mode);
      std::vector<block_range> rest{{reached, r.last}};
      rest.insert(rest.end(), which.begin() + static_cast<std::ptrdiff_t>(done.size()), which.end());
      guarded_lock g(state_.mutex());
      budget_.uncount_pins(s, rest);
      return f;
    }
  }
  return {};
}

void block_pins::unpin(segment_state& s, std::span<const block_range> which, access_mode mode) noexcept {
  guarded_lock g(state_.mutex());
  for (const block_range& r : which)
    for (block_index b = r.first; b < r.last; ++b) {
      frame* f = s.frame_of(s.at(b));
      assert(f->pins > 0 && (mode != access_mode::write || f->write_pins > 0));
      if (mode == access_mode::write) --f->write_pins;
      if (--f->pins == 0) state_.memory.order().make_active(f);
    }
  budget_.uncount_pins(s, which);
  state_.waiters.made_evictable();
}

failure block_pins::bring_in(segment_state& s, std::span<const block_range> which, access_mode mode) {
  for (const block_range& r : which)
    for (block_index b = r.first; b < r.last; ++b)
      if (failure f = bring_in(s, b, mode == access_mode::write ? touch::write : touch::read)) return f;
  return {};
}

// Blocks that are to be read are touched here, one by one: read-ahead goes by the order of touches, and a call that
// brings in more than one block would else wait for them in another order than it touches them.
failure block_pins::bring_in(segment_state& s, block_index index, touch kind) {
  const block& b = s.at(index);
  for (bool waited = false;;) {
    const block_state now = b.state();
    if (now == block_state::ro || now == block_state::rw || now == block_state::flush) return {};
    if (now == block_state::out && kind == touch::write && b.promised.load(std::memory_order_relaxed) &&
        s.source->nothing_to_load(index, load_part::outside_promise))
      return {};
    if (!is_missing(now) && now != block_state::busy) {
      if (kind == touch::read) touch_untracked(s.address(index));
      return {};
    }
    if (failure f = wait_for(s, index, kind, waited)) return f;
  }
}

/// Goes one step towards a block that is in memory, and settled; `waited`: a load of it has been waited for.
failure block_pins::wait_for(segment_state& s, block_index index, touch kind, bool& waited) {
  block& b = s.at(index);
  const std::uint32_t word = b.word.load(std::memory_order_acquire);
  const block_state state = state_of(word);
  if (state == block_state::in_grains) return grains_.leave(s, index);
  if (is_transient(state)) {
    if (is_missing(state)) waited = true;
    const std::uint64_t start = sys::now_ns();
    b.wait(word, false);
    state_.memory.count(s, &counters::read_wait_ns, sys::now_ns() - start);
    return {};
  }
  if (state != block_state::out) return {};
  guarded_lock g(state_.mutex());
  if (const auto e = s.load_errors.find(index); waited && e != s.load_errors.end()) {
    failure f = e->second;
    s.load_errors.erase(e);
    return f;
  }
  grain_hold hold(s, index);
  if (!hold) return {std::make_error_code(std::errc::resource_unavailable_try_again), "a grain of a whole block"};
  const bool queued = b.try_take(block_state::out, block_state::queued);
  if (!queued || !state_.events.post({&s, index, kind, true})) {
    if (queued) b.publish(block_state::out);
    hold.end();
    state_.memory.tables().grain_left(s, index);
    return {};
  }
  state_.memory.count(s, &counters::faults);
  state_.memory.trace.note(traced::called_in, s.traced_as, index);
  waited = true;
  state_.bell.ring();
  return {};
}

// Brings a block in, maps it with the access asked for, and pins it; or says why its load failed.
failure block_pins::pin_block(segment_state& s, block_index index, bool write) {
  block& b = s.at(index);
  if (s.options.note_reads && !write && !exact_access()) b.read.store(1, std::memory_order_relaxed);
  bool waited = false;
  for (;;) {
    const block_state state = b.state();
    if (is_missing(state) || is_transient(state)) {
      if (failure f = wait_for(s, index, write ? touch::write : touch::read, waited)) return f;
      continue;
    }
    guarded_lock g(state_.mutex());
    if (!b.try_take(state)) continue;
    frame* f = s.frame_of(b);
    if (f->partial && !write) {
      b.promised.store(0, std::memory_order_relaxed);
      state_.memory.release(f);
      state_.waiters.made_evictable();
      continue;
    }
    g.unlock();
    if (state == block_state::inactive) state_.memory.set_access(f, block_access::read);
    std::uint32_t seen = 0;
    const std::byte* const bytes = state == block_state::ready ? f->memory : s.address(index);
    if (write && !faults_.begin_write(f, bytes, seen)) {
      b.publish(state == block_state::inactive ? block_state::ro : state);
      state_.waiters.wait(seen);
      continue;
    }
    b.promised.store(0, std::memory_order_relaxed);
    f->partial = false;
    const bool writable = f->dirty.load(std::memory_order_relaxed);
    if (state == block_state::ready)
      state_.memory.map_in(f, writable);
    else if (writable && state != block_state::rw)
      state_.memory.set_access(f, block_access::write);
    g.lock();
    const bool ahead = std::exchange(f->past.read_ahead, false);
    if (ahead) state_.memory.count(s, &counters::read_ahead_hits);
    if (ahead && !waited) state_.memory.count(s, &counters::hits);
    // A sweep from pin to pin; of an array, a pin is what the program wants, and not where it goes on.
    const bool tell = s.options.pinned_only && state == block_state::ready && !f->past.aged;
    if (tell) state_.events.post_if_quiet({&s, index, write ? touch::write : touch::read, false});
    state_.memory.order().forget(f);
    ++f->pins;
    if (write) ++f->write_pins;
    state_.give_back(b, writable ? block_state::rw : block_state::ro);
    if (tell) state_.bell.ring();
    return {};
  }
}

}  // namespace ooc::detail
