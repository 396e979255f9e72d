#include "storage/layout/stripe_choice.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace ooc::storage {

namespace {

constexpr std::uint64_t unit = 4096;
constexpr std::uint64_t usual = std::uint64_t{256} << 10;
// A request counts as much as moving so many bytes: three times as many on a virtual machine with
// two processors, fewer where servers have their own.
constexpr std::uint64_t a_request = std::uint64_t{64} << 10;
constexpr std::uint64_t largest = std::uint64_t{4} << 20;
constexpr double slack_of_rare_tiles = 1.5;

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

/// The bytes that each node has to move.
class node_loads {
 public:
  /// A request counts as much as moving `request` bytes.
  node_loads(std::uint64_t sf, std::uint32_t nodes, std::uint64_t request)
      : sf_(sf), request_(request), load_(nodes, 0), last_(nodes, 0) {}

  /// One access, a request to each of its nodes: `height` rows of `width` bytes, `row_bytes` apart,
  /// the first of them at `offset`.
  void add(std::uint64_t offset, std::uint64_t height, std::uint64_t width, std::uint64_t row_bytes) {
    const std::uint64_t period = sf_ * load_.size();
    const std::uint64_t to_all = width / period * sf_ * height;  // whole rounds of a row
    ++accesses_;
    for (std::size_t n = 0; to_all != 0 && n < load_.size(); ++n) move(n, to_all);
    for (std::uint64_t row = 0; row < height; ++row) {
      std::uint64_t at = (offset + row * row_bytes) % period;
      for (std::uint64_t left = width % period; left != 0;) {
        const std::uint64_t region = std::min(left, sf_ - at % sf_);
        move(at / sf_ % load_.size(), region);
        at += region;
        left -= region;
      }
    }
    bytes_ += height * width;
  }

  double busiest() const { return static_cast<double>(*std::ranges::max_element(load_)); }
  double mean() const { return static_cast<double>(bytes_) / static_cast<double>(load_.size()); }

 private:
  void move(std::size_t node, std::uint64_t bytes) {
    load_[node] += bytes;
    if (std::exchange(last_[node], accesses_) != accesses_) load_[node] += request_;
  }

  std::uint64_t sf_, request_;
  std::vector<std::uint64_t> load_;
  std::vector<std::uint64_t> last_;  ///< access that came to this node
  std::uint64_t accesses_ = 0, bytes_ = 0;
};

/// Work of the busiest node on `blocks` blocks as if they were neighbours, at positions where such
/// runs begin.
double most_work(std::uint64_t sf, std::uint32_t nodes, std::uint64_t block, std::uint64_t blocks) {
  double most = 0;
  for (const std::uint64_t run : {0, 1, 3}) {
    node_loads l(sf, nodes, a_request);
    for (std::uint64_t k = 0; k < blocks; ++k) l.add((run * blocks + k) * block, 1, block, 0);
    most = std::max(most, l.busiest());
  }
  return most;
}

std::set<std::uint64_t> sizes_to_try(std::uint64_t least, std::uint64_t fair, std::uint64_t limit, std::uint64_t row,
                                     std::uint32_t nodes) {
  std::set<std::uint64_t> sizes;
  const auto consider = [&](std::uint64_t bytes) {
    if (const std::uint64_t c = bytes / unit * unit; c >= least && c <= limit) sizes.insert(c);
  };
  for (std::uint64_t k = 1; k <= 8; ++k) consider(fair / k);
  for (std::uint64_t k = 1; k <= 48; ++k) consider(k * unit);
  for (std::uint64_t k = 1; k <= 32; ++k) consider(k * 4 * unit);
  for (std::uint64_t c = unit; c <= limit; c *= 2) consider(c);
  if (row == 0) return sizes;
  // Row i begins in stripe i * row / sf, so with row / sf = m nodes + 1 or m nodes - 1 consecutive
  // rows begin on consecutive nodes, and with row / sf = 1 / m every m rows.
  for (std::uint64_t k = 1; k <= 16; ++k) consider(row * k);
  for (std::uint64_t m = 0; m <= 16; ++m) {
    consider(row / (m * nodes + 1));
    if (m > 0) consider(row / (m * nodes - 1));
    for (const std::uint64_t extra : {1, 3, 5, 7})
      for (const std::uint64_t c : {unit, 4 * unit, 16 * unit}) consider(c * (2 * m + extra));
  }
  return sizes;
}

}  // namespace

double tile_imbalance(std::uint64_t sf, std::uint32_t nodes, std::uint64_t offset, std::uint64_t height,
                      std::uint64_t width, std::uint64_t row_bytes) {
  node_loads l(sf, nodes, 0);
  l.add(offset, height, width, row_bytes);
  return l.busiest() / l.mean();
}

std::uint64_t choose_stripe(const stripe_use& use, std::uint32_t nodes) {
  if (nodes <= 1) return usual;
  std::uint64_t block = use.block_bytes ? use.block_bytes : std::uint64_t{1} << 20;
  if (use.file_bytes != 0) block = std::min(block, use.file_bytes);
  // A distribution that is even for 64 MiB is even for more.
  block = std::clamp(block, unit, std::uint64_t{64} << 20);
  const std::uint64_t readers = std::clamp<std::uint64_t>(use.readers, 1, 1024);

  // With stripes larger than a node's fair part of what is moved together some nodes get nothing of
  // it; up to twice that may still be the best where rows are a power of two apart, because there
  // stripes of 2^a * odd bytes reach only `odd` nodes.
  const std::uint64_t together = block * readers;
  const std::uint64_t reached = std::clamp<std::uint64_t>(together / a_request, 1, nodes);
  const std::uint64_t fair = std::max(unit, together / reached / unit * unit);
  // Long stripes save few requests, and let several readers meet on a node for long.
  const std::uint64_t limit = std::min(2 * fair, readers > 1 ? usual : largest);
  // A block is not cut for less than a request is worth; tiles are many regions anyway.
  const bool by_tiles = use.by_tiles && use.row_bytes != 0;
  const std::uint64_t least = by_tiles ? unit : std::min(fair, a_request);
  // Nodes that are not reached are for the blocks that come next.
  const std::uint64_t following = (nodes + reached - 1) / reached;

  const std::uint64_t blocks = readers * following, row = use.row_bytes;
  const double at_best = static_cast<double>(blocks * block) / nodes + double{a_request};
  const std::vector<tile_shape> tiles = likely_tiles(block, row);
  std::uint64_t best = unit;
  double best_cost = 1e300;
  for (const std::uint64_t sf : sizes_to_try(least, fair, limit, row, nodes)) {
    // The busiest node's work over what it could be at best, and unevenness of likely tiles.
    double cost = most_work(sf, nodes, block, blocks) / at_best;
    double cut = 0;
    for (const tile_shape& t : tiles)
      for (const std::uint64_t column : {0, 1}) {
        const std::uint64_t offset = column * t.width;
        if (offset + t.width > row) continue;
        const std::uint64_t below = std::clamp<std::uint64_t>(8192 / t.height, 1, following);
        const double uneven = tile_imbalance(sf, nodes, offset, t.height * below, t.width, row);
        cost = std::max(cost, by_tiles ? uneven : uneven / slack_of_rare_tiles);
        cut += static_cast<double>(t.width % sf != 0 && sf % t.width != 0) / static_cast<double>(2 * tiles.size());
      }
    // Steps of 5 %: below that, evenness cannot be told from noise and other things decide.
    const double from_usual = std::abs(std::log2(static_cast<double>(sf) / static_cast<double>(usual)));
    const double total = std::round(cost * 20) / 20 + 0.04 * cut + 0.002 * from_usual;
    if (total < best_cost) {
      best_cost = total;
      best = sf;
    }
  }
  return best;
}

striping with_stripe_size(striping asked, const stripe_use& use, std::uint32_t store_nodes) {
  // More nodes than the store has are refused when the file is made, and cost nothing here.
  if (asked.sf == 0) asked.sf = choose_stripe(use, asked.nn ? std::min(asked.nn, store_nodes) : store_nodes);
  return asked;
}

}  // namespace ooc::storage
