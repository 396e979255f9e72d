// When the front of a sweep comes to which slabs: see wavefront.hpp.
//
// The front moves g slabs at a time.  At time t, level L computes
//
//     slabs  base + t g - L (g + r)  to  + g - 1 ,
//
// cut off at the slabs that the level has (its *range*).  Everything that it needs of level L - 1 was
// computed before time t, so all levels of one t are independent of each other.
//
// A range is that of the rows to be written and (k - L) r slabs more on either side, which are
// computed although they belong to another rank, or to the other end of a periodic dimension.  Where the
// array ends and is not periodic, the range ends too.  The additional slabs of level 0 are *ghosts*.
//
// A plain value; thread-safe.  The geometry outlives it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/sweep/slab_geometry.hpp"

namespace ooc::detail {

inline std::ptrdiff_t signed_size(std::size_t n) noexcept { return static_cast<std::ptrdiff_t>(n); }

inline std::size_t modulo(std::ptrdiff_t i, std::size_t n) noexcept {
  const std::ptrdiff_t m = i % signed_size(n);
  return static_cast<std::size_t>(m < 0 ? m + signed_size(n) : m);
}

/// The slabs, or rows of a slab, first <= i < last; negative or past the array where it is periodic.
struct slab_range {
  std::ptrdiff_t first = 0, last = 0;

  bool empty() const noexcept { return first >= last; }
  std::size_t size() const noexcept { return empty() ? 0 : static_cast<std::size_t>(last - first); }
};

/// How a pass is done.
struct wave_plan {
  std::size_t levels = 1;  ///< k
  std::size_t group = 1;   ///< g
  std::size_t run = 1;     ///< N = 1: slabs that a thread computes at once
  unsigned threads = 1;
  slab_range rows;          ///< slabs to be written
  bool ghosts_low = false;  ///< slabs before rows exist, and others write them
  bool ghosts_high = false;
  std::size_t steps_before = 0;
  bool completes = false;
  bool reported = false;  ///< values of the last level are wanted
  /// The last field is the first as it was a step before: of level L > 0, the first field's level L - 1.
  bool keeps_former = false;
};

/// Called between two rounds of a pass, with how many of them are done.  What it throws ends the pass.
using told_of_rounds = std::function<void(std::uint64_t done, std::uint64_t all)>;

class wave_schedule {
 public:
  wave_schedule(const slab_geometry& g, const wave_plan& p) noexcept : geometry_(&g), plan_(p) {}

  std::size_t lag() const noexcept { return plan_.group + geometry_->radius(); }
  /// Of a ring: level L + 1 looks at r slabs on either side, and level L + 2 at one slab, if that is the former
  /// value of what it computes.
  std::size_t slabs_kept(bool of_first_field) const noexcept {
    return 2 * lag() + (of_first_field && plan_.keeps_former && plan_.levels > 1 ? plan_.group : 0);
  }
  slab_range range(std::size_t level) const noexcept {
    const std::ptrdiff_t more = signed_size((plan_.levels - level) * geometry_->radius());
    slab_range all{plan_.rows.first - (plan_.ghosts_low ? more : 0), plan_.rows.last + (plan_.ghosts_high ? more : 0)};
    if (!geometry_->periodic()) {
      all.first = std::max<std::ptrdiff_t>(all.first, 0);
      all.last = std::min(all.last, signed_size(geometry_->slabs()));
    }
    return all;
  }
  /// Slabs that are read: those to be written, and ghosts.
  slab_range reads() const noexcept { return range(0); }
  std::ptrdiff_t times() const noexcept {
    const std::ptrdiff_t way = plan_.rows.last - reads().first + signed_size(plan_.levels * lag());
    return (way + signed_size(plan_.group) - 1) / signed_size(plan_.group);
  }
  /// The first slab of a level at that time, were its range without ends.
  std::ptrdiff_t first_due(std::size_t level, std::ptrdiff_t time) const noexcept {
    return reads().first + time * signed_size(plan_.group) - signed_size(level * lag());
  }
  /// The slabs that a level computes then.
  slab_range due(std::size_t level, std::ptrdiff_t time) const noexcept {
    const slab_range all = range(level);
    const std::ptrdiff_t first = first_due(level, time);
    return {std::max(first, all.first), std::min(first + signed_size(plan_.group), all.last)};
  }
  /// The slab keeps its values.
  bool at_end(std::ptrdiff_t i) const noexcept {
    const auto r = signed_size(geometry_->radius());
    return !geometry_->periodic() && (i < r || i >= signed_size(geometry_->slabs()) - r);
  }
  std::size_t index_of(std::ptrdiff_t i) const noexcept { return modulo(i, geometry_->slabs()); }

 private:
  const slab_geometry* geometry_;
  wave_plan plan_;
};

}  // namespace ooc::detail
