// The pager: serves touches of array memory, reads ahead, writes behind, and carries out the calls
// of segments.
//
// Threads: faults run in the thread that touched the array (pager_fault.cpp), under full signal
// mask; they do what needs no transfer themselves and hand the rest to the service thread
// (pager_service.cpp), which starts loads, reads ahead and cleans blocks that will soon be evicted
// (pager_write.cpp).  Transfers end on threads of the store, in on_loaded() and on_stored().  Calls
// of the program run in its own threads (pager_calls.cpp).
//
// Locks: one mutex, that of the resident_set, and ownership of blocks by the `busy` state.  Nobody
// waits for a block while holding the mutex, nor touches array memory while holding either.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "oocarray/runtime.hpp"
#include "runtime/blocks/resident_set.hpp"
#include "runtime/pager/fault_turn.hpp"
#include "runtime/pager/segment.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

enum class touch : std::uint8_t { read, write, unknown };

class pager {
 public:
  explicit pager(const runtime_options& options);
  ~pager();
  pager(const pager&) = delete;
  pager& operator=(const pager&) = delete;

  // --- for segments (segment.cpp); see segment.hpp for what they promise
  void add(segment_state& s);
  void remove(segment_state& s);
  failure writeback(segment_state& s, std::span<const block_range> which);
  segment::invalidated invalidate(segment_state& s, std::span<const block_range> which,
                                  bool discard);
  void mark_dirty_as_written(segment_state& s);
  void prefetch(segment_state& s, std::span<const block_range> which);
  void fetch_before_sweep(segment_state& s, std::span<const block_range> which);
  void advise(segment_state& s, access_pattern p);
  void set_part(segment_state& s, const segment_part& part);
  void promise(segment_state& s, std::span<const block_range> which);
  void clear_promises(segment_state& s, std::span<const block_range> which);
  failure pin(segment_state& s, std::span<const block_range> which, access_mode mode);
  void unpin(segment_state& s, std::span<const block_range> which, access_mode mode) noexcept;

  // --- for the fault handler
  /// Returns when the touch may be tried again; false if it is an error of the program.
  bool on_fault(segment_state& s, block_index b, touch t) noexcept;

  // --- for arrays and the block layer
  /// Takes the transfer buffers of a store off the budget, once per `store` and until it is gone;
  /// blocks in memory make room.  Throws usage_error (errc::budget_too_small).
  void account_store(const std::shared_ptr<const void>& store, std::uint64_t staging_bytes);
  /// Takes `bytes` off the budget until the result is destroyed, which must be before the pager is;
  /// blocks in memory make room.  Throws usage_error (errc::budget_too_small) naming `what`.
  class reservation;
  reservation reserve(std::uint64_t bytes, const std::string& what);
  /// The block size of arrays that name none: that of the options, or where none was given one of
  /// which the budget as it is now holds what one instruction can need.
  std::uint64_t default_block_bytes() const noexcept;
  std::uint64_t budget() const noexcept;
  runtime_stats stats() const;

  // --- for the end of the runtime (runtime.cpp) and of the process (process_end.cpp)
  /// Has the owner of every open segment close it; no other thread may use one meanwhile.
  void end_owners() noexcept;
  struct unwritten {
    std::string name;
    std::uint64_t blocks = 0;  ///< modified
    failure why;               ///< empty: not tried, or modified since
  };
  /// Writes back every segment, while other threads go on; returns those that still have modified
  /// blocks.
  std::vector<unwritten> write_back_all();
  /// The same list as it is now; empty where somebody holds the lock for long.
  std::vector<unwritten> modified() const;

 private:
  using lock_type = resident_set::lock_type;

  struct event {
    segment_state* segment;
    block_index block;
    touch kind;
    bool miss;  ///< a thread waits; otherwise: the block was touched for the first time
    std::uint64_t stalled_since = 0;
  };

  /// Counts the stores that a writeback() waits for.
  struct store_group;

  // What takes a lock_type expects it held, may release it meanwhile, and holds it again at its end.

  // pager_fault.cpp
  bool serve_fault(segment_state& s, block_index b, touch t) noexcept;
  bool load_inline(segment_state& s, block_index b, touch t) noexcept;
  bool map_ready(segment_state& s, block_index b, touch t) noexcept;
  bool begin_write(frame* f, const std::byte* bytes, std::uint32_t& seen) noexcept;
  void wait_for_frame(std::uint32_t seen) noexcept;
  void made_evictable() noexcept;
  void note_touch(segment_state& s, block_index b, touch t) noexcept OOC_REQUIRES(memory_.mutex());

  // pager_service.cpp
  void serve();
  bool post(const event& e) noexcept OOC_REQUIRES(memory_.mutex());
  void wake() noexcept;
  void handle(lock_type& l, const event& e) OOC_REQUIRES(memory_.mutex());
  bool start_miss(lock_type& l, const event& e) OOC_REQUIRES(memory_.mutex());
  void begin_transfer(segment_state& s) noexcept OOC_REQUIRES(memory_.mutex());
  void start_load(lock_type& l, frame* f, load_part part) OOC_REQUIRES(memory_.mutex());
  void count_read(segment_state& s, block_index b, std::uint64_t bytes) noexcept;
  void load(frame* f, load_part part);
  void on_loaded(frame* f, const failure& result);
  void begin_call(segment_state& s) noexcept OOC_REQUIRES(memory_.mutex());
  void end_call(segment_state& s) noexcept OOC_REQUIRES(memory_.mutex());
  bool write_starves() const noexcept OOC_REQUIRES(memory_.mutex());
  bool starving() const noexcept OOC_REQUIRES(memory_.mutex());
  bool clean_oldest(lock_type& l, const segment_state* only) OOC_REQUIRES(memory_.mutex());
  void relieve_stall(lock_type& l) OOC_REQUIRES(memory_.mutex());
  void transfer_ended(segment_state& s) noexcept OOC_REQUIRES(memory_.mutex());
  void end_process(lock_type& l) OOC_REQUIRES(memory_.mutex());

  // pager_ahead.cpp
  unsigned ahead_limit(const segment_state& s) noexcept OOC_REQUIRES(memory_.mutex());
  ahead_group group_for(const segment_state& s, unsigned limit) noexcept
      OOC_REQUIRES(memory_.mutex());
  void fetch_ahead(lock_type& l, const event& e) OOC_REQUIRES(memory_.mutex());
  bool fetch(lock_type& l, segment_state& s, std::span<const block_index> which)
      OOC_REQUIRES(memory_.mutex());
  void start_joint_load(lock_type& l, segment_state& s, std::span<frame* const> frames)
      OOC_REQUIRES(memory_.mutex());
  void on_joint_load(std::span<frame* const> frames, const failure& result);

  // pager_write.cpp
  void write_behind(lock_type& l) OOC_REQUIRES(memory_.mutex());
  void write_swept(lock_type& l, segment_state& s, block_index index, std::int64_t step)
      OOC_REQUIRES(memory_.mutex());
  bool clean(lock_type& l, frame* f, std::shared_ptr<store_group> group, bool swept = false)
      OOC_REQUIRES(memory_.mutex());
  void start_store(lock_type& l, frame* f, const std::byte* from, block_state then,
                   std::shared_ptr<store_group> group) OOC_REQUIRES(memory_.mutex());
  void on_stored(frame* f, block_state then, const std::shared_ptr<store_group>& group,
                 const failure& result);
  void send(frame* f, const std::byte* from, block_source::completion done);
  failure write_pinned(segment_state& s, block_index b);
  bool flush(segment_state& s, block_index b, const std::shared_ptr<store_group>& group);
  failure writeback_unlocked(segment_state& s, std::span<const block_range> which);

  // pager_calls.cpp
  bool reserve_for_store(lock_type& l, std::uint64_t bytes) OOC_REQUIRES(memory_.mutex());
  frame_needs needs() const noexcept OOC_REQUIRES(memory_.mutex());
  std::string taken_text() const OOC_REQUIRES(memory_.mutex());
  void check_needs_of(const segment_state& s) const OOC_REQUIRES(memory_.mutex());
  void count_pins(segment_state& s, std::span<const block_range> which, int sign) noexcept
      OOC_REQUIRES(memory_.mutex());
  failure reserve_pins(segment_state& s, std::span<const block_range> which);
  failure pin_block(segment_state& s, block_index b, bool write);
  segment::invalidated drop(segment_state& s, block_index b, bool discard);
  void drop_partial(frame* f) noexcept OOC_REQUIRES(memory_.mutex());
  void take_back(std::uint64_t bytes) noexcept;
  void count_invalidated(const segment_state& s) noexcept;

  failure described(const segment_state& s, block_index b, const char* what,
                    const failure& cause) const;

  static constexpr unsigned most_together = 8;  ///< blocks that one request loads

  mutable resident_set memory_;
  std::function<void(const failure&)> on_fatal_;
  std::uint64_t default_block_ = 0;
  bool block_chosen_ = false;  ///< by the options
  unsigned ahead_option_ = 0;
  std::vector<segment_state*> segments_ OOC_GUARDED_BY(memory_.mutex());
  struct accounted_store {
    std::weak_ptr<const void> store;
    std::uint64_t bytes;
  };
  std::vector<accounted_store> stores_ OOC_GUARDED_BY(memory_.mutex());
  /// Frames of pinned blocks, counting each pin.
  std::uint64_t pinned_bytes_ OOC_GUARDED_BY(memory_.mutex()) = 0;
  std::uint64_t pinned_frames_ OOC_GUARDED_BY(memory_.mutex()) = 0;

  // Storage for events, made beforehand: a fault handler allocates nothing.
  static constexpr std::size_t ring_size = 8192;
  std::vector<event> ring_ OOC_GUARDED_BY(memory_.mutex());
  std::size_t ring_first_ OOC_GUARDED_BY(memory_.mutex()) = 0;
  std::size_t ring_count_ OOC_GUARDED_BY(memory_.mutex()) = 0;
  std::vector<event> stalled_ OOC_GUARDED_BY(memory_.mutex());  ///< misses without a frame
  std::vector<block_index> wanted_;   ///< service thread
  /// The service thread is at work for it.
  segment_state* serving_ OOC_GUARDED_BY(memory_.mutex()) = nullptr;
  std::size_t stores_in_flight_ OOC_GUARDED_BY(memory_.mutex()) = 0;
  std::size_t transfers_ OOC_GUARDED_BY(memory_.mutex()) = 0;  ///< loads and stores
  event starved_ OOC_GUARDED_BY(memory_.mutex()){};  ///< a write that waits for its twin, if any
  /// Threads asleep in wait_for_frame().
  unsigned twins_awaited_ OOC_GUARDED_BY(memory_.mutex()) = 0;
  std::uint64_t starved_seen_ OOC_GUARDED_BY(memory_.mutex()) = 0;  ///< when it last tried
  unsigned stall_retries_ OOC_GUARDED_BY(memory_.mutex()) = 0;
  /// When relieve_stall() last let everybody look again.
  std::uint64_t nudged_ OOC_GUARDED_BY(memory_.mutex()) = 0;
  condition_variable changed_;   ///< a transfer ended, or serving_ changed

  // Who finds no frame sleeps until one may be had.  Whatever may end that (a transfer that ended, a
  // block that is nobody's any more, a pin or memory given back) advances `room_` first and then
  // looks at `hungry_`; who goes to sleep raises `hungry_` first and then looks once more.
  std::atomic<std::uint32_t> room_{0};    ///< futex of writes that wait for a twin
  std::atomic<std::uint32_t> hungry_{0};  ///< threads that wait for a frame
  bool service_hungry_ = false;           ///< the service thread is among them; its own

  fault_turn turn_;

  std::atomic<std::uint32_t> work_{0};  ///< futex of the service thread
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stopping_{false};
  failure fatal_ OOC_GUARDED_BY(memory_.mutex());  ///< set once
  std::atomic<bool> has_fatal_{false};
  std::thread service_;
};

/// Memory of the budget that serves for something else.
class pager::reservation {
 public:
  reservation() = default;
  reservation(pager& p, std::uint64_t bytes) noexcept : pager_(&p), bytes_(bytes) {}
  ~reservation() {
    if (pager_) pager_->take_back(bytes_);
  }
  reservation(reservation&& o) noexcept : pager_(std::exchange(o.pager_, nullptr)), bytes_(o.bytes_) {}
  reservation& operator=(reservation&& o) noexcept {
    std::swap(pager_, o.pager_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }

 private:
  pager* pager_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace ooc::detail
