// The rings of a pass: what the levels below the last one, and coefficients, remember of the slabs that the front has
// come to.
//
// A ring holds, of each slab, the rows of the part and the border before them (row_cut.hpp).  N = 1: the elements
// follow each other, and the first and last of the ring are repeated beyond its ends, so that a kernel finds its
// neighbours beside an element.
//
// Coefficients have one level, for all to look at.
//
// Owner: wavefront.  Threads: begin_part() while no other uses it; the slabs belong to who has the task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "oocarray/detail/sweep_engine.hpp"
#include "runtime/sweep/row_cut.hpp"
#include "runtime/sweep/slab_geometry.hpp"
#include "runtime/sweep/wave_schedule.hpp"

namespace ooc::detail {

class wave_rings {
 public:
  wave_rings(const slab_geometry& g, const wave_plan& plan, const row_cut& cut, const sweep_request& r);

  /// The bytes that they need at `memory`, aligned to 64.
  std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }
  void use(std::byte* memory) noexcept { memory_ = memory; }
  void begin_part(std::size_t part) noexcept { part_ = part; }

  /// The level of this field is kept as the first field's level below it.
  bool is_former(std::size_t field, std::size_t level) const noexcept {
    return plan_.keeps_former && level > 0 && field + 1 == request_.fields.size();
  }

  /// The element (0, 0, ...) of slab i, which may lie outside the part; level < k, any of a coefficient.
  std::byte* slab(std::size_t input, std::size_t level, std::ptrdiff_t i) const noexcept;
  /// The first row that a ring holds of slab i.
  std::byte* first_row(std::size_t input, std::size_t level, std::ptrdiff_t i) const noexcept;
  /// N = 1: up to where the slabs from i on follow each other in all rings.
  std::ptrdiff_t contiguous_until(std::ptrdiff_t i) const noexcept;
  /// These slabs of a level are complete: fills what a kernel sees beyond their ends.
  void fill_pads(std::size_t level, slab_range slabs) const noexcept;

 private:
  struct ring {
    std::size_t offset;  ///< in memory_
    std::size_t slabs;
    std::size_t pitch;  ///< bytes from slab to slab
  };

  void place(std::size_t element, std::size_t slabs, std::size_t rows);
  const ring& of(std::size_t input, std::size_t level) const noexcept {
    const std::size_t fields = request_.fields.size();
    return rings_[input < fields ? input * plan_.levels + level : fields * (plan_.levels - 1) + input];
  }
  void repeat_ends(const ring& r, std::size_t element, slab_range slabs) const noexcept;

  const slab_geometry& geometry_;
  const wave_plan plan_;
  const wave_schedule schedule_;
  const row_cut cut_;
  const sweep_request& request_;
  std::vector<ring> rings_;  ///< of each field those of all levels, then of each coefficient
  std::byte* memory_ = nullptr;
  std::uint64_t memory_bytes_ = 0;
  std::size_t part_ = 0;
};

}  // namespace ooc::detail
