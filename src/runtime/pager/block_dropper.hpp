// Blocks that leave memory because what they hold is not wanted, or not current, any more.
//
// invalidate() forgets what others have changed in the store.  A promise lets a block come in without
// the part that the program will overwrite; taking it back forgets what came in that way and was not
// touched.  What is pinned, or modified and not to be discarded, stays.  A block that is on its way
// (`loading`) is marked stale, and dropped by the loader when it arrives.
//
// Lock: the pager's; released while pages move and while it waits for a block.  Threads: calls of the
// program.
#pragma once

#include <span>

#include "runtime/pager/pager_state.hpp"
#include "runtime/pager/segment.hpp"

namespace ooc::detail {

class block_dropper {
 public:
  explicit block_dropper(pager_state& state) noexcept : state_(state) {}

  // See segment.hpp for what these promise.
  segment::invalidated invalidate(segment_state& s, std::span<const block_range> which, bool discard);
  void promise(segment_state& s, std::span<const block_range> which);
  void clear_promises(segment_state& s, std::span<const block_range> which);
  /// Takes all blocks of a segment that closes out of memory.  Nobody uses it any more.
  void drop_all(unique_lock& l, segment_state& s) OOC_REQUIRES(pager_mutex);

 private:
  segment::invalidated drop(segment_state& s, block_index b, bool discard);
  void promise_in_memory(frame* f, block_state state) noexcept;
  void drop_partial(frame* f) noexcept OOC_REQUIRES(pager_mutex);
  void count_invalidated(const segment_state& s) noexcept;

  pager_state& state_;
};

}  // namespace ooc::detail
