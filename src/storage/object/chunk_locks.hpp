// Which operations of this process may touch which chunks of a stripe object.
//
// An operation asks for all its chunks at once and gets all or none.  Where it conflicts (with one
// that holds chunks, or with an earlier one that waits) it is parked: no thread waits for it, and
// its `resume` is called by whoever makes room.  Parked operations hold nothing and go in the order
// in which they came, so nobody starves and no cycle can arise here.
//
// Any thread may call.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <vector>

#include "storage/base/mutex.hpp"

namespace ooc::storage {

/// Chunks [first, end) of a stripe object.
struct chunk_range {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

inline constexpr chunk_range all_chunks{0, std::numeric_limits<std::uint64_t>::max()};

class chunk_locks {
 public:
  /// The ranges that one operation holds or waits for.  It lives in the operation and must outlast it there.
  struct claim {
    std::vector<chunk_range> ranges;  ///< sorted, disjoint
    bool exclusive = true;            ///< claims that are not exclusive may overlap each other
    std::function<void()> resume;     ///< called once, if parked, when the claim has been granted; throws nothing
    claim* next_ready = nullptr;      ///< among those that are being resumed
  };

  /// True if granted at once.  Otherwise the claim is parked; it belongs to this object until
  /// `resume` is called, perhaps before lock() returns.  Throws std::bad_alloc, and is neither then.
  bool lock(claim& c) OOC_EXCLUDES(mutex_);

  /// Gives a granted claim back and resumes those that can now be granted.
  void unlock(claim& c) noexcept OOC_EXCLUDES(mutex_);

 private:
  mutex mutex_;
  std::list<claim*> granted_ OOC_GUARDED_BY(mutex_);
  std::list<claim*> parked_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
