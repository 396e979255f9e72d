// Which processes may touch which parts of a stripe object.
//
// Read-modify-write of a chunk and its checksum must be one step even where several processes have
// the same folder open.  Open-file-description locks (fcntl F_OFD_SETLKW) on the `.sum` file do
// that; they vanish with the process.  Lock byte r, which need not exist in the file, stands for
// bytes [r * 4 MiB, (r + 1) * 4 MiB) of the stripe object; the lock byte `whole_object` for the object as
// such: shared while an operation works on chunks, exclusive to sync, resize or remove it.
//
// A process takes a lock when its first operation needs it and drops it when its last one ends.
// Operations that come later join.  So that a busy process cannot shut out another, a process that
// must wait for lock b says so by a shared lock on byte 2^61 + b; whoever has held b for 50 ms
// looks there, lets no further operation join if somebody waits, and pauses before taking b again.
//
// No deadlock.  Order every wait for a lock by its byte, the whole stripe object first.  An operation takes
// its locks in that order and never waits for anything else while it holds one: its chunks
// (chunk_locks) were granted before, all at once, while it held nothing, and it runs on a thread of
// its own.  So whoever waits for lock r, in whatever process, waits for operations that hold r and
// can only be waiting for locks > r.  Each step of a chain of waits goes up, the chain is finite,
// and its last operation runs.  "Wait until it was dropped" is a wait for holders of the same r and
// fits the argument.  An exclusive claim on the whole stripe object finds no other holder in its own
// process, because it holds all chunks there.
//
// Any thread may call.  Blocks the calling thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/object/chunk_locks.hpp"

namespace ooc::storage {

class range_locks {
 public:
  static constexpr std::uint64_t region_bytes = std::uint64_t{4} << 20;

  /// `fd`: open read-write, owned by the caller, outlives this.  `shared`: it is open for reading only; chunks
  /// are then kept from writers, not from other readers, and the whole object cannot be locked (EBADF).
  explicit range_locks(int fd, bool shared = false) noexcept : fd_(fd), shared_(shared) {}

  /// The locks that one operation holds; gives them back at its end.
  class hold {
   public:
    hold() = default;
    hold(hold&& o) noexcept : owner_(std::exchange(o.owner_, nullptr)), held_(std::move(o.held_)) {}
    hold& operator=(hold&&) = delete;
    ~hold();

   private:
    friend class range_locks;
    range_locks* owner_ = nullptr;
    std::vector<std::uint64_t> held_;
  };

  /// The stripe object (not exclusively) and the regions of these chunks (sorted).  Returns an errno; on
  /// failure `h` holds what was taken before.
  int lock_chunks(const std::vector<chunk_range>& chunks, hold& h);
  /// The whole stripe object, exclusively.
  int lock_object(hold& h);

 private:
  struct state {
    unsigned holders = 0;
    bool busy = false;     // a thread is in fcntl for it
    bool yielded = false;  // dropped for the sake of fairness: pause before the next taking
    std::chrono::steady_clock::time_point since{};
  };

  int acquire(std::uint64_t byte, short type) OOC_EXCLUDES(mutex_);
  int take(std::uint64_t byte, short type) const OOC_EXCLUDES(mutex_);
  bool wanted_elsewhere(std::uint64_t byte) const;
  void release(std::uint64_t byte) OOC_EXCLUDES(mutex_);

  const int fd_;
  const bool shared_;
  mutex mutex_;
  condition_variable changed_;
  std::map<std::uint64_t, state> states_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
