#include "storage/collective/route_choice.hpp"

#include <algorithm>
#include <limits>

namespace ooc::storage {

route choose_route(access_kind kind, std::span<const request> wanted, distance nodes) {
  std::uint64_t bytes = 0, pieces = 0;
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
  double spans = 0;  // of all ranks: a file of 2^63 bytes many times over
  for (const request& r : wanted) {
    if (r.empty()) continue;
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    for (const nested_request& n : r.entries()) {
      first = std::min(first, n.file_offset);
      pieces += n.runs();
    }
    bytes += r.bytes();
    begin = std::min(begin, first);
    end = std::max(end, r.file_end());
    spans += static_cast<double>(r.file_end() - first);
  }
  if (pieces == 0 || bytes / pieces >= long_piece(kind, nodes)) return route::independent;
  // Do the ranks reach over each other, or has each a range of its own?
  return spans > 1.25 * static_cast<double>(end - begin) ? route::exchanged : route::independent;
}

}  // namespace ooc::storage
