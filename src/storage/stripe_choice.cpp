#include "storage/stripe_choice.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace ooc::storage {

namespace {

constexpr std::uint64_t unit = 4096;
// A request costs a node and its client as much as moving some 200 KiB.
constexpr std::uint64_t usual = 256 * 1024;
constexpr std::uint64_t worth_a_request = 64 * 1024;
constexpr std::uint64_t largest = 4 * 1024 * 1024;

struct tile_shape {
  std::uint64_t height, width;
};

/// Shapes that a block of this size may have: nobody tells us which, so the squares of elements of
/// 4 to 16 bytes, and twice as flat and as tall.
std::vector<tile_shape> likely_tiles(std::uint64_t block_bytes, std::uint64_t row_bytes) {
  std::vector<tile_shape> tiles;
  for (std::uint64_t height = 1; height <= 8192; height *= 2) {
    const std::uint64_t width = block_bytes / height;
    const bool likely = 64 * height * height >= block_bytes && height * height <= block_bytes;
    if (likely && width <= row_bytes) tiles.push_back({height, width});
  }
  return tiles;
}

}  // namespace

double tile_imbalance(std::uint64_t sf, std::uint32_t nodes, std::uint64_t offset,
                      std::uint64_t height, std::uint64_t width, std::uint64_t row_bytes) {
  std::vector<std::uint64_t> load(nodes, 0);
  const std::uint64_t period = sf * nodes;
  const std::uint64_t to_all = width / period * sf;  // whole rounds of a row
  for (std::uint64_t row = 0; row < height; ++row) {
    std::uint64_t at = (offset + row * row_bytes) % period;
    for (std::uint64_t left = width % period; left != 0;) {
      const std::uint64_t piece = std::min(left, sf - at % sf);
      load[at / sf % nodes] += piece;
      at += piece;
      left -= piece;
    }
  }
  for (std::uint64_t& l : load) l += to_all * height;
  const double mean = static_cast<double>(height * width) / nodes;
  return static_cast<double>(*std::max_element(load.begin(), load.end())) / mean;
}

std::uint64_t choose_stripe(std::uint64_t file_bytes, std::uint64_t block_bytes,
                            std::uint64_t row_bytes, std::uint32_t nodes, double tile_slack) {
  if (nodes <= 1) return usual;
  if (block_bytes == 0) block_bytes = std::uint64_t{1} << 20;
  if (file_bytes != 0) block_bytes = std::min(block_bytes, file_bytes);
  // What is even for 64 MiB is even for more.
  block_bytes = std::min(block_bytes, std::uint64_t{64} << 20);

  // With stripes larger than a node's fair part of a block some nodes get nothing of it; up to
  // twice that may still be the best where rows are a power of two apart, because there stripes of
  // 2^a * odd bytes reach only `odd` nodes.
  const std::uint64_t reached = std::clamp<std::uint64_t>(block_bytes / worth_a_request, 1, nodes);
  const std::uint64_t fair = block_bytes / reached / unit * unit;
  if (fair < unit) return unit;
  const std::uint64_t limit = std::min(2 * fair, largest);

  std::set<std::uint64_t> candidates;
  const auto consider = [&](std::uint64_t bytes) {
    if (const std::uint64_t c = bytes / unit * unit; c >= unit && c <= limit) candidates.insert(c);
  };
  for (std::uint64_t k = 1; k <= 8; ++k) consider(fair / k);
  for (std::uint64_t k = 1; k <= 48; ++k) consider(k * unit);
  for (std::uint64_t c = unit; c <= limit; c *= 2) consider(c);
  // Row i begins in stripe i * row / sf, so with row / sf = m nodes + 1 or m nodes - 1 consecutive
  // rows begin on consecutive nodes, and with row / sf = 1 / m every m rows.
  if (row_bytes != 0) {
    for (std::uint64_t k = 1; k <= 16; ++k) consider(row_bytes * k);
    for (std::uint64_t m = 0; m <= 16; ++m) {
      consider(row_bytes / (m * nodes + 1));
      if (m > 0) consider(row_bytes / (m * nodes - 1));
      for (const std::uint64_t extra : {1, 3, 5, 7})
        for (const std::uint64_t c : {unit, 4 * unit, 16 * unit}) consider(c * (2 * m + extra));
    }
  }

  const std::vector<tile_shape> tiles = likely_tiles(block_bytes, row_bytes);
  std::uint64_t best = unit;
  double best_cost = 1e300;
  for (const std::uint64_t sf : candidates) {
    // Unevenness of a block at the positions where blocks begin, and of likely tiles: 1 where no
    // node has more than if `reached` nodes had as much each.
    double cost = 1;
    const auto count = [&](std::uint64_t offset, const tile_shape& t, std::uint64_t row,
                           double slack) {
      cost = std::max(cost, tile_imbalance(sf, nodes, offset, t.height, t.width, row) *
                                static_cast<double>(reached) / nodes / slack);
    };
    for (const std::uint64_t first : {0, 1, 3})
      count(first * block_bytes, {1, block_bytes}, block_bytes, 1);
    double cut = 0;
    for (const tile_shape& t : tiles)
      for (const std::uint64_t column : {0, 1}) {
        const std::uint64_t offset = column * t.width;
        if (offset + t.width > row_bytes) continue;
        count(offset, t, row_bytes, tile_slack);
        cut += static_cast<double>(t.width % sf != 0 && sf % t.width != 0) /
               static_cast<double>(2 * tiles.size());
      }
    // Steps of 5 %: below that, evenness cannot be told from noise and other things decide.
    const double distance =
        std::abs(std::log2(static_cast<double>(sf) / static_cast<double>(usual)));
    const double total = std::round(cost * 20) / 20 + 0.04 * cut + 0.002 * distance;
    if (total < best_cost) {
      best_cost = total;
      best = sf;
    }
  }
  return best;
}

}  // namespace ooc::storage
