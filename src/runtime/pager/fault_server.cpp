#include "runtime/pager/fault_server.hpp"

#include <cstring>
#include <utility>

#include "runtime/blocks/untracked.hpp"
#include "runtime/pager/exact_access.hpp"

namespace ooc::detail {

namespace {
// Its own storage, not made on first use: this is a signal handler.
__attribute__((tls_model("initial-exec"))) thread_local constinit fault_history history;
}  // namespace

bool fault_server::on_fault(segment_state& s, std::uint64_t place, touch t) noexcept {
  return on_fault(s, place, t, history);
}

bool fault_server::on_fault(segment_state& s, std::uint64_t place, touch t, fault_history& h) noexcept {
  const auto touched_of = [&](segment_state& any) {
    const std::size_t n = any.block_bytes();
    return touched{any, place / n, static_cast<std::uint32_t>(place % n), t, h.asked};
  };
  const touched block = touched_of(s);
  if (block.block >= s.blocks.load(std::memory_order_relaxed)) return false;
  if (t == touch::write && !s.may_write(block.block)) return false;
  constexpr std::uint64_t signal_ns = 2000;  // to return from one, and to deliver the next
  if (const std::uint64_t now = sys::now_ns(); h.left != 0 && now > h.left + signal_ns) ran(now - h.left - signal_ns);
  const bool in_grains = s.at(block.block).state() == block_state::in_grains;
  turn_.enter(h, in_grains ? &s.grains->at(touched_of(*s.grains).block) : &s.at(block.block),
              [this]() noexcept { state_.memory.mapping().about_to_wait(); });
  outcome o = serve(block);
  while (o == outcome::of_grain || o == outcome::of_block)
    o = serve(o == outcome::of_grain ? touched_of(*s.grains) : block);
  turn_.leave(h);
  if (state_.memory.trace.fills()) [[unlikely]]
    state_.bell.ring();
  h.left = sys::now_ns();
  return o == outcome::served;
}

void fault_server::ran(std::uint64_t ns) noexcept {
  state_.ran_ns.fetch_add(ns, std::memory_order_relaxed);
  state_.memory.trace.note(traced::ran, 0, ns);
}

void fault_server::note(traced what, const touched& at) noexcept {
  segment_state& s = at.segment;
  (s.parent ? *s.parent : s).latest_place.store(at.block * s.block_bytes() + at.offset, std::memory_order_relaxed);
  state_.memory.trace.note(what, at.segment.traced_as, at.block, at.offset, static_cast<std::uint8_t>(at.kind));
}

void fault_server::wait_for_frame(std::uint32_t seen) noexcept {
  state_.memory.mapping().about_to_wait();
  state_.waiters.wait(seen);
}

bool fault_server::is_over(const touched& at) const noexcept {
  return at.kind == touch::write && at.asked != 0 &&
         state_.memory.mapping().has_gone_on(at.segment.address(at.block) + at.offset, at.asked);
}

fault_server::outcome fault_server::serve(const touched& at) noexcept {
  segment_state& s = at.segment;
  const block_index index = at.block;
  const touch t = at.kind;
  block& b = s.at(index);
  std::uint32_t seen = 0;
  if (s.options.note_reads && t != touch::write && !exact_access()) b.read.store(1, std::memory_order_relaxed);
  bool waited = false;
  for (;;) {
    if (!s.may_come_in(index)) return outcome::of_block;
    const std::uint32_t word = b.word.load(std::memory_order_acquire);
    switch (state_of(word)) {
      case block_state::out:
        if (map_without_load(at)) return outcome::served;
        if (s.grains && grains_.begin(s, index)) break;
        if (load_inline(at)) {
          state_.memory.count(s, &counters::faults);
          waited = true;
        } else if (queue(at)) {
          state_.memory.count(s, &counters::faults);
          waited = true;
          state_.bell.ring();
        }
        break;

      case block_state::in_grains: return outcome::of_grain;

      case block_state::ready:
        if (!b.try_take(block_state::ready)) break;
        if (is_over(at)) {
          state_.give_back(b, block_state::ready);
          return outcome::served;
        }
        if (!map_ready(at, waited)) break;
        return outcome::served;

      case block_state::inactive: {
        if (!b.try_take(block_state::inactive)) break;
        frame* f = s.frame_of(b);
        if (t == touch::write) {
          if (s.twinned(index)) state_.memory.set_access(f, block_access::read);
          if (!begin_write(f, s.address(index), seen)) {
            b.publish(block_state::ro);  // not give_back(): two that wait would wake each other for ever
            wait_for_frame(seen);
            break;
          }
        }
        b.promised.store(0, std::memory_order_relaxed);
        const bool writable = f->dirty.load(std::memory_order_relaxed);
        state_.memory.set_access(f, writable ? block_access::write : block_access::read);
        state_.memory.count(s, &counters::soft_faults);
        note(traced::found, at);
        {
          unique_lock l(state_.mutex());
          // One that was only promised keeps its place: it came with its last read.
          if (f->list == frame_list::inactive) state_.memory.touched(f);
        }
        state_.give_back(b, writable ? block_state::rw : block_state::ro);
        return outcome::served;
      }

      case block_state::ro: {
        // A read fault here met the block on its way in: it only has to be tried again.
        if (t == touch::read) return outcome::served;
        if (!s.may_write(index)) return outcome::refused;
        if (!b.try_take(block_state::ro)) break;
        if (is_over(at)) {
          state_.give_back(b, block_state::ro);
          return outcome::served;
        }
        frame* f = s.frame_of(b);
        if (!begin_write(f, s.address(index), seen)) {
          b.publish(block_state::ro);
          wait_for_frame(seen);
          break;
        }
        b.promised.store(0, std::memory_order_relaxed);
        state_.memory.set_access(f, block_access::write);
        state_.memory.count(s, &counters::write_faults);
        note(traced::first_write, at);
        state_.give_back(b, block_state::rw);
        return outcome::served;
      }

      case block_state::rw:
        // A grain may have been protected with others (grain_mapping).
        if (s.parent && t == touch::write) {
          if (!b.try_take(block_state::rw)) break;
          state_.memory.set_access(s.frame_of(b), block_access::write);
          state_.give_back(b, block_state::rw);
        }
        return outcome::served;

      case block_state::flush:
        if (t == touch::read) return outcome::served;
        [[fallthrough]];
      case block_state::queued:
      case block_state::loading:
      case block_state::writing:
      case block_state::busy: {
        const std::uint64_t start = sys::now_ns();
        state_.memory.mapping().about_to_wait();
        b.wait(word, true);
        state_.memory.count(s, &counters::read_wait_ns, sys::now_ns() - start);
        break;
      }
    }
    if (t == touch::unknown && b.state() == block_state::ro) return outcome::served;
  }
}

// Has a block loaded that is out; false where it no longer is, or may not come in.  The last attempt to bring in
// a grain: where it fails, its block need not stay in grains.
bool fault_server::queue(const touched& at) noexcept {
  block& b = at.segment.at(at.block);
  bool full = false;
  {
    grain_hold hold(at.segment, at.block);
    if (!hold) return false;
    const bool queued = b.try_queue_fault();
    const unique_lock l(state_.mutex());
    if (queued) {
      if (state_.events.post({&at.segment, at.block, at.kind, true, 0, at.offset})) {
        note(traced::missed, at);
        return true;
      }
      b.publish(block_state::out);
      full = true;  // more waiting threads than the ring holds
    }
    hold.end();
    state_.memory.tables().grain_left(at.segment, at.block);
  }
  if (full) ::sched_yield();
  return false;
}

// A hand-over to another thread and back costs as much as a short read, or more.
bool fault_server::load_inline(const touched& at) noexcept {
  constexpr std::size_t most_bytes = 64 << 10;
  segment_state& s = at.segment;
  if (s.block_bytes() > most_bytes || s.at(at.block).promised.load(std::memory_order_relaxed)) return false;
  const std::uint64_t start = sys::now_ns();
  if (!loader_.load_inline(s, at.block)) return false;
  note(traced::missed, at);
  state_.memory.count(s, &counters::read_wait_ns, sys::now_ns() - start);
  bool ring;
  {
    const unique_lock l(state_.mutex());
    note_touch(at, true);
    ring = state_.events.worth_a_ring();
  }
  if (ring) state_.bell.ring();
  return true;
}

// A block of which nothing has to be read is mapped on the spot, where a frame can be had.
bool fault_server::map_without_load(const touched& at) noexcept {
  segment_state& s = at.segment;
  const block_index index = at.block;
  const touch t = at.kind;
  block& b = s.at(index);
  const bool promised = t == touch::write && b.promised.load(std::memory_order_relaxed);
  const load_part part = promised ? load_part::outside_promise : load_part::whole;
  if (s.twinned(index) || !s.source->nothing_to_load(index, part)) return false;
  grain_hold hold(s, index);
  if (!hold || !b.try_take(block_state::out)) return false;
  if (is_over(at)) {
    b.publish(block_state::out);
    return true;
  }
  // Since the look above the block may have been in memory, and the promise been used up; another
  // one may have been made.
  if (promised && !(b.promised.load(std::memory_order_relaxed) && s.source->nothing_to_load(index, part))) {
    b.publish(block_state::out);
    return false;
  }

  unique_lock l(state_.mutex());
  frame* f = state_.memory.obtain(l, s);
  if (!f) {
    b.publish(block_state::out);
    return false;
  }
  state_.memory.assign(f, s, index);  // under the lock: invalidate() and writeback() read it
  l.unlock();
  hold.end();
  if (promised) {
    if (!f->zeroed) std::memset(f->memory, 0, s.block_bytes());
    state_.memory.count(s, &counters::loads_avoided);
  }
  b.promised.store(0, std::memory_order_relaxed);
  note(traced::missed, at);
  const bool write = t == touch::write;
  if (write) state_.memory.mark_dirty(f);
  state_.memory.map_in(f, write);
  state_.memory.count(s, &counters::hits);
  l.lock();
  state_.memory.order().make_active(f);
  if (write) note_touch(at);
  l.unlock();
  state_.give_back(b, write ? block_state::rw : block_state::ro);
  if (write) state_.bell.ring();
  return true;
}

// The caller owns the block, whose bytes wait in the frame.  False where it must look again.
bool fault_server::map_ready(const touched& at, bool waited) noexcept {
  segment_state& s = at.segment;
  block& b = s.at(at.block);
  frame* f = s.frame_of(b);
  const bool write = at.kind == touch::write;
  if (f->partial && !write) {  // read before it was overwritten: the rest is needed after all
    b.promised.store(0, std::memory_order_relaxed);
    unique_lock l(state_.mutex());
    state_.memory.release(f);
    l.unlock();
    state_.waiters.made_evictable();
    return false;
  }
  std::uint32_t seen = 0;
  if (write && !begin_write(f, f->memory, seen)) {
    b.publish(block_state::ready);
    wait_for_frame(seen);
    return false;
  }
  b.promised.store(0, std::memory_order_relaxed);
  if (f->partial) state_.memory.count(s, &counters::loads_avoided);
  const bool whole = !std::exchange(f->partial, false);
  const bool aged = std::exchange(f->past.aged, false);
  if (!write && !aged) state_.memory.guess_dirty(f);
  const bool writable = f->dirty.load(std::memory_order_relaxed);
  state_.memory.map_in(f, writable);
  const bool ahead = f->past.read_ahead;
  const unsigned stands_for = f->past.stands_for;
  bool ring = ahead;
  {
    unique_lock l(state_.mutex());
    state_.memory.touched(f);
    if (ahead) {
      s.past.used(f->past);
      note_touch(at);
      ring = !s.parent || state_.events.worth_a_ring();
    }
    f->past.read_ahead = false;
    if (whole && !s.parent) note_mapped(s);
  }
  state_.give_back(b, writable ? block_state::rw : block_state::ro);
  if (!waited) note(traced::found, at);
  if (!waited) state_.memory.count(s, aged ? &counters::soft_faults : &counters::hits);
  if (ahead) state_.memory.count(s, &counters::read_ahead_hits, stands_for);
  if (ring) state_.bell.ring();
  return true;
}

bool fault_server::begin_write(frame* f, const std::byte* bytes, std::uint32_t& seen) noexcept {
  if (f->segment->twinned(f->block) && !f->dirty.load(std::memory_order_relaxed)) {
    seen = state_.waiters.look();
    unique_lock l(state_.mutex());
    if (f->list != frame_list::none) state_.memory.touched(f);
    frame* twin = state_.memory.obtain_twin(l, f);
    if (!twin) {
      state_.waiters.write_found_none(*f->segment, f->block);
      return false;
    }
    state_.waiters.write_found_one();
    l.unlock();
    copy_untracked(twin->memory, bytes, f->segment->mapped_bytes(f->block));
    f->twin = twin;
  }
  state_.memory.mark_dirty(f);
  f->segment->writes.first_write(f->past);
  return true;
}

// A whole block has been mapped.
void fault_server::note_mapped(segment_state& s) noexcept {
  const std::uint64_t ran = state_.ran_ns.load(std::memory_order_relaxed);
  if (!s.past.mapped_whole(s.block_bytes(), ran, s.grains != nullptr) || !hints_) return;
  state_.hint_due = true;
  state_.bell.ring();
}

// Tells the service thread, which may forget it under load: only read-ahead suffers.
void fault_server::note_touch(const touched& at, bool was_out) noexcept {
  state_.events.post_if_quiet({&at.segment, at.block, at.kind, false, 0, at.offset, was_out});
}

}  // namespace ooc::detail
