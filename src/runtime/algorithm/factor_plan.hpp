// How a factorisation divides the memory that it has; arithmetic without I/O, in elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ooc::detail {

struct factor_facts {
  std::size_t rows = 1;
  std::size_t columns = 1;
  bool below_diagonal_only = false;  ///< columns begin with the diagonal
  bool always_passed = false;        ///< also where there is one panel: columns of another matrix pass by
  std::size_t element_size = 8;
  std::size_t ranks = 1;  ///< of which each has memory for columns
};

/// Columns are in memory in *panels*, one after the other, as wide as memory allows.  The factorised strips to the left
/// pass by, through two buffers.  Strips of a panel itself are narrower, and are dealt out to the ranks in turn.
struct factor_plan {
  std::size_t strip = 0;              ///< columns of one; 0: nothing fits
  std::vector<std::size_t> edges;     ///< of the panels: 0, ..., columns
  std::uint64_t panel_elements = 0;   ///< of one rank
  std::uint64_t buffer_elements = 0;  ///< of each of two; 0: nothing passes by
  std::uint64_t work_elements = 0;    ///< what the kernel takes beside

  std::uint64_t elements() const noexcept { return panel_elements + 2 * buffer_elements + work_elements; }
};

inline constexpr std::size_t widest_strip = 256;
inline constexpr std::size_t narrowest_strip = 8;

inline std::size_t strip_of_panel(std::size_t strip) noexcept { return std::max(strip / 4, narrowest_strip); }
/// Of so many columns of a panel.
std::size_t columns_of_rank(const factor_plan& p, std::size_t columns, std::size_t rank, std::size_t ranks);

/// The plan that reads least, within so many bytes.
factor_plan plan_factorisation(const factor_facts& f, std::uint64_t memory_bytes);
/// The least memory in which one fits.
std::uint64_t least_factor_memory(const factor_facts& f);

}  // namespace ooc::detail
