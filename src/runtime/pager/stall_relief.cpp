#include "runtime/pager/stall_relief.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "oocarray/runtime.hpp"

namespace ooc::detail {

namespace {
constexpr std::uint64_t second = 1'000'000'000;
constexpr unsigned max_retries = 3;
}  // namespace

void stall_relief::relieve(unique_lock& l) {
  notice_stop();
  if (state_.transfers() > 0) return;
  // A block that is left may be active and modified: its store makes room, or gives its twin back.
  if (writer_.clean_oldest(l, nullptr)) return;
  // Others may come and go: what counts is how long one and the same has been waiting.
  touch_event longest{};
  if (state_.waiters.write_starves()) longest = state_.waiters.starved_write();
  for (const touch_event& e : state_.events.stalled())
    if (!longest.segment || e.stalled_since < longest.stalled_since) longest = e;
  if (!longest.segment) return;
  const std::uint64_t waited = sys::now_ns() - std::max(longest.stalled_since, went_on_);
  if (const std::uint64_t stored = writer_.stored(); stored != stored_seen_) {
    stored_seen_ = stored;
    retries_ = 0;
  }
  if (waited < second * (retries_ + 1)) return;
  if (const std::uint64_t now = sys::now_ns(); now - nudged_ >= second) {
    nudged_ = now;  // two writes may have met each other's block while it was `busy`
    state_.waiters.look_again();
  }
  bool any_failed = false;
  failure cause;
  for (segment_state* s : state_.segments) {
    for (frame* f = s->resident; f; f = f->segment_next) any_failed |= f->failed.exchange(false);
    if (!cause) cause = s->background_write_error;
  }
  if (any_failed && ++retries_ <= max_retries) {
    state_.bell.ring();
  } else if (any_failed) {
    if (!cause)  // it was reported by a writeback()
      cause = described(
          *longest.segment, longest.block, "found no frame",
          {std::make_error_code(std::errc::io_error), "modified blocks cannot be written, so nothing makes room"});
    give_up(cause);
  } else if (waited > 60 * second && !state_.failed()) {
    give_up(described(*longest.segment, longest.block, "found no frame for a minute",
                      {make_error_code(errc::budget_too_small),
                       "every frame of the budget is pinned, busy, or held by a "
                       "system call that is under way"}));
  }
}

// Calls that wait for a block fail with it, and what they held may be room enough for the others.  Only a touch has
// nobody to tell: it ends the process.
void stall_relief::give_up(const failure& cause) {
  bool told = false;
  for (std::size_t n = state_.events.stalled().size(); n > 0; --n) {
    const touch_event e = state_.events.take_stalled();
    block& b = e.segment->at(e.block);
    const std::uint32_t word = b.word.load(std::memory_order_acquire);
    if (state_of(word) != block_state::queued || word & fault_bit) {
      state_.events.stall(e);
      continue;
    }
    e.segment->load_errors[e.block] = cause;
    b.publish(block_state::out);
    state_.memory.tables().grain_left(*e.segment, e.block);
    told = true;
  }
  if (told)
    retries_ = 0;
  else
    state_.fail(cause);
  state_.bell.ring();
}

// Where somebody waits for a frame, the service thread comes here once a second.
void stall_relief::notice_stop() noexcept {
  const std::uint64_t now = sys::now_ns();
  if (now - looked_ > 2 * second) went_on_ = now;
  looked_ = now;
}

void stall_relief::end_process(unique_lock& l) {
  const failure f = state_.fatal();
  const unlocked gap(l, state_.mutex());
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
  for (const block_writer::unwritten& u : writer_.write_back_all()) lost += u.blocks;
  text = lost ? "oocarray: " + std::to_string(lost) + " modified blocks could not be written back\n"
              : "oocarray: all modified blocks were written back\n";
  if (::write(2, text.data(), text.size()) < 0) { /* nobody left to tell */
  }
  ::_exit(fatal_exit_status);
}

}  // namespace ooc::detail
