#include "copying/target_striping.hpp"

#include <algorithm>

#include "storage/layout/stripe_choice.hpp"

namespace ooc::tool {

void add_striping_options(command_line& line) {
  line.option()("sf", po::value<std::string>()->value_name("BYTES"), "stripe size; otherwise chosen from the shape");
  line.option()("nn", po::value<std::uint32_t>()->value_name("N"), "nodes to use; otherwise all");
  line.option()("sn", po::value<std::uint32_t>()->value_name("N"), "first node; otherwise 0");
}

striping target_striping(const command_line& line, const storage::array_description& array, std::uint64_t file_bytes,
                         std::uint32_t store_nodes) {
  striping s;
  s.sn = line.number("sn", 0);
  s.nn = line.number("nn", store_nodes);
  s.sf = line.bytes("sf", 0);
  const auto& e = array.extents;
  const bool rows = e.size() > 1 && e.back() != 0 && array.tile.empty();
  std::uint64_t block = 2_MiB;
  if (!array.tile.empty()) {
    block = array.element_size;
    for (const std::uint64_t n : array.tile) block = std::min<std::uint64_t>(block * n, 1_GiB);
  }
  return storage::with_stripe_size(s,
                                   {.file_bytes = file_bytes,
                                    .block_bytes = block,
                                    .row_bytes = rows ? e.back() * array.element_size : 0,
                                    .by_tiles = false},
                                   store_nodes);
}

}  // namespace ooc::tool
