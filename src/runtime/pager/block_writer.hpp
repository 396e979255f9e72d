// How modified blocks get to the store: behind the program's back, and on demand.
//
// A block is dirty until its store has succeeded.  What ages and is about to be evicted, or what a
// sweep has left behind, is *cleaned*: moved to its frame and written from there, its bytes kept
// (ready, clean).  What writeback() finds mapped is *flushed* in place: made read-only, written,
// and left mapped.  What is pinned for writing is written from a copy and stays dirty.
//
// Invariants: nobody changes the bytes of a store that is in flight; of one block one store is in
// flight at a time, copies of pinned blocks included (frame::copying).
//
// Locks: the pager's, released while a source is called or pages move; under it that of the stores
// that one writeback() waits for.  Threads: the service thread cleans,
// the program's calls and the end of the process write back, stores end on threads of the store.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/pager/pager_state.hpp"
#include "storage/base/in_flight.hpp"

namespace ooc::detail {

class block_writer {
 public:
  explicit block_writer(pager_state& state) noexcept : state_(state) {}

  // --- for those who need frames

  /// Keeps the head of the inactive queue clean, so that misses find a block to evict.
  void write_behind(unique_lock& l) OOC_REQUIRES(pager_mutex);
  /// A sweep of writes has come to block `index`.
  void write_swept(unique_lock& l, segment_state& s, block_index index, std::int64_t step) OOC_REQUIRES(pager_mutex);
  /// Starts to write the modified block that was seen longest ago, of `only` if given; false where
  /// none can be.
  bool clean_oldest(unique_lock& l, const segment_state* only) OOC_REQUIRES(pager_mutex);
  /// The same, and waits until a transfer has ended; false where there is neither.
  bool make_room(unique_lock& l) OOC_REQUIRES(pager_mutex);
  /// Blocks that were stored, so far; pinned ones are not counted.
  std::uint64_t stored() const noexcept OOC_REQUIRES(pager_mutex) { return stored_; }

  // --- for calls of the program and the end of the process

  failure writeback(segment_state& s, std::span<const block_range> which);
  struct unwritten {
    std::string name;
    std::uint64_t blocks = 0;  ///< modified
    failure why;               ///< empty: not tried, or modified since
  };
  std::vector<unwritten> write_back_all();
  std::vector<unwritten> modified() const;

 private:
  /// A store of a block that is on its way, or about to be.
  struct store_job {
    frame* f = nullptr;
    const std::byte* from = nullptr;
    block_state then = block_state::ready;
    std::shared_ptr<in_flight> group;
  };
  /// Grains of one segment whose stores have begun, to be sent with one request.  Whoever has one sends it before
  /// he waits for anything.
  struct store_batch {
    static constexpr std::size_t most = 32;
    std::array<store_job, most> jobs;
    std::size_t count = 0;
  };

  bool clean_some(unique_lock& l, std::uint64_t lookahead, std::uint64_t at_least, store_batch& batch)
      OOC_REQUIRES(pager_mutex);
  bool clean(unique_lock& l, frame* f, std::shared_ptr<in_flight> group, store_batch* batch = nullptr,
             bool swept = false) OOC_REQUIRES(pager_mutex);
  void start_store(unique_lock& l, store_job job, store_batch* batch) OOC_REQUIRES(pager_mutex);
  void send(unique_lock& l, store_batch& batch) OOC_REQUIRES(pager_mutex);
  void send_now(store_batch& batch) OOC_EXCLUDES(pager_mutex);
  void send_alone(const store_job& job);
  void on_stored_together(std::span<const store_job> jobs, const failure& result, std::uint64_t bytes);
  void on_stored(const store_job& job, const failure& result);
  void send(frame* f, const std::byte* from, std::function<void(const failure&)> done);
  failure write_pinned(segment_state& s, block_index b);
  bool flush(segment_state& s, block_index b, const std::shared_ptr<in_flight>& group, store_batch& batch);
  failure write_back(segment_state& s, std::span<const block_range> which);

  pager_state& state_;
  std::uint64_t stored_ OOC_GUARDED_BY(pager_mutex) = 0;
  /// When write_behind() looked last: what had aged, and whether it left something.
  std::uint64_t aged_seen_ OOC_GUARDED_BY(pager_mutex) = 0;
  bool behind_ OOC_GUARDED_BY(pager_mutex) = false;
};

}  // namespace ooc::detail
