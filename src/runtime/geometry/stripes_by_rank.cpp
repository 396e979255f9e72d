#include "runtime/geometry/stripes_by_rank.hpp"

#include <algorithm>

#include "oocarray/error.hpp"
#include "runtime/geometry/partition.hpp"

namespace ooc::detail {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw usage_error(errc::invalid_request, "array '" + path +
                                               "': the parts of the ranks cannot be placed on nodes of their "
                                               "own hosts (placement::by_rank): " +
                                               why);
}

std::string list_of(std::span<const std::vector<std::uint64_t>> near) {
  std::string text;
  for (std::size_t r = 0; r < near.size() && r < 8; ++r)
    text += (r ? ", " : "") + ("rank " + std::to_string(r)) + ": " + to_string(near[r]);
  return text + (near.size() > 8 ? ", ..." : "");
}

}  // namespace

striping stripes_by_rank(const std::string& path, const array_geometry& g,
                         std::span<const std::vector<std::uint64_t>> near, std::uint32_t nodes) {
  if (g.elements() == 0) refuse(path, "it has no rows yet; create it with some, or without the placement");
  const std::uint64_t rows = equal_parts(g, near.size());
  if (rows == 0)
    refuse(path, "they would end within tiles of the file, which has too few rows of tiles for " +
                     std::to_string(near.size()) + " ranks; choose a smaller options.tile");
  const std::uint64_t stripes = (g.extents()[0] + rows - 1) / rows;
  near = near.first(std::min<std::uint64_t>(near.size(), stripes));  // others have no part
  for (std::size_t r = 0; r < near.size(); ++r)
    if (near[r].empty()) refuse(path, "the store has no I/O node on the host of rank " + std::to_string(r));

  const auto fits = [&](std::uint64_t sn, std::uint64_t nn) {
    for (std::size_t r = 0; r < near.size(); ++r)
      if (std::ranges::find(near[r], (sn + r % nn) % nodes) == near[r].end()) return false;
    return true;
  };
  for (std::uint32_t nn = nodes; nn > 0; --nn)
    for (std::uint32_t sn = 0; sn < nodes; ++sn)
      if (fits(sn, nn)) return {sn, nn, rows / rows_together(g) * bytes_together(g)};
  refuse(path,
         "stripes go round robin over nodes that follow each other, and the nodes on the "
         "ranks' hosts do not (" +
             list_of(near) + "); start the ranks in the order of the nodes");
}

}  // namespace ooc::detail
