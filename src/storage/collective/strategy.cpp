#include "storage/collective/strategy.hpp"

#include <algorithm>
#include <limits>

namespace ooc::storage {

strategy choose_strategy(access_kind kind, std::span<const request> wanted, locality nodes) {
  std::uint64_t bytes = 0, regions = 0;
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
  double spans = 0;  // of all ranks: a file of 2^63 bytes many times over
  for (const request& r : wanted) {
    if (r.empty()) continue;
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    for (const nested_request& n : r.entries()) {
      first = std::min(first, n.file_offset);
      regions += n.runs();
    }
    bytes += r.bytes();
    begin = std::min(begin, first);
    end = std::max(end, r.file_end());
    spans += static_cast<double>(r.file_end() - first);
  }
  if (regions == 0 || bytes / regions >= long_region(kind, nodes)) return strategy::independent;
  // Do the ranks reach over each other, or has each a range of its own?
  return spans > 1.25 * static_cast<double>(end - begin) ? strategy::two_phase : strategy::independent;
}

}  // namespace ooc::storage
