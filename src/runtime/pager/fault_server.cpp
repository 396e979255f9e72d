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

bool fault_server::on_fault(segment_state& s, block_index index, touch t) noexcept {
  return on_fault(s, index, t, history);
}

bool fault_server::on_fault(segment_state& s, block_index index, touch t, fault_history& h) noexcept {
  if (index >= s.blocks.load(std::memory_order_relaxed)) return false;
  if (t == touch::write && !s.may_write(index)) return false;
  if (hints_ && h.left != 0) ran_ns_.fetch_add(sys::now_ns() - h.left, std::memory_order_relaxed);
  turn_.enter(h, &s.at(index), [this]() noexcept { state_.memory.mapping().about_to_wait(); });
  const bool served = serve_fault(s, index, t);
  turn_.leave(h);
  if (hints_) h.left = sys::now_ns();
  return served;
}

void fault_server::wait_for_frame(std::uint32_t seen) noexcept {
  state_.memory.mapping().about_to_wait();
  state_.waiters.wait(seen);
}

bool fault_server::serve_fault(segment_state& s, block_index index, touch t) noexcept {
  counters& n = state_.memory.count();
  block& b = s.at(index);
  std::uint32_t seen = 0;
  if (s.options.note_reads && t != touch::write && !exact_access())
    b.read.store(1, std::memory_order_relaxed);
  bool waited = false;
  for (;;) {
    const std::uint32_t word = b.word.load(std::memory_order_acquire);
    switch (state_of(word)) {
      case block_state::out:
        if (load_inline(s, index, t)) return true;
        if (b.try_queue_fault()) {
          unique_lock l(state_.mutex());
          if (!state_.events.post({&s, index, t, true})) {  // more waiting threads than the ring holds
            b.publish(block_state::out);
            l.unlock();
            ::sched_yield();
            break;
          }
          l.unlock();
          counters::add(n.faults);
          waited = true;
          state_.bell.ring();
        }
        break;

      case block_state::ready:
        if (!b.try_take(block_state::ready)) break;
        if (!map_ready(s, index, t, waited)) break;
        return true;

      case block_state::inactive: {
        if (!b.try_take(block_state::inactive)) break;
        frame* f = s.frame_of(b);
        if (t == touch::write) {
          if (s.twinned(index)) state_.memory.set_access(f, block_access::read);
          if (!begin_write(f, s.address(index), seen)) {
            b.publish(block_state::ro);
            wait_for_frame(seen);
            break;
          }
        }
        b.promised.store(0, std::memory_order_relaxed);
        const bool writable = f->dirty.load(std::memory_order_relaxed);
        state_.memory.set_access(f, writable ? block_access::write : block_access::read);
        counters::add(n.soft_faults);
        {
          unique_lock l(state_.mutex());
          state_.memory.order().make_active(f);
        }
        b.publish(writable ? block_state::rw : block_state::ro);
        state_.waiters.made_evictable();
        return true;
      }

      case block_state::ro: {
        // A read fault here met the block on its way in: it only has to be tried again.
        if (t == touch::read) return true;
        if (!s.may_write(index)) return false;
        if (!b.try_take(block_state::ro)) break;
        frame* f = s.frame_of(b);
        if (!begin_write(f, s.address(index), seen)) {
          b.publish(block_state::ro);
          wait_for_frame(seen);
          break;
        }
        b.promised.store(0, std::memory_order_relaxed);
        state_.memory.set_access(f, block_access::write);
        counters::add(n.write_faults);
        b.publish(block_state::rw);
        state_.waiters.made_evictable();
        return true;
      }

      case block_state::rw:
        return true;

      case block_state::flush:
        if (t == touch::read) return true;
        [[fallthrough]];
      case block_state::queued:
      case block_state::loading:
      case block_state::writing:
      case block_state::busy: {
        const std::uint64_t start = sys::now_ns();
        state_.memory.mapping().about_to_wait();
        b.wait(word, true);
        counters::add(n.read_wait_ns, sys::now_ns() - start);
        break;
      }
    }
    if (t == touch::unknown && b.state() == block_state::ro) return true;
  }
}

// A block of which nothing has to be read is mapped on the spot, where a frame can be had.
bool fault_server::load_inline(segment_state& s, block_index index, touch t) noexcept {
  block& b = s.at(index);
  const bool promised = t == touch::write && b.promised.load(std::memory_order_relaxed);
  const load_part part = promised ? load_part::outside_promise : load_part::whole;
  if (s.twinned(index) || !s.source->nothing_to_load(index, part)) return false;
  if (!b.try_take(block_state::out)) return false;
  // Since the look above the block may have been in memory, and the promise been used up; another
  // one may have been made.
  if (promised &&
      !(b.promised.load(std::memory_order_relaxed) && s.source->nothing_to_load(index, part))) {
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
  if (promised) {
    if (!f->zeroed) std::memset(f->memory, 0, s.block_bytes());
    counters::add(state_.memory.count().loads_avoided);
  }
  b.promised.store(0, std::memory_order_relaxed);
  const bool write = t == touch::write;
  if (write) state_.memory.mark_dirty(f);
  state_.memory.map_in(f, write);
  counters::add(state_.memory.count().hits);
  l.lock();
  state_.memory.order().make_active(f);
  if (write) note_touch(s, index, t);
  l.unlock();
  b.publish(write ? block_state::rw : block_state::ro);
  state_.waiters.made_evictable();
  if (write) state_.bell.ring();
  return true;
}

// The caller owns the block, whose bytes wait in the frame.  False where it must look again.
bool fault_server::map_ready(segment_state& s, block_index index, touch t, bool waited) noexcept {
  block& b = s.at(index);
  frame* f = s.frame_of(b);
  const bool write = t == touch::write;
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
  if (f->partial) counters::add(state_.memory.count().loads_avoided);
  const bool whole = !std::exchange(f->partial, false);
  const bool writable = f->dirty.load(std::memory_order_relaxed);
  state_.memory.map_in(f, writable);
  const bool ahead = f->read_ahead;
  const bool aged = std::exchange(f->aged, false);
  {
    unique_lock l(state_.mutex());
    state_.memory.order().make_active(f);
    if (ahead) note_touch(s, index, t);
    f->read_ahead = false;
    if (hints_ && whole && s.waste.mapped(s.block_bytes(), ran_ns_.load(std::memory_order_relaxed))) {
      state_.hint_due = true;
      state_.bell.ring();
    }
  }
  b.publish(writable ? block_state::rw : block_state::ro);
  state_.waiters.made_evictable();
  if (!waited) counters::add(aged ? state_.memory.count().soft_faults : state_.memory.count().hits);
  if (ahead) {
    counters::add(state_.memory.count().read_ahead_hits);
    state_.bell.ring();
  }
  return true;
}

bool fault_server::begin_write(frame* f, const std::byte* bytes, std::uint32_t& seen) noexcept {
  if (f->segment->twinned(f->block) && !f->dirty.load(std::memory_order_relaxed)) {
    seen = state_.waiters.look();
    unique_lock l(state_.mutex());
    if (f->list != frame_list::none) state_.memory.order().make_active(f);  // it has been touched
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
  if (std::exchange(f->swept, false)) counters::add(f->segment->swept_again);
  return true;
}

// Tells the service thread, which may forget it under load: only read-ahead suffers.
void fault_server::note_touch(segment_state& s, block_index b, touch t) noexcept {
  state_.events.post_if_quiet({&s, b, t, false});
}

}  // namespace ooc::detail
