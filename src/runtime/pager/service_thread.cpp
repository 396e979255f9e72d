#include "runtime/pager/service_thread.hpp"

#include <poll.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "runtime/pager/signals.hpp"

namespace ooc::detail {

void service_thread::start() {
  signals_blocked inherited_by_the_thread;
  thread_ = std::thread([this] { run(); });
}

void service_thread::stop() {
  stopping_ = true;
  state_.bell.ring();
  thread_.join();
}

void service_thread::run() {
  bool missing = false;  // misses without a frame are left
  for (;;) {
    const std::uint32_t heard = state_.bell.heard();
    {
      unique_lock l(state_.mutex());
      round(l);
      if (state_.failed()) continue;
      missing = !state_.events.stalled().empty();
      state_.check_invariants();
    }
    state_.memory.trace.drain();
    if (stopping_.load()) return;
    if (missing && !waits_for_frame_) {  // from now on it is told; once more, for what came before
      waits_for_frame_ = true;
      state_.waiters.service_begins();
      continue;
    }
    if (!missing && waits_for_frame_) {
      waits_for_frame_ = false;
      state_.waiters.service_ends();
    }
    // Not to poll: the relief of stalls counts seconds.
    constexpr timespec until_relief{1, 0};
    state_.bell.sleep(heard, state_.waiters.any() ? &until_relief : nullptr);
  }
}

void service_thread::round(unique_lock& l) {
  event_queue& events = state_.events;
  if (state_.failed()) relief_.end_process(l);
  for (std::size_t n = events.stalled().size(); n && !events.stalled().empty(); --n)
    handle(l, events.take_stalled());  // one that stalls again goes to the end
  while (!events.empty() && !state_.failed()) handle(l, events.take());
  state_.memory.ageing().ahead(l);
  writer_.write_behind(l);
  if (state_.starving()) relief_.relieve(l);
  if (std::exchange(state_.hint_due, false)) give_hints(l);
}

// Not through a stream or a logger, as the thread whose touch comes next may hold their lock; and not
// where the reader of standard error is behind, as it may be waiting for a touch.
void service_thread::give_hints(unique_lock& l) {
  std::string text;
  for (segment_state* s : state_.segments) text += s->past.take_hint(s->options.name);
  const unlocked gap(l, state_.mutex());
  pollfd out{2, POLLOUT, 0};
  if (::poll(&out, 1, 0) > 0 && ::write(2, text.data(), text.size()) < 0) { /* nobody to tell */
  }
}

void service_thread::handle(unique_lock& l, const touch_event& e) {
  serving_ = e.segment;
  if (!e.miss || loader_.start_miss(l, e)) {
    if (e.segment->parent)
      ahead_.grain_touched(l, e);
    else
      ahead_.touched(l, e);
  } else {
    touch_event stalled = e;
    if (stalled.stalled_since == 0) stalled.stalled_since = sys::now_ns();
    state_.events.stall(stalled);
  }
  serving_ = nullptr;
  state_.changed.notify_all();
}

}  // namespace ooc::detail
