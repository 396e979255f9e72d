// The threads that serve touches by userfaultfd: those of the program, and of its system calls, sleep in
// the kernel meanwhile.
//
// One thread at a time, the *reader*, reads what the kernel has to tell, and serves it itself: most
// touches are served in microseconds, and waking another thread would cost more.  Before it waits for
// anything (a block on its way, a frame, the kernel while it moves pages) it hands the reading over to a
// thread that is idle.  So there is always one that reads, which mremap within the range relies on: it
// returns once its event has been read.
//
// Invariant: the reader serves a touch only while another thread is idle, beside those that take the touches put
// aside.  Where all of them wait and no more can be made, it puts touches aside, for the first thread that has time.
//
// Lock: `mutex_`; nothing is called with it.
#pragma once

#include <cstdint>
#include <deque>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/blocks/userfault_mapping.hpp"
#include "runtime/pager/fault_turn.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

class fault_threads {
 public:
  explicit fault_threads(userfault_mapping& mapping) noexcept : mapping_(mapping) {}

  /// Throws std::system_error where there are no threads to be had.
  void start();
  /// When no segment is open any more.
  void stop();

  /// Asserts what can be seen of the invariant under the mutex.
  void check_invariants() const OOC_REQUIRES(mutex_);

 private:
  struct touch_seen {
    std::uintptr_t address = 0;
    std::uint32_t thread = 0;
    bool write = false;
    wake_log::number asked = 0;
  };
  enum class news : std::uint8_t { touched, moved, end };

  void run(bool counted);
  news read(touch_seen& t) const;
  void serve(const touch_seen& t);
  bool serve_here_or_put_aside(const touch_seen& t);
  void give_up_reading();
  fault_history take_history(std::uint32_t thread);
  void keep_history(const fault_history& h);

  static constexpr std::size_t most_threads = 64;
  static constexpr std::size_t most_histories = 4096;

  userfault_mapping& mapping_;
  std::byte* bell_page_ = nullptr;  ///< whose touch is news for the reader
  ooc::mutex mutex_;
  condition_variable changed_;
  std::vector<std::thread> threads_ OOC_GUARDED_BY(mutex_);
  std::size_t idle_ OOC_GUARDED_BY(mutex_) = 0;
  bool has_reader_ OOC_GUARDED_BY(mutex_) = false;
  bool stopping_ OOC_GUARDED_BY(mutex_) = false;  ///< stop() has been called
  bool ended_ OOC_GUARDED_BY(mutex_) = false;     ///< ... and the reader has seen that
  std::deque<touch_seen> aside_ OOC_GUARDED_BY(mutex_);
  /// Of the program's threads, but for those that are being served.
  std::unordered_map<std::uint32_t, fault_history> histories_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::detail
