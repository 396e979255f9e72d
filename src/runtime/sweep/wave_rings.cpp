#include "runtime/sweep/wave_rings.hpp"

#include <algorithm>
#include <cstring>

namespace ooc::detail {

wave_rings::wave_rings(const slab_geometry& g, const wave_plan& plan, const row_cut& cut, const sweep_request& r)
    : geometry_(g), plan_(plan), schedule_(g, plan), cut_(cut), request_(r) {
  const std::size_t fields = r.fields.size();
  for (std::size_t f = 0; f < fields; ++f)
    for (std::size_t level = 0; level < plan_.levels; ++level)
      place(r.element_size(f), is_former(f, level) ? 0 : schedule_.slabs_kept(f == 0 && level + 1 < plan_.levels),
            cut_.kept(level));
  // All levels look at them, so what the last level needs is still there.
  for (std::size_t c = fields; c < r.inputs(); ++c)
    place(r.element_size(c), plan_.levels * schedule_.lag() + plan_.group + g.radius(), cut_.coefficient_rows_kept());
}

void wave_rings::place(std::size_t element, std::size_t slabs, std::size_t rows) {
  const bool line = geometry_.rank() == 1;
  const std::size_t beyond = line && slabs != 0 ? geometry_.radius() * element : 0;
  const std::size_t bytes = rows * geometry_.ring_row_elements() * element;
  const ring r{memory_bytes_ + beyond, slabs, line ? element : ring_pitch(bytes)};
  rings_.push_back(r);
  memory_bytes_ += in_whole_lines(r.slabs * r.pitch + 2 * beyond);
}

std::byte* wave_rings::first_row(std::size_t x, std::size_t level, std::ptrdiff_t i) const noexcept {
  const ring& r = of(x, level);
  return memory_ + r.offset + modulo(i - schedule_.reads().first, r.slabs) * r.pitch;
}

std::byte* wave_rings::slab(std::size_t x, std::size_t level, std::ptrdiff_t i) const noexcept {
  if (is_former(x, level)) return slab(0, level - 1, i);
  const std::ptrdiff_t first =
      x < request_.fields.size() ? cut_.first_kept(part_, level) : cut_.first_coefficient_row(part_);
  const std::ptrdiff_t before =
      signed_size(geometry_.ring_row_origin()) - first * signed_size(geometry_.ring_row_elements());
  return first_row(x, level, i) + before * signed_size(request_.element_size(x));
}

std::ptrdiff_t wave_rings::contiguous_until(std::ptrdiff_t i) const noexcept {
  std::ptrdiff_t end = i + signed_size(geometry_.slabs() - schedule_.index_of(i));
  for (const ring& r : rings_)
    if (r.slabs != 0) end = std::min(end, i + signed_size(r.slabs - modulo(i - schedule_.reads().first, r.slabs)));
  return end;
}

void wave_rings::fill_pads(std::size_t level, slab_range slabs) const noexcept {
  for (std::size_t x = 0; x < request_.inputs(); ++x) {
    if (x < request_.fields.size() ? is_former(x, level) : level != 0) continue;
    if (geometry_.rank() == 1) repeat_ends(of(x, level), request_.element_size(x), slabs);
    if (!geometry_.padded()) continue;
    const slab_range rows = x < request_.fields.size() ? cut_.rows(part_, level) : cut_.coefficient_rows(part_);
    for (std::ptrdiff_t i = slabs.first; i < slabs.last; ++i)
      geometry_.fill_pads(cut_.pads() != 0 ? 1 : 2, rows.first, rows.last, slab(x, level, i), request_.element_size(x));
  }
}

/// Copies the slabs that were computed at the ends of the ring once more beyond its other end.
void wave_rings::repeat_ends(const ring& r, std::size_t element, slab_range slabs) const noexcept {
  std::byte* const first = memory_ + r.offset;
  const std::size_t whole = r.slabs * element;
  const std::size_t begin = modulo(slabs.first - schedule_.reads().first, r.slabs);
  const auto computed = [&](std::size_t slot) { return (slot + r.slabs - begin) % r.slabs < slabs.size(); };
  for (std::size_t m = 0; m < geometry_.radius(); ++m) {
    std::byte* const low = first + m * element;
    std::byte* const high = first + (r.slabs - 1 - m) * element;
    if (computed(m)) std::memcpy(low + whole, low, element);
    if (computed(r.slabs - 1 - m)) std::memcpy(high - whole, high, element);
  }
}

}  // namespace ooc::detail
