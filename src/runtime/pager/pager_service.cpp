// The service thread: starts the loads that faults wait for, reads ahead, writes behind.
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>

#include "runtime/pager/pager.hpp"
#include "runtime/pager/signals.hpp"

namespace ooc::detail {

namespace {
constexpr std::uint64_t second = 1'000'000'000;
constexpr unsigned max_stall_retries = 3;
}  // namespace

// --- events
// ----------------------------------------------------------------------------------------

// False where the ring is full.
bool pager::post(const event& e) noexcept {
  if (ring_count_ == ring_size) return false;
  ring_[(ring_first_ + ring_count_) % ring_size] = e;
  ++ring_count_;
  return true;
}

void pager::wake() noexcept {
  work_.fetch_add(1, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) sys::futex_wake_all(work_);
}

void pager::serve() {
  bool missing = false;  // misses without a frame are left
  for (;;) {
    const std::uint32_t seen = work_.load(std::memory_order_seq_cst);
    {
      lock_type l(memory_.mutex());
      if (has_fatal_) end_process(l);
      for (std::size_t n = stalled_.size(); n && !stalled_.empty(); --n) {
        const event e = stalled_.front();
        stalled_.erase(stalled_.begin());
        handle(l, e);  // one that stalls again goes to the end
      }
      while (ring_count_ && !has_fatal_) {
        const event e = ring_[ring_first_];
        ring_first_ = (ring_first_ + 1) % ring_size;
        --ring_count_;
        handle(l, e);
      }
      write_behind(l);
      if (starving()) relieve_stall(l);
      if (has_fatal_) continue;
      missing = !stalled_.empty();
    }
    if (stopping_.load()) return;
    if (missing && !service_hungry_) {  // from now on it is told of room; once more, for what came before
      service_hungry_ = true;
      hungry_.fetch_add(1, std::memory_order_seq_cst);
      continue;
    }
    if (!missing && service_hungry_) {
      service_hungry_ = false;
      hungry_.fetch_sub(1, std::memory_order_seq_cst);
    }
    asleep_.store(true, std::memory_order_seq_cst);
    if (work_.load(std::memory_order_seq_cst) == seen) {
      // Not to poll: relieve_stall() counts seconds.
      constexpr timespec until_relief{1, 0};
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&work_), FUTEX_WAIT_PRIVATE, seen,
                hungry_.load() ? &until_relief : nullptr, nullptr, 0);
    }
    asleep_.store(false, std::memory_order_seq_cst);
  }
}

void pager::handle(lock_type& l, const event& e) {
  serving_ = e.segment;
  if (!e.miss) {
    fetch_ahead(l, e);
  } else if (start_miss(l, e)) {
    fetch_ahead(l, e);
  } else {
    stalled_.push_back(e);
    if (e.stalled_since == 0) stalled_.back().stalled_since = sys::now_ns();
  }
  serving_ = nullptr;
  changed_.notify_all();
}

// --- loads
// -----------------------------------------------------------------------------------------

bool pager::start_miss(lock_type& l, const event& e) {
  block& b = e.segment->at(e.block);
  if (b.state() != block_state::queued) return true;
  frame* f = memory_.obtain(l, *e.segment);
  if (!f) {
    // A segment with a limit of its own may have nothing but dirty blocks, all of them active.
    const segment_state& s = *e.segment;
    if (s.options.max_resident && s.resident_count >= s.options.max_resident && s.transfers == 0)
      clean_oldest(l, &s);
    return false;
  }
  memory_.assign(f, *e.segment, e.block);
  const bool promised = e.kind == touch::write && b.promised.load(std::memory_order_relaxed);
  begin_transfer(*e.segment);
  b.advance(block_state::loading);
  start_load(l, f, promised ? load_part::outside_promise : load_part::whole);
  return true;
}

// Before others see that something is on its way.
void pager::begin_transfer(segment_state& s) noexcept {
  ++s.transfers;
  ++transfers_;
}

// The block is `loading`, the frame is its own, and the transfer has been counted.
void pager::start_load(lock_type& l, frame* f, load_part part) {
  f->partial = part == load_part::outside_promise;
  segment_state& s = *f->segment;
  assert(s.at(f->block).state() == block_state::loading && s.transfers > 0);
  begin_call(s);
  {
    const unlocked gap(l, memory_.mutex());
    load(f, part);
  }
  end_call(s);
}

// The transfer may end, and with it the last reason to keep the segment, before its source returns.
void pager::begin_call(segment_state& s) noexcept {
  ++s.calls;
}

void pager::end_call(segment_state& s) noexcept {
  assert(s.calls > 0);
  if (--s.calls == 0) changed_.notify_all();
}

void pager::count_read(segment_state& s, block_index b, std::uint64_t bytes) noexcept {
  counters::add(memory_.count().bytes_read, bytes);
  if (s.at(b).known.exchange(1, std::memory_order_relaxed))
    counters::add(memory_.count().bytes_reread, bytes);
}

void pager::load(frame* f, load_part part) {
  segment_state& s = *f->segment;
  const block_index b = f->block;
  if (part == load_part::outside_promise && !f->zeroed)
    std::memset(f->memory, 0, s.block_bytes());
  f->zeroed = false;
  if (s.source->nothing_to_load(b, part)) {
    on_loaded(f, {});
    return;
  }
  try {
    const std::uint64_t bytes =
        s.source->load(b, part, f->memory, [this, f](const failure& r) { on_loaded(f, r); });
    count_read(s, b, bytes);
  } catch (const std::exception& e) {
    on_loaded(f, {std::make_error_code(std::errc::not_enough_memory), e.what()});
  }
}

void pager::on_loaded(frame* f, const failure& result) {
  signals_blocked no_signals;
  lock_type l(memory_.mutex());
  segment_state& s = *f->segment;
  block& b = s.at(f->block);
  const std::uint32_t word = b.word.load(std::memory_order_acquire);
  assert(state_of(word) == block_state::loading && s.frame_of(b) == f);
  if (result) {
    if (word & fault_bit) {
      // The threads that wait for it sleep on until the service thread ends the process.
      if (!fatal_) fatal_ = described(s, f->block, "cannot be read", result);
      has_fatal_ = true;
    } else {
      if (word & waiters_bit)
        s.load_errors[f->block] = described(s, f->block, "cannot be read", result);
      f->read_ahead = false;
      memory_.release(f);
    }
  } else if (f->stale.exchange(false)) {
    if (word & waiters_bit) {  // somebody wants it: once more, now with what the store holds
      f->partial = f->partial && b.promised.load(std::memory_order_relaxed);
      const load_part part = f->partial ? load_part::outside_promise : load_part::whole;
      begin_call(s);
      l.unlock();
      load(f, part);
      l.lock();
      end_call(s);
      return;
    }
    memory_.release(f);
  } else {
    if (!s.load_errors.empty()) s.load_errors.erase(f->block);
    memory_.order().make_active(f);
    b.publish(block_state::ready);
  }
  transfer_ended(s);
}

void pager::transfer_ended(segment_state& s) noexcept {
  assert(s.transfers > 0 && transfers_ >= s.transfers);
  --s.transfers;
  --transfers_;
  changed_.notify_all();
  made_evictable();
  if (!stalled_.empty() || has_fatal_ || stores_in_flight_) wake();
}

// --- when nothing goes on any more
// -------------------------------------------------------------------

// A first write to a shared block waits for its twin.  It tries again by itself, and is forgotten when
// it no longer does: another thread may have written to the block, or it may have gone.
bool pager::write_starves() const noexcept {
  return twins_awaited_ > 0 || (starved_.segment && sys::now_ns() - starved_seen_ < second);
}

// Somebody waits for a frame: a miss or such a write.
bool pager::starving() const noexcept { return !stalled_.empty() || write_starves(); }

// A miss found no frame.  Usually a store in flight will free one.  Where none is, blocks whose
// write failed are tried again, and after some seconds without success the access cannot be served.
void pager::relieve_stall(lock_type& l) {
  if (transfers_ > 0) return;
  // What is left may be active and modified: its store makes room, or gives its twin back.
  if (clean_oldest(l, nullptr)) return;
  // Others may come and go: what counts is how long one and the same has been waiting.
  event longest = write_starves() ? starved_ : event{};
  for (const event& e : stalled_)
    if (!longest.segment || e.stalled_since < longest.stalled_since) longest = e;
  if (!longest.segment) return;
  const std::uint64_t waited = sys::now_ns() - longest.stalled_since;
  if (waited < second * (stall_retries_ + 1)) return;
  if (const std::uint64_t now = sys::now_ns(); now - nudged_ >= second) {
    nudged_ = now;  // two writes may have met each other's block while it was `busy`
    room_.fetch_add(1, std::memory_order_seq_cst);
    sys::futex_wake_all(room_);
  }
  bool any_failed = false;
  failure cause;
  for (segment_state* s : segments_) {
    for (frame* f = s->resident; f; f = f->segment_next) any_failed |= f->failed.exchange(false);
    if (!cause) cause = s->background_write_error;
  }
  if (any_failed && ++stall_retries_ <= max_stall_retries) {
    wake();
  } else if (any_failed) {
    if (!cause)  // it was reported by a writeback()
      cause = described(*longest.segment, longest.block, "found no frame",
                        {std::make_error_code(std::errc::io_error),
                         "modified blocks cannot be written, so nothing makes room"});
    if (!fatal_) fatal_ = cause;
    has_fatal_ = true;
    wake();
  } else if (waited > 60 * second && !fatal_) {
    fatal_ = described(
        *longest.segment, longest.block, "found no frame for a minute",
        {make_error_code(errc::budget_too_small), "every frame of the budget is pinned or busy"});
    has_fatal_ = true;
    wake();
  }
}

// Starts to write the modified block that was seen longest ago, of `only` if given; false where none
// can be.  In any other order the blocks that one instruction needs would be taken from it in turn.
bool pager::clean_oldest(lock_type& l, const segment_state* only) {
  for (frame* from : {memory_.order().oldest(), memory_.order().oldest_active()})
    for (frame* f = from; f; f = f->next)
      if ((!only || f->segment == only) && !f->failed && clean(l, f, nullptr)) return true;
  return false;
}

// One message, the program's own handler, the other dirty blocks, and the documented status.
void pager::end_process(lock_type& l) {
  const failure f = fatal_;
  const unlocked gap(l, memory_.mutex());
  std::string text = "oocarray: an element access could not be served: " + f.what + "\n";
  if (::write(2, text.data(), text.size()) < 0) { /* nobody left to tell */
  }
  if (on_fatal_) {
    try {
      on_fatal_(f);
    } catch (...) {
      static constexpr char complaint[] = "oocarray: the program's on_fatal handler threw\n";
      if (::write(2, complaint, sizeof complaint - 1) < 0) { /* nobody left to tell */
      }
    }
  }
  std::uint64_t lost = 0;
  for (const unwritten& u : write_back_all()) lost += u.blocks;
  text = lost ? "oocarray: " + std::to_string(lost) + " modified blocks could not be written back\n"
              : "oocarray: all modified blocks were written back\n";
  if (::write(2, text.data(), text.size()) < 0) { /* nobody left to tell */
  }
  ::_exit(fatal_exit_status);
}

failure pager::described(const segment_state& s, block_index b, const char* what,
                         const failure& cause) const {
  return {cause.code, "array '" + s.options.name + "', block " + std::to_string(b) + " " + what +
                          ": " + cause.what};
}

}  // namespace ooc::detail
