#include "oocarray/any_array.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"

namespace ooc {

namespace {

using how = detail::array_request::how;

constexpr std::size_t largest_element = 64_KiB;

detail::array_request request_for(how action, const element_format& type, std::span<const std::size_t> extents) {
  detail::array_request r;
  r.action = action;
  r.element_type = type.name;
  r.element_size = type.size;
  r.rank = extents.size();
  r.extents.assign(extents.begin(), extents.end());
  return r;
}

detail::array_request request_for(how action) { return request_for(action, {}, {}); }

void check(std::string_view path, const detail::array_request& r) {
  const bool makes = r.action == how::create || r.action == how::create_or_open;
  if (!makes) return;
  if (r.rank < 1 || r.rank > 8)
    refuse(errc::invalid_request, "array", path, std::to_string(r.rank) + " dimensions: an array has 1 to 8");
  if (r.element_type.empty() || r.element_size == 0 || r.element_size > largest_element)
    refuse(errc::invalid_request, "array", path,
           "elements of type '" + r.element_type + "' and " + std::to_string(r.element_size) +
               " bytes: a type has a name, and 1 to " + std::to_string(largest_element) + " bytes");
  if (!r.fill.empty() && r.fill.size() != r.element_size)
    refuse(errc::invalid_request, "array", path,
           "a fill of " + std::to_string(r.fill.size()) + " bytes for elements of " + std::to_string(r.element_size) +
               ": give one element");
}

detail::array_request completed(std::string_view path, detail::array_request r, const any_array::options_type& options,
                                any_array::memory_layout layout) {
  r.layout = layout;
  if (options.fill) r.fill = *options.fill;
  r.options = without_fill<std::byte>(options);
  check(path, r);
  return r;
}

std::size_t product(const std::vector<std::size_t>& n) {
  return std::accumulate(n.begin(), n.end(), std::size_t{1}, std::multiplies<>());
}

/// Bytes from neighbour to neighbour in a row-major box of these extents.
std::vector<std::size_t> strides_of(const std::vector<std::size_t>& extents, std::size_t element) {
  std::vector<std::size_t> s(extents.size());
  std::size_t step = element;
  for (std::size_t k = s.size(); k-- > 0; step *= extents[k]) s[k] = step;
  return s;
}

}  // namespace

any_array::any_array(runtime& rt, const store& s, std::string_view path, detail::array_request r,
                     const options_type& options, memory_layout layout)
    : array_base(rt, s, path, completed(path, std::move(r), options, layout)), layout_(layout) {}

any_array::any_array(runtime& rt, const store& s, std::string_view path, create_t, const element_format& type,
                     std::span<const std::size_t> extents, const options_type& options, memory_layout layout)
    : any_array(rt, s, path, request_for(how::create, type, extents), options, layout) {}

any_array::any_array(runtime& rt, const store& s, std::string_view path, create_or_open_t, const element_format& type,
                     std::span<const std::size_t> extents, const options_type& options, memory_layout layout)
    : any_array(rt, s, path, request_for(how::create_or_open, type, extents), options, layout) {}

any_array::any_array(runtime& rt, const store& s, std::string_view path, open_t, const options_type& options,
                     memory_layout layout)
    : any_array(rt, s, path, request_for(how::open), options, layout) {}

any_array::any_array(runtime& rt, const store& s, std::string_view path, open_read_only_t, const options_type& options,
                     memory_layout layout)
    : any_array(rt, s, path, request_for(how::open_read_only), options, layout) {}

std::size_t any_array::size() const { return product(extents()); }

std::byte* any_array::data() const {
  core().check_open();
  if (layout_ == memory_layout::tiled)
    throw usage_error(errc::invalid_request,
                      "array '" + path() +
                          "' lies in memory tile by tile and has no row-major image; use its tiles, or "
                          "open it with memory_layout::right");
  return facts().base;
}

std::vector<std::size_t> any_array::strides() const { return strides_of(extents(), element_size()); }

std::size_t any_array::tiles() const {
  const std::vector<std::size_t> shape = tile_shape(), e = extents();
  std::size_t n = 1;
  for (std::size_t k = 0; k < e.size(); ++k) n *= (e[k] + shape[k] - 1) / shape[k];
  return n;
}

any_array::tile any_array::tile_at(std::size_t k) const {
  const std::vector<std::size_t> shape = tile_shape(), e = extents();
  const std::size_t count = tiles();
  if (k >= count)
    throw usage_error(errc::invalid_request, "array '" + path() + "' has " + std::to_string(count) +
                                                 " tiles, and none of the number " + std::to_string(k));
  const bool tiled = layout_ == memory_layout::tiled;
  tile t;
  t.box = whole();
  t.strides = strides_of(tiled ? shape : e, element_size());
  t.data = facts().base;
  std::size_t step = block_bytes();  // from tile to tile
  for (std::size_t d = e.size(), number = k; d-- > 0;) {
    const std::size_t grid = (e[d] + shape[d] - 1) / shape[d];
    t.box.lower[d] = number % grid * shape[d];
    t.box.upper[d] = std::min(t.box.lower[d] + shape[d], e[d]);
    t.data += tiled ? number % grid * step : t.box.lower[d] * t.strides[d];
    step *= (facts().max_extents[d] + shape[d] - 1) / shape[d];
    number /= grid;
  }
  return t;
}

void any_array::prefetch_tile(std::size_t k) const {
  if (k >= tiles()) return;
  const any_box b = tile_at(k).box;
  core().prefetch({b.lower, b.upper}, detail::prefetched::not_promised);
}

}  // namespace ooc
