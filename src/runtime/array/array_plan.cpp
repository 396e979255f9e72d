#include "runtime/array/array_plan.hpp"

#include <algorithm>
#include <bit>

#include "oocarray/error.hpp"
#include "storage/base/page.hpp"
#include "storage/base/refuse.hpp"
#include "storage/layout/stripe_choice.hpp"

namespace ooc::detail {
namespace {

constexpr std::uint64_t least_buffers = 4;

using shape = std::vector<std::uint64_t>;

/// bool and unsigned bytes are one: bool was recorded as u1 once.
bool same_elements(const std::string& a, const std::string& b) {
  const auto known = [](const std::string& n) { return n == "b1" ? std::string("u1") : n; };
  return known(a) == known(b);
}

bool is_power_of_two_tile(const shape& tile) {
  return std::ranges::all_of(tile, [](std::uint64_t t) { return std::has_single_bit(t); });
}

/// Bytes that a block is to have: what was asked for, or the runtime's default.
std::uint64_t wanted_block(const std::string& path, const array_request& r, std::uint64_t default_block) {
  const array_options<std::byte>& o = r.options;
  if (o.block % block_step != 0)
    refuse(errc::invalid_request, "array", path,
           "a block of " + std::to_string(o.block) + " bytes is not a multiple of 4096 bytes; choose, for example, " +
               std::to_string(o.block / block_step * block_step + block_step));
  if (o.elements_per_buffer != 0) {
    if (o.block != 0)
      refuse(errc::invalid_request, "array", path,
             "options.block and options.elements_per_buffer both say how large a block is; give one");
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(o.elements_per_buffer, r.element_size, &bytes) || bytes >> 62 != 0)
      refuse(errc::invalid_request, "array", path,
             std::to_string(o.elements_per_buffer) + " elements of " + std::to_string(r.element_size) +
                 " bytes in a buffer exceed 2^62 bytes");
    return in_whole_pages(bytes);
  }
  return o.block ? in_whole_pages(o.block) : default_block;
}

/// The tile of memory: as asked for, as the file's, or about a block.
shape memory_tile(const std::string& path, const array_request& r, const shape& extents, const shape& file_tile,
                  std::uint64_t block) {
  const shape asked(r.options.tile.begin(), r.options.tile.end());
  if (!asked.empty()) {
    if (asked.size() != extents.size())
      refuse(errc::invalid_request, "array", path,
             "the tile " + to_string(asked) + " has " + std::to_string(asked.size()) + " dimensions, the array " +
                 std::to_string(extents.size()));
    if (!is_power_of_two_tile(asked)) {
      shape better;
      for (std::uint64_t t : asked) better.push_back(std::bit_ceil(std::max<std::uint64_t>(t, 1)));
      refuse(errc::invalid_request, "array", path,
             "the tile " + to_string(asked) +
                 " is not a power of two in every dimension, which layout_tiled needs; choose, for "
                 "example, " +
                 to_string(better));
    }
    return asked;
  }
  if (!file_tile.empty() && is_power_of_two_tile(file_tile)) return file_tile;
  // Round a buffer up, any other block down.
  return default_tile(
      extents, r.element_size,
      r.options.elements_per_buffer ? std::bit_ceil(r.options.elements_per_buffer) * r.element_size : block);
}

/// Bytes beyond which a block is of no use: the whole array, and where ranks share it, an eighth of
/// a part, as blocks that two parts lie in are read and written by both.
std::uint64_t largest_useful_block(const array_request& r, const shape& limits) {
  constexpr std::uint64_t blocks_in_part = 8, least_shared = 64 << 10;
  constexpr std::uint64_t any = std::uint64_t{1} << 62;
  std::uint64_t bytes = r.element_size;
  for (const std::uint64_t n : limits)
    if (__builtin_mul_overflow(bytes, n, &bytes) || bytes > any) return any;
  if (bytes == 0 || limits.empty()) return any;
  if (const auto& group = r.options.group; group && group->size() > 1) {
    const std::uint64_t parts = blocks_in_part * static_cast<std::uint64_t>(group->size());
    bytes = std::min(bytes, std::max(bytes / parts, least_shared));
  }
  return in_whole_pages(bytes);
}

/// The limit of each extent.
shape limits_of(const storage::array_description& d) {
  shape limits = d.extents;
  for (std::size_t k = 0; k < std::min(limits.size(), d.max_extents.size()); ++k)
    limits[k] = std::max(limits[k], d.max_extents[k]);
  return limits;
}

/// options.max_extents as they are recorded: numbers that say nothing are left out.
shape recorded_limits(const std::string& path, const array_request& r, const storage::array_description& d) {
  const bool tiled = r.options.order == file_order::tiled;
  shape limits(r.options.max_extents.begin(), r.options.max_extents.end());
  if (limits.size() > d.extents.size())
    refuse(errc::invalid_request, "array", path,
           "options.max_extents " + to_string(limits) +
               " has more numbers than the array dimensions: " + std::to_string(d.extents.size()));
  bool inner = false;  // says something of another dimension than the first
  for (std::size_t k = 0; k < limits.size(); ++k) {
    if (limits[k] != 0 && limits[k] < d.extents[k])
      refuse(errc::invalid_request, "array", path,
             "options.max_extents " + to_string(limits) + " is below the extents " + to_string(d.extents) +
                 " in dimension " + std::to_string(k));
    if (k == 0 || limits[k] == 0) continue;
    if (!tiled && limits[k] != d.extents[k])
      refuse(errc::invalid_request, "array", path,
             "options.max_extents " + to_string(limits) + " lets dimension " + std::to_string(k) +
                 " grow, and a file in row-major order grows in dimension 0 only; choose "
                 "options.order = ooc::file_order::tiled");
    inner = inner || tiled;
  }
  if (!inner) {
    limits.resize(std::min<std::size_t>(limits.size(), 1));
    if (!limits.empty() && limits[0] == 0) limits.clear();
    return limits;
  }
  limits.resize(d.extents.size());
  for (std::size_t k = 0; k < limits.size(); ++k)
    if (limits[k] == 0) limits[k] = d.extents[k];
  return limits;
}

void require_use_of_tile(const std::string& path, const array_request& r) {
  if (r.options.tile.empty() || r.layout == memory_layout::tiled || r.options.order == file_order::tiled) return;
  refuse(errc::invalid_request, "array", path,
         "options.tile " + to_string(shape(r.options.tile.begin(), r.options.tile.end())) +
             " is the shape of tiles of the file or of memory, and neither has any: choose options.order = "
             "ooc::file_order::tiled, or layout_tiled, or leave it out");
}

array_plan plan(const std::string& path, const array_request& r, storage::array_description d,
                std::uint64_t default_block, std::uint64_t lead = 0) {
  require_use_of_tile(path, r);
  const std::uint64_t block = wanted_block(path, r, default_block);
  geometry_options g;
  g.name = path;
  g.extents = d.extents;
  g.element_size = d.element_size;
  g.max_extents = limits_of(d);
  g.file_tile = d.tile;
  g.lead = lead;
  if (r.layout == memory_layout::tiled) {
    g.tile = memory_tile(path, r, g.max_extents, d.tile, block);
  } else {
    g.block_bytes = block;
    if (r.options.block == 0 && r.options.elements_per_buffer == 0)
      g.block_bytes = std::min(block, largest_useful_block(r, g.max_extents));
  }
  const std::uint64_t asked = r.options.buffers;
  return {array_geometry(std::move(g)), std::move(d), asked ? std::max(asked, least_buffers) : 0};
}

/// As asked for; what was left out is chosen from shape and block.  All nodes are to be busy with
/// what is moved at the same time: a block of each rank, or a tile where memory is in tiles.
striping stripes_of(const array_plan& p, const array_request& r, std::uint32_t nodes) {
  const array_geometry& g = p.geometry;
  // Tiles of a column of the array may have numbers that are far apart, so each is on all nodes.
  const bool tiles = r.layout == memory_layout::tiled || has_reserved_grid(p.description);
  const bool rows = p.description.tile.empty() && g.rank() > 1;
  const int ranks = r.options.group ? r.options.group->size() : 1;
  return storage::with_stripe_size(r.options.stripes,
                                   {.file_bytes = g.resized(g.max_extents()).file_bytes(),
                                    .block_bytes = g.block_bytes(),
                                    .row_bytes = rows ? g.extents().back() * g.element_size() : 0,
                                    .readers = static_cast<std::uint64_t>(tiles ? 1 : ranks),
                                    .by_tiles = tiles},
                                   nodes);
}

}  // namespace

array_plan plan_new(const std::string& path, const array_request& r, std::uint64_t default_block, std::uint32_t nodes) {
  if (r.options.commits && r.options.shared)
    refuse(
        errc::invalid_request, "array", path,
        "options.commits and options.shared exclude each other: an array with commits is written by one program at a "
        "time (its ranks share it by options.group)");
  if (r.options.temporary && (r.options.commits || r.options.shared || r.options.replace || r.options.group))
    refuse(errc::invalid_request, "array", path,
           "options.temporary: such an array is this process' alone, and goes with it; leave out commits, shared, "
           "replace and group");
  storage::array_description d;
  d.element_type = r.element_type;
  d.element_size = r.element_size;
  d.extents = r.extents;
  d.max_extents = recorded_limits(path, r, d);
  if (r.options.order == file_order::tiled) {
    d.tile.assign(r.options.tile.begin(), r.options.tile.end());
    if (d.tile.empty()) d.tile = default_tile(limits_of(d), d.element_size, wanted_block(path, r, default_block));
  }
  if (has_reserved_grid(d)) d.reached = d.extents;
  array_plan p = plan(path, r, std::move(d), default_block);
  p.stripes = stripes_of(p, r, nodes);
  return p;
}

array_plan plan_existing(const std::string& path, const array_request& asked, const storage::entry& file,
                         std::uint64_t default_block) {
  if (file.commit && asked.options.shared && asked.action != array_request::how::open_read_only)
    refuse(errc::invalid_request, "array", path,
           "options.shared: an array with commits is written by one program at a time (its ranks share it by "
           "options.group)");
  if (asked.options.temporary)
    refuse(errc::invalid_request, "array", path, "options.temporary is for an array that is made; this one is there");
  if (asked.options.commits && !file.commit)
    refuse(errc::invalid_request, "array", path,
           "options.commits: it was made without commits; copy it to one that is made with them (ooc::copy)");
  storage::array_description d = file.array;
  array_request r = asked;
  if (r.element_type.empty()) {  // as recorded
    if (d.element_type.empty())
      refuse(errc::type_mismatch, "array", path,
             "the file is not recorded as an array; say type and extents of its elements when "
             "opening it");
    r.element_type = d.element_type;
    r.element_size = d.element_size;
    r.rank = d.extents.size();
  }
  if (d.element_type.empty()) {
    if (r.extents.empty())
      refuse(errc::type_mismatch, "array", path,
             "the file is not recorded as an array; say its extents when opening it");
    d.element_type = r.element_type;
    d.element_size = r.element_size;
    d.extents = r.extents;
    d.max_extents.clear();
    array_plan p = plan(path, r, std::move(d), default_block);
    if (p.geometry.file_bytes() > file.size)
      refuse(errc::type_mismatch, "array", path,
             "extents " + to_string(r.extents) + " of elements of " + std::to_string(r.element_size) + " bytes need " +
                 std::to_string(p.geometry.file_bytes()) + " bytes, and the file has " + std::to_string(file.size));
    p.stripes = file.striping;
    return p;
  }
  const std::string holds = "the file holds " + d.element_type + " elements of " + std::to_string(d.element_size) +
                            " bytes with extents " + to_string(d.extents);
  if (!same_elements(d.element_type, r.element_type) || d.element_size != r.element_size)
    refuse(errc::type_mismatch, "array", path,
           holds + "; asked for were " + r.element_type + " elements of " + std::to_string(r.element_size) + " bytes");
  if (d.extents.size() != r.rank)
    refuse(errc::type_mismatch, "array", path,
           holds + ", which is rank " + std::to_string(d.extents.size()) + "; asked for was rank " +
               std::to_string(r.rank));
  if (!r.extents.empty() && r.extents != d.extents)
    refuse(errc::type_mismatch, "array", path, holds + "; asked for were extents " + to_string(r.extents));
  array_plan p = plan(path, r, std::move(d), default_block, file.lead);
  p.stripes = file.striping;
  return p;
}

}  // namespace ooc::detail
