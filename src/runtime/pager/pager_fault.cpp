// A touch of array memory that the processor refused, in the thread that made it.
//
// Runs inside a signal handler: nothing here allocates, throws or logs, and the only waits are for
// the pager's mutex, which no interrupted code can hold, and for blocks on their way.
#include <cstring>

#include "runtime/blocks/untracked.hpp"
#include "runtime/pager/exact_access.hpp"
#include "runtime/pager/pager.hpp"

namespace ooc::detail {

namespace {
// Its own storage, not made on first use: this is a signal handler.
__attribute__((tls_model("initial-exec"))) thread_local constinit fault_history history;
}  // namespace

bool pager::on_fault(segment_state& s, block_index index, touch t) noexcept {
  if (index >= s.blocks.load(std::memory_order_relaxed)) return false;
  if (t == touch::write && !s.may_write(index)) return false;
  turn_.enter(history, &s.at(index));
  const bool served = serve_fault(s, index, t);
  turn_.leave(history);
  return served;
}

bool pager::serve_fault(segment_state& s, block_index index, touch t) noexcept {
  counters& n = memory_.count();
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
          lock_type l(memory_.mutex());
          if (!post({&s, index, t, true})) {  // more waiting threads than the ring holds
            b.publish(block_state::out);
            l.unlock();
            ::sched_yield();
            break;
          }
          l.unlock();
          counters::add(n.faults);
          waited = true;
          wake();
        }
        break;

      case block_state::ready:
        if (!b.try_take(block_state::ready)) break;
        if (!map_ready(s, index, t)) break;
        if (!waited) counters::add(n.hits);
        return true;

      case block_state::inactive: {
        if (!b.try_take(block_state::inactive)) break;
        frame* f = s.frame_of(b);
        if (t == touch::write) {
          if (s.twinned(index)) memory_.set_access(f, PROT_READ);
          if (!begin_write(f, s.address(index), seen)) {
            b.publish(block_state::ro);
            wait_for_frame(seen);
            break;
          }
        }
        b.promised.store(0, std::memory_order_relaxed);
        const bool writable = f->dirty.load(std::memory_order_relaxed);
        memory_.set_access(f, writable ? PROT_READ | PROT_WRITE : PROT_READ);
        counters::add(n.soft_faults);
        {
          lock_type l(memory_.mutex());
          memory_.order().make_active(f);
        }
        b.publish(writable ? block_state::rw : block_state::ro);
        made_evictable();
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
        memory_.set_access(f, PROT_READ | PROT_WRITE);
        counters::add(n.write_faults);
        b.publish(block_state::rw);
        made_evictable();
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
        b.wait(word, true);
        counters::add(n.read_wait_ns, sys::now_ns() - start);
        break;
      }
    }
    if (t == touch::unknown && b.state() == block_state::ro) return true;
  }
}

// A block of which nothing has to be read is mapped on the spot, where a frame can be had.
bool pager::load_inline(segment_state& s, block_index index, touch t) noexcept {
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

  lock_type l(memory_.mutex());
  frame* f = memory_.obtain(l, s);
  if (!f) {
    b.publish(block_state::out);
    return false;
  }
  memory_.assign(f, s, index);  // under the lock: invalidate() and writeback() read it
  l.unlock();
  if (promised) {
    if (!f->zeroed) std::memset(f->memory, 0, s.block_bytes());
    counters::add(memory_.count().loads_avoided);
  }
  b.promised.store(0, std::memory_order_relaxed);
  const bool write = t == touch::write;
  if (write) memory_.mark_dirty(f);
  memory_.map_in(f, write);
  counters::add(memory_.count().hits);
  l.lock();
  memory_.order().make_active(f);
  if (write) note_touch(s, index, t);
  l.unlock();
  b.publish(write ? block_state::rw : block_state::ro);
  made_evictable();
  if (write) wake();
  return true;
}

// The caller owns the block, whose bytes wait in the frame.  False where it must look again.
bool pager::map_ready(segment_state& s, block_index index, touch t) noexcept {
  block& b = s.at(index);
  frame* f = s.frame_of(b);
  const bool write = t == touch::write;
  if (f->partial && !write) {  // read before it was overwritten: the rest is needed after all
    b.promised.store(0, std::memory_order_relaxed);
    lock_type l(memory_.mutex());
    memory_.release(f);
    l.unlock();
    made_evictable();
    return false;
  }
  std::uint32_t seen = 0;
  if (write && !begin_write(f, f->memory, seen)) {
    b.publish(block_state::ready);
    wait_for_frame(seen);
    return false;
  }
  b.promised.store(0, std::memory_order_relaxed);
  if (f->partial) counters::add(memory_.count().loads_avoided);
  f->partial = false;
  const bool writable = f->dirty.load(std::memory_order_relaxed);
  memory_.map_in(f, writable);
  const bool ahead = f->read_ahead;
  {
    lock_type l(memory_.mutex());
    memory_.order().make_active(f);
    if (ahead) note_touch(s, index, t);
    f->read_ahead = false;
  }
  b.publish(writable ? block_state::rw : block_state::ro);
  made_evictable();
  if (ahead) {
    counters::add(memory_.count().read_ahead_hits);
    wake();
  }
  return true;
}

// Marks a block dirty.  One of a shared segment first gets its twin, a copy of `bytes`; false where
// no frame is to be had for it now: the caller gives the block up, readable, and calls
// wait_for_frame(seen).  The caller owns the block.
bool pager::begin_write(frame* f, const std::byte* bytes, std::uint32_t& seen) noexcept {
  if (f->segment->twinned(f->block) && !f->dirty.load(std::memory_order_relaxed)) {
    seen = room_.load(std::memory_order_seq_cst);
    lock_type l(memory_.mutex());
    // The twin must not wait for room that only this block could make: it is the latest touched.
    if (f->list != frame_list::none) memory_.order().make_active(f);
    frame* twin = memory_.obtain_spare(l, *f->segment);
    if (!twin) {
      const bool first = !write_starves() || !starved_.segment;
      starved_seen_ = sys::now_ns();
      if (first) starved_ = {f->segment, f->block, touch::write, true, starved_seen_};
      return false;
    }
    starved_ = {};
    l.unlock();
    copy_untracked(twin->memory, bytes, f->segment->mapped_bytes(f->block));
    f->twin = twin;
  }
  memory_.mark_dirty(f);
  if (std::exchange(f->swept, false)) counters::add(f->segment->swept_again);
  return true;
}

// Sleeps until a frame may be had; `seen` is the room_ of before the look that found none.  The
// service thread cleans something meanwhile, and ends the process where nothing helps.
void pager::wait_for_frame(std::uint32_t seen) noexcept {
  {
    lock_type l(memory_.mutex());
    ++twins_awaited_;
  }
  hungry_.fetch_add(1, std::memory_order_seq_cst);
  wake();
  sys::futex_wait(room_, seen);
  hungry_.fetch_sub(1, std::memory_order_seq_cst);
  lock_type l(memory_.mutex());
  --twins_awaited_;
  starved_seen_ = sys::now_ns();  // it tries again at once
}

// A frame may be had that could not before.  Called after a block was published, too: one that was
// `busy` was passed over.
void pager::made_evictable() noexcept {
  room_.fetch_add(1, std::memory_order_seq_cst);
  if (hungry_.load(std::memory_order_seq_cst) == 0) return;
  sys::futex_wake_all(room_);
  wake();
}

// Tells the service thread, which may forget it under load: only read-ahead suffers.
void pager::note_touch(segment_state& s, block_index b, touch t) noexcept {
  if (ring_count_ < ring_size / 2) post({&s, b, t, false});
}

}  // namespace ooc::detail
