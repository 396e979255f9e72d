#include "runtime/sweep/mapped_slabs.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/pager/segment.hpp"
#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

mapped_slabs::mapped_slabs(const sweep_request& r, bool first, const slab_geometry& g, const wave_plan& plan)
    : request_(r), geometry_(g), plan_(plan), schedule_(g, plan), promised_(plan.rows.first) {
  const auto add = [&](const array_core* a, bool in_place, std::size_t element) {
    input x{a, in_place, g.slab_elements() * element, g.row_elements() * element, memory_bytes_, 0};
    const std::size_t ghosts = in_place ? in_whole_lines(plan_.levels * g.radius() * x.slab_bytes) : 0;
    memory_bytes_ += plan_.ghosts_low ? ghosts : 0;
    x.ghosts_high = memory_bytes_;
    memory_bytes_ += plan_.ghosts_high ? ghosts : 0;
    inputs_.push_back(x);
  };
  for (const sweep_field& f : r.fields) add(first ? f.from : f.to, !first || f.from == f.to, f.element_size);
  for (const sweep_coefficient& c : r.coefficients) add(c.array, false, c.element_size);
}

/// Null where the slab is in the array.
std::byte* mapped_slabs::ghost(const input& x, std::ptrdiff_t i) const noexcept {
  const auto at = [&](std::size_t offset, std::ptrdiff_t first) {
    return memory_ + offset + static_cast<std::size_t>(i - first) * x.slab_bytes;
  };
  if (x.in_place && i < plan_.rows.first)
    return at(x.ghosts_low, plan_.rows.first - signed_size(plan_.levels * geometry_.radius()));
  if (x.in_place && i >= plan_.rows.last) return at(x.ghosts_high, plan_.rows.last);
  return nullptr;
}

// A block that cannot be read is then a failure of the call, and not of a touch, which ends the process.
const std::byte* mapped_slabs::brought_in(const input& x, std::ptrdiff_t i, slab_range rows) const {
  const std::byte* const slab = x.array->facts().base + schedule_.index_of(i) * x.slab_bytes;
  throw_if(bring_in(x.array->shared().segment(), slab + rows.first * signed_size(x.row_bytes),
                    rows.size() * x.row_bytes, access_mode::read));
  return slab;
}

const std::byte* mapped_slabs::source(std::size_t n, std::ptrdiff_t i, slab_range rows) const {
  const std::byte* const saved = ghost(inputs_[n], i);
  return saved ? saved : brought_in(inputs_[n], i, rows);
}

std::byte* mapped_slabs::result(std::size_t f, std::ptrdiff_t i) const noexcept {
  return request_.fields[f].to->facts().base + schedule_.index_of(i) * inputs_[f].slab_bytes;
}

void mapped_slabs::save() {
  const slab_range all = schedule_.reads(), rows{0, signed_size(geometry_.extents()[1])};
  for (const input& x : inputs_)
    for (const slab_range& r : {slab_range{all.first, plan_.rows.first}, slab_range{plan_.rows.last, all.last}})
      for (std::ptrdiff_t i = r.first; x.in_place && i < r.last; ++i)
        std::memcpy(ghost(x, i), brought_in(x, i, rows), x.slab_bytes);
}

/// Blocks that the last level comes to will be written whole: those that have left memory since they
/// were read need not be loaded.  The promise goes as far as all fields have been read, and is renewed
/// for every block, as it does not hold for what is in memory when it is given.
void mapped_slabs::begin_time(std::ptrdiff_t time) {
  const slab_range now = schedule_.due(plan_.levels, time);
  if (now.empty() || now.last <= promised_) return;
  const std::ptrdiff_t read =
      std::min(plan_.rows.last, std::max(now.last, schedule_.reads().first + time * signed_size(plan_.group)));
  const std::size_t n = geometry_.rank();
  slab_geometry::shape lower{};
  slab_geometry::shape upper = geometry_.extents();
  std::ptrdiff_t rows = plan_.rows.last;
  for (std::size_t f = 0; f < request_.fields.size(); ++f) {
    array_core& to = *request_.fields[f].to;
    rows = std::min(rows, signed_size(std::max<std::size_t>(to.facts().block_bytes / inputs_[f].slab_bytes, 1)));
    lower[0] = static_cast<std::size_t>(now.first);
    upper[0] = static_cast<std::size_t>(inputs_[f].in_place ? read : plan_.rows.last);
    to.overwrite({{lower.data(), n}, {upper.data(), n}});
  }
  promised_ = std::max(now.last, now.first + rows);
}

slab_place::traffic mapped_slabs::moved() const noexcept {
  traffic all;
  for (std::size_t n = 0; n < inputs_.size(); ++n) {
    all.read += schedule_.reads().size() * inputs_[n].slab_bytes;
    if (n < request_.fields.size()) all.written += plan_.rows.size() * inputs_[n].slab_bytes;
  }
  return all;
}

}  // namespace ooc::detail
