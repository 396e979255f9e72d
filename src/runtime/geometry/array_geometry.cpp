// See array_geometry.hpp.
//
// Every request is built from boxes on which both orders are affine: a block is cut into boxes (a
// tile is one, a run of a row-major image at most 2 * rank - 1), a promised box is cut out of them,
// and what is left is cut at the tile borders of the file (element_order.hpp).

#include "runtime/geometry/array_geometry.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "oocarray/error.hpp"
#include "runtime/geometry/write_notices.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {
namespace {

constexpr std::uint64_t max_bytes = (std::uint64_t{1} << 63) - 1;

[[noreturn]] void refuse(const geometry_options& o, const std::string& what) {
  throw usage_error(errc::invalid_request, o.name.empty() ? what : "array '" + o.name + "': " + what);
}

/// Returns the value, or refuses with the sizes that led past the limit.
template <class T>
T within_limit(const std::optional<T>& found, const geometry_options& o) {
  if (!found)
    refuse(o, "an array of extents " + to_string(o.extents) +
                  (o.max_extents == o.extents ? "" : " (up to " + to_string(o.max_extents) + ")") +
                  " with elements of " + std::to_string(o.element_size) +
                  " bytes passes the limit of 2^63 - 1 bytes; use smaller extents");
  return *found;
}

bool empty(const index_box& b, std::size_t rank) {
  for (std::size_t k = 0; k < rank; ++k)
    if (b.lower[k] >= b.upper[k]) return true;
  return false;
}

/// Calls f(part) for the boxes that make up `b` without `hole`: at most two per dimension.
template <class F>
void subtract(index_box b, const index_box& hole, std::size_t rank, F&& f) {
  if (!overlap(b, hole, rank)) return f(b);
  for (std::size_t k = 0; k < rank; ++k) {
    if (b.lower[k] < hole.lower[k]) {
      index_box part = b;
      part.upper[k] = hole.lower[k];
      f(part);
      b.lower[k] = hole.lower[k];
    }
    if (hole.upper[k] < b.upper[k]) {
      index_box part = b;
      part.lower[k] = hole.upper[k];
      f(part);
      b.upper[k] = hole.upper[k];
    }
  }
}

/// The bytes of a row-major array that lie in block b, counted from the first element.
byte_run image_of(const array_geometry& g, block_index b) noexcept {
  const std::uint64_t begin = std::max(b * g.block_bytes(), g.lead()) - g.lead();
  const std::uint64_t end = std::min((b + 1) * g.block_bytes() - g.lead(), g.elements() * g.element_size());
  return {begin, end - begin};
}

}  // namespace

array_geometry::array_geometry(geometry_options options) : options_(std::move(options)) {
  const geometry_options& o = options_;
  rank_ = o.extents.size();
  if (rank_ < 1 || rank_ > max_rank) refuse(o, "an array has 1 to 8 dimensions, not " + std::to_string(rank_));
  if (o.element_size == 0) refuse(o, "an element has at least 1 byte");
  if (options_.max_extents.empty()) options_.max_extents = o.extents;
  for (const auto* list : {&o.extents, &o.max_extents, &o.tile, &o.file_tile}) {
    if (list->empty()) continue;
    const std::string name = list == &o.extents       ? "the extents "
                             : list == &o.max_extents ? "max_extents "
                                                      : "the tile ";
    if (list->size() != rank_)
      refuse(o, name + to_string(*list) + (name.ends_with("s ") ? " have " : " has ") + std::to_string(list->size()) +
                    " dimensions, the array " + std::to_string(rank_));
    const bool tile = list == &o.tile || list == &o.file_tile;
    if (std::find(list->begin() + (tile ? 0 : 1), list->end(), 0u) != list->end())
      refuse(o, name + to_string(*list) +
                    (tile ? " contains a 0; every number must be at least 1"
                          : " contain a 0; only the first may be 0, all others are at least 1"));
  }
  element_size_ = o.element_size;
  std::ranges::copy(o.extents, extents_.begin());
  for (std::size_t k = 0; k < rank_; ++k)
    if (o.max_extents[k] < extents_[k])
      refuse(o, "max_extents " + to_string(o.max_extents) + " are below the extents " + to_string(o.extents) +
                    " in dimension " + std::to_string(k));
  tiled_ = !o.tile.empty();

  const std::uint64_t max_image = within_limit(storage::bytes_of(o.max_extents, element_size_), o);
  elements_ = *storage::bytes_of(o.extents, 1);
  std::vector<std::uint64_t> image = o.extents;  // with the first extent at its limit
  image[0] = o.max_extents[0];
  const element_order rows = element_order::row_major(image, element_size_);

  if (o.file_tile.empty()) {
    if (!std::equal(image.begin(), image.end(), o.max_extents.begin()))
      refuse(o, "a file in row-major order grows in the first dimension only, and max_extents " +
                    to_string(o.max_extents) + " are more than the extents " + to_string(o.extents) +
                    " in another; choose ooc::file_order::tiled");
    file_ = rows;
    file_bytes_ = elements_ * element_size_;
  } else {
    const storage::tile_grid g =
        within_limit(storage::tiles_covering(o.extents, o.file_tile, element_size_, o.max_extents), o);
    file_ = element_order::tiled(o.file_tile, g, element_size_, g.tile_bytes);
    file_bytes_ = g.tiles * g.tile_bytes;
  }

  if (tiled_) {
    max_blocks_ = within_limit(storage::tiles_covering(o.max_extents, o.tile, element_size_), o).tiles;
    const storage::tile_grid g = *storage::tiles_covering(o.extents, o.tile, element_size_, o.max_extents);
    std::ranges::copy(o.tile, tile_.begin());
    std::copy_n(g.count.begin(), rank_, grid_.begin());
    block_bytes_ = in_whole_pages(g.tile_bytes);
    blocks_ = g.tiles;
    memory_ = element_order::tiled(o.tile, g, element_size_, block_bytes_);
  } else {
    if (o.block_bytes == 0 || o.block_bytes % page_bytes != 0)
      refuse(o, "a block of " + std::to_string(o.block_bytes) + " bytes is not a multiple of " +
                    std::to_string(page_bytes) + " bytes; choose, for example, " +
                    std::to_string(in_whole_pages(o.block_bytes + (o.block_bytes == 0))));
    if (o.lead >= page_bytes)
      refuse(o, "elements begin " + std::to_string(o.lead) + " bytes after a page of " + std::to_string(page_bytes) +
                    " does");
    block_bytes_ = o.block_bytes;
    if (elements_ == 0) options_.lead = 0;
    blocks_ = ceil_div(o.lead + elements_ * element_size_, block_bytes_);
    // Where what it may become has too many addresses, it grows in the first dimension only.
    max_blocks_ = ceil_div(o.lead + max_image, block_bytes_);
    if (max_blocks_ > max_segment_bytes / block_bytes_)
      max_blocks_ = ceil_div(o.lead + *storage::bytes_of(image, element_size_), block_bytes_);
    memory_ = rows;
    memory_.origin = o.lead;
  }
  within_limit(storage::bytes_of(std::span(&max_blocks_, 1), block_bytes_), o);
}

std::uint64_t array_geometry::run_bytes() const noexcept {
  if (!tiled_ && options_.file_tile.empty()) return block_bytes_;
  if (tiled_ && options_.file_tile == options_.tile) return block_bytes_;
  // Rows that a side has whole run on into the next.
  std::uint64_t bytes = element_size_;
  for (std::size_t k = rank_; k-- > 0;) {
    const std::uint64_t extent = std::max<std::uint64_t>(extents_[k], 1);  // of no rows as of one
    const std::uint64_t in_memory = tiled_ ? std::min(tile_[k], extent) : extent;
    const std::uint64_t in_file = options_.file_tile.empty() ? extent : options_.file_tile[k];
    bytes *= std::min(in_memory, in_file);
    if (in_memory != in_file) break;
  }
  return std::min(bytes, block_bytes_);
}

index_box array_geometry::whole() const noexcept { return {{}, extents_}; }

coordinates array_geometry::coordinates_of(std::uint64_t linear) const noexcept {
  coordinates c{};
  for (std::size_t k = rank_; k-- > 1;) {
    c[k] = linear % extents_[k];
    linear /= extents_[k];
  }
  c[0] = linear;
  return c;
}

/// layout_right: the bytes of the row-major image that block b has.
index_box array_geometry::bounds(block_index b) const noexcept {
  index_box box;
  if (tiled_) {
    for (std::size_t k = rank_; k-- > 0;) {
      const std::uint64_t lower = b % grid_[k] * tile_[k];
      box.lower[k] = std::min(lower, extents_[k]);
      box.upper[k] = std::min(lower + tile_[k], extents_[k]);
      b /= grid_[k];
    }
    return box;
  }
  // A run of a row-major image: up to the first dimension in which its ends differ it is a point,
  // beyond that dimension it passes both the first and the last index.
  const byte_run image = image_of(*this, b);
  const coordinates first = coordinates_of(image.offset / element_size_);
  const coordinates last = coordinates_of((image.offset + image.length - 1) / element_size_);
  bool differed = false;
  for (std::size_t k = 0; k < rank_; ++k) {
    box.lower[k] = differed ? 0 : first[k];
    box.upper[k] = differed ? extents_[k] : last[k] + 1;
    differed = differed || first[k] != last[k];
  }
  return box;
}

coordinates array_geometry::element_at(block_index b, std::uint64_t offset) const noexcept {
  if (!tiled_) return coordinates_of((std::max(b * block_bytes_ + offset, lead()) - lead()) / element_size_);
  coordinates c = bounds(b).lower;
  std::uint64_t linear = offset / element_size_;
  for (std::size_t k = rank_; k-- > 0;) {
    c[k] = std::min(c[k] + linear % tile_[k], extents_[k] - 1);
    linear /= tile_[k];
  }
  return c;
}

bool array_geometry::covers(block_index b, const index_box& box) const noexcept {
  return contains(box, bounds(b), rank_);
}

request array_geometry::packed_request(const index_box& box) const {
  return storage::packed_request(file_, {box.lower.data(), rank_}, {box.upper.data(), rank_});
}

namespace {

/// Cuts the run of whole elements [first, last) of a row-major image into boxes, in order: heads of
/// incomplete rows, then the bulk, then tails.
template <class F>
void boxes_of_run(const array_geometry& g, std::uint64_t first, std::uint64_t last, F&& f) {
  const std::size_t rank = g.rank();
  const auto extents = g.extents();
  for (std::uint64_t at = first; at < last;) {
    // The largest whole sub-array that begins at `at` and still fits decides the box: as many of
    // its repetitions as fit before the next larger one begins.
    std::size_t k = rank - 1;
    std::uint64_t unit = 1;
    while (k > 0 && at % (unit * extents[k]) == 0 && last - at >= unit * extents[k]) unit *= extents[k--];
    const coordinates c = g.coordinates_of(at);
    const std::uint64_t count = std::min((last - at) / unit, extents[k] - c[k]);
    index_box box;
    for (std::size_t d = 0; d < rank; ++d) {
      box.lower[d] = c[d];
      box.upper[d] = d < k ? c[d] + 1 : d == k ? c[d] + count : extents[d];
    }
    f(box);
    at += count * unit;
  }
}

}  // namespace

request elements_request(const array_geometry& g, std::uint64_t first, std::uint64_t count) {
  request all;
  boxes_of_run(g, first, first + count,
               [&](const index_box& box) { add_moved(all, g.packed_request(box), all.bytes()); });
  return all;
}

void add_moved(request& whole, const request& part, std::uint64_t memory) {
  for (nested_request n : part.entries()) {
    n.memory_offset += memory;
    whole.add(n);
  }
}

template <class F>
void array_geometry::for_each_box(block_index b, F&& f) const {
  if (tiled_) {
    const index_box box = bounds(b);
    if (!empty(box, rank_)) f(box);
    return;
  }
  const byte_run image = image_of(*this, b);
  const std::uint64_t first = ceil_div(image.offset, element_size_);
  boxes_of_run(*this, first, (image.offset + image.length) / element_size_, f);
}

request array_geometry::block_request(block_index b) const {
  if (!tiled_ && options_.file_tile.empty()) {
    const byte_run image = image_of(*this, b);
    request r;
    r.add(image.offset, image.offset + lead() - b * block_bytes_, image.length);
    return r;
  }
  if (tiled_ && options_.file_tile == options_.tile) {
    // Padding beside the array travels along; padding below it does not, as it may be all of a tile.  What becomes
    // of padding in a resize() is made fill then.
    const index_box box = bounds(b);
    if (empty(box, rank_)) return {};
    return request::contiguous(b * file_.tile_step, (box.upper[0] - box.lower[0]) * file_.stride[0]);
  }
  return outside_request(b, {});
}

request array_geometry::outside_request(block_index b, const index_box& hole) const {
  request r;
  const bool has_hole = !empty(hole, rank_);
  // A box of whole elements in one tile of memory; the bytes [from, to) of one element.
  const auto add_box = [&](const index_box& box) {
    storage::add_box(r, file_, memory_, b * block_bytes_, box.lower, box.upper);
  };
  const auto add_part = [&](std::uint64_t element, std::uint64_t from, std::uint64_t to) {
    const coordinates c = coordinates_of(element);
    r.add(file_.offset(c) + from, memory_.offset(c) + from - b * block_bytes_, to - from);
  };
  const auto add = [&](const index_box& box) {
    if (!has_hole) return add_box(box);
    subtract(box, hole, rank_, add_box);
  };
  if (tiled_) {
    for_each_box(b, add);
    return r;
  }
  const auto in_hole = [&](std::uint64_t element) {
    const coordinates c = coordinates_of(element);
    for (std::size_t k = 0; k < rank_; ++k)
      if (c[k] < hole.lower[k] || c[k] >= hole.upper[k]) return false;
    return has_hole;
  };
  const byte_run image = image_of(*this, b);
  const std::uint64_t from = image.offset;
  const std::uint64_t to = image.offset + image.length;
  const std::uint64_t head = from / element_size_;
  const std::uint64_t tail = to / element_size_;
  if (from % element_size_ != 0 && !in_hole(head))
    add_part(head, from % element_size_, std::min(element_size_, to - head * element_size_));
  for_each_box(b, add);
  if (to % element_size_ != 0 && (tail > head || from % element_size_ == 0) && !in_hole(tail))
    add_part(tail, 0, to % element_size_);
  return r;
}

std::vector<block_range> array_geometry::blocks_of(const index_box& box) const {
  std::vector<block_range> found;
  if (empty(box, rank_)) return found;
  const auto add = [&](block_index first, block_index last) {
    if (!found.empty() && first <= found.back().last)
      found.back().last = std::max(found.back().last, last);
    else
      found.push_back({first, last});
  };
  // In units of bytes or of tiles: `from` of the first sub-box, its span, and the steps.  A sub-box
  // without gaps as wide as a block is one range; `solid` is the outermost dimension of such.
  const std::uint64_t block = tiled_ ? 1 : block_bytes_;
  coordinates step{}, count{};
  std::uint64_t from = lead();
  std::uint64_t span = tiled_ ? 1 : element_size_;
  std::size_t solid = rank_;
  for (std::size_t k = rank_; k-- > 0;) {
    const std::uint64_t unit = tiled_ ? tile_[k] : 1;
    step[k] = tiled_ ? memory_.grid_stride[k] / block_bytes_ : memory_.stride[k];
    count[k] = (box.upper[k] - 1) / unit - box.lower[k] / unit + 1;
    from += box.lower[k] / unit * step[k];
    if (solid == k + 1 && (count[k] == 1 || step[k] < span + block)) {
      span += (count[k] - 1) * step[k];
      solid = k;
    }
  }
  coordinates at{};
  for (;;) {
    std::uint64_t begin = from;
    for (std::size_t k = 0; k < solid; ++k) begin += at[k] * step[k];
    add(begin / block, ceil_div(begin + span, block));
    std::size_t k = solid;
    for (;; --k) {
      if (k == 0) return found;
      if (++at[k - 1] < count[k - 1]) break;
      at[k - 1] = 0;
    }
  }
}

std::vector<byte_run> array_geometry::runs_of(const index_box& box) const {
  std::vector<byte_run> runs;
  if (empty(box, rank_)) return runs;
  const std::size_t inner = rank_ - 1;
  coordinates c = box.lower;
  for (;;) {
    for (c[inner] = box.lower[inner]; c[inner] < box.upper[inner];) {
      const std::uint64_t end = std::min(box.upper[inner], (c[inner] / memory_.tile[inner] + 1) * memory_.tile[inner]);
      const byte_run run{memory_.offset(c), (end - c[inner]) * element_size_};
      if (!runs.empty() && runs.back().offset + runs.back().length == run.offset)
        runs.back().length += run.length;
      else
        runs.push_back(run);
      c[inner] = end;
    }
    std::size_t k = inner;
    for (;; --k) {
      if (k == 0) return runs;
      if (++c[k - 1] < box.upper[k - 1]) break;
      c[k - 1] = box.lower[k - 1];
    }
  }
}

void array_geometry::for_each_uncovered(const array_geometry& now, storage::index_view reached,
                                        const std::function<void(const index_box&)>& f) const {
  if (options_.file_tile.empty()) return;
  index_box known;  // whole tiles
  for (std::size_t k = 0; k < rank_; ++k) {
    const std::uint64_t tile = file_.tile[k];
    const std::uint64_t end = std::max(extents_[k], reached.empty() ? 0 : reached[k]);
    known.upper[k] = std::min(now.extents_[k], ceil_div(end, tile) * tile);
  }
  subtract(known, whole(), rank_, [&](const index_box& part) {
    if (empty(part, rank_)) return;
    storage::cut_at_tiles(file_, {part.lower.data(), rank_}, {part.upper.data(), rank_},
                          [&](storage::index_view lower, storage::index_view upper) {
                            // Past the end of the file as it was, nothing is left.
                            if (file_.offset(lower) >= file_bytes_) return;
                            index_box box;
                            std::ranges::copy(lower, box.lower.begin());
                            std::ranges::copy(upper, box.upper.begin());
                            f(box);
                          });
  });
}

array_geometry array_geometry::resized(storage::index_view extents) const {
  geometry_options o = options_;
  o.extents.assign(extents.begin(), extents.end());
  return array_geometry(std::move(o));
}

array_geometry array_geometry::with_blocks_of(std::uint64_t bytes) const {
  geometry_options o = options_;
  o.block_bytes = bytes;
  return array_geometry(std::move(o));
}

std::uint64_t chunked_bytes(const request& r, std::uint64_t chunk, std::uint64_t limit) {
  std::uint64_t bytes = 0;
  std::uint64_t counted = max_bytes;  // the chunk in which the run before ended
  r.for_each_run([&](std::uint64_t file, std::uint64_t, std::uint64_t length) {
    if (bytes > limit) return;
    const std::uint64_t first = file / chunk;
    const std::uint64_t last = (file + length - 1) / chunk;
    bytes += (last - first + (first != counted)) * chunk;
    counted = last;
  });
  return bytes;
}

std::vector<std::uint64_t> default_tile(std::span<const std::uint64_t> extents, std::uint64_t element_size,
                                        std::uint64_t target_bytes) {
  std::vector<std::uint64_t> tile(extents.size(), 1);
  std::uint64_t elements = std::bit_floor(std::max<std::uint64_t>(target_bytes / element_size, 1));
  // Double the smallest side that may still grow; the last of equals, which is contiguous in rows.
  while (elements > 1) {
    std::size_t best = extents.size();
    for (std::size_t k = 0; k < extents.size(); ++k)
      if (tile[k] < extents[k] && (best == extents.size() || tile[k] <= tile[best])) best = k;
    if (best == extents.size()) break;
    tile[best] *= 2;
    elements /= 2;
  }
  return tile;
}

std::string to_string(std::span<const std::uint64_t> list) {
  std::string s = "{";
  for (std::size_t k = 0; k < list.size(); ++k) s += (k ? ", " : "") + std::to_string(list[k]);
  return s + "}";
}

std::vector<block_range> blocks_changed(const array_geometry& was, const array_geometry& now) {
  coordinates least{}, most{};
  bool inner = false;  // another extent than the first
  for (std::size_t k = 0; k < was.rank(); ++k) {
    least[k] = std::min(was.extents()[k], now.extents()[k]);
    most[k] = std::max(was.extents()[k], now.extents()[k]);
    inner = inner || (k > 0 && least[k] != most[k]);
  }
  if (was.tile().empty() && inner) return {{0, std::max(was.blocks(), now.blocks())}};
  std::vector<block_range> found;
  for (std::size_t k = 0; k < was.rank(); ++k) {
    if (least[k] == most[k]) continue;
    index_box slab{{}, most};
    slab.lower[k] = least[k] - std::min<std::uint64_t>(least[k], 1);
    const std::vector<block_range> blocks = was.blocks_of(slab);
    found.insert(found.end(), blocks.begin(), blocks.end());
  }
  return merged(std::move(found));
}

}  // namespace ooc::detail
