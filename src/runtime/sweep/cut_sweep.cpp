#include "runtime/sweep/cut_sweep.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/array/local_array.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "runtime/sweep/wave_rings.hpp"

namespace ooc::detail {
namespace {

constexpr std::uint64_t chunk_bytes = 4096;          // what nodes read and write at least
constexpr std::uint64_t cost_of_request = 16 << 10;  // bytes that a disk transfers meanwhile
constexpr std::uint64_t cost_of_part_of_chunk = 8 << 10;
constexpr std::uint64_t cost_of_round = 512 << 10;  // threads that wait for each other
constexpr std::size_t most_grouped = 64;

}  // namespace

/// The units of which widths may be multiples, best first.  Values are those of whole pieces; the chunks in which nodes
/// read and write are read again where two parts write to one.
std::vector<std::size_t> cut_sweep::units() const {
  const std::size_t pieces = request_.values ? geometry_.piece_rows() : 1;
  std::size_t chunks = 1;
  for (const sweep_field& f : request_.fields)
    chunks = std::lcm(chunks, chunk_bytes / std::gcd(chunk_bytes, geometry_.row_elements() * f.element_size));
  const std::size_t both = std::lcm(pieces, chunks);
  if (both == pieces) return {pieces};
  return {both, pieces};
}

wave_plan cut_sweep::plan_with(std::size_t levels, std::size_t group) const noexcept {
  wave_plan plan = plan_;
  plan.levels = levels;
  plan.group = plan.run = group;
  return plan;
}

std::uint64_t cut_sweep::field_bytes() const noexcept {
  std::uint64_t row = 0;
  for (const sweep_field& f : request_.fields) row += geometry_.row_elements() * f.element_size;
  return row;
}

std::uint64_t cut_sweep::kept_bytes(std::size_t level) const noexcept {
  const bool less = plan_.keeps_former && level > 0;
  return field_bytes() - (less ? geometry_.row_elements() * request_.fields.back().element_size : 0);
}

std::uint64_t cut_sweep::coefficient_bytes() const noexcept {
  std::uint64_t row = 0;
  for (const sweep_coefficient& c : request_.coefficients) row += geometry_.row_elements() * c.element_size;
  return row;
}

std::uint64_t cut_sweep::cost_of_whole(std::size_t levels, std::size_t group, std::size_t steps) const {
  const wave_schedule schedule(geometry_, plan_with(levels, group));
  const std::uint64_t bytes = geometry_.slabs() * geometry_.extents()[1] * (2 * field_bytes() + coefficient_bytes());
  return (steps + levels - 1) / levels * (bytes + static_cast<std::uint64_t>(schedule.times()) * cost_of_round);
}

cut_choice cut_sweep::described(std::size_t levels, std::size_t group, std::size_t width, std::size_t unit,
                                std::size_t steps) const {
  const wave_plan plan = plan_with(levels, group);
  const row_cut cut = cut_for(levels, width, unit);
  cut_choice c{levels, group, width, unit, cut.parts(), 0, 0, 0};
  std::vector<cut_input> inputs(request_.fields.size(), {nullptr, nullptr, true});
  inputs.resize(inputs.size() + request_.coefficients.size());
  const auto have_room = [&](std::size_t k) {
    const wave_plan of_pass = plan_with(k, group);
    const row_cut cut_of_pass = cut_for(k, width, unit);
    const part_transfers transfers(request_, geometry_, of_pass, cut_of_pass, inputs, nullptr);
    const wave_rings rings(geometry_, of_pass, cut_of_pass, request_);
    c.memory = std::max(c.memory, transfers.memory_bytes() + rings.memory_bytes());
    c.scratch = std::max(c.scratch, transfers.scratch_bytes());
  };
  have_room(levels);
  // A last pass of one or two steps may have wider borders, of level 0 of both fields.
  for (std::size_t fewer = 1; plan_.keeps_former && fewer < std::min<std::size_t>(levels, 3); ++fewer) have_room(fewer);

  const wave_schedule schedule(geometry_, plan);
  const auto slabs = static_cast<std::uint64_t>(geometry_.slabs());
  const auto times = static_cast<std::uint64_t>(schedule.times());
  const std::uint64_t ghosts = plan.ghosts_high ? levels * geometry_.radius() : 0;
  const std::uint64_t row = field_bytes(), more = coefficient_bytes();
  std::uint64_t border = 0;
  for (std::size_t level = 0; level < levels; ++level) border += group * cut.border(level) * kept_bytes(level);
  const std::uint64_t rows = cut.array_rows();
  const std::uint64_t again = cut.rows_read_again();
  std::uint64_t bytes = (2 * rows + 2 * again) * slabs * row;  // in and out, and what is periodic
  bytes += (4 * ghosts * rows + 3 * again * slabs) * row;
  bytes += 2 * (c.parts - 1) * times * border;
  bytes += (rows + c.parts * (levels + 1) * cut.radius()) * (slabs + 2 * ghosts) * more;
  const std::uint64_t arrays = 2 * request_.fields.size() + request_.coefficients.size() + 2;
  bytes += c.parts * times * (arrays * cost_of_request + cost_of_round);
  if (unit * row % chunk_bytes != 0) bytes += c.parts * slabs * 2 * request_.fields.size() * cost_of_part_of_chunk;
  c.cost = (steps + levels - 1) / levels * bytes;
  return c;
}

// 0: none is.  More slabs than there are do not come at a time.
std::size_t cut_sweep::given_group() const noexcept {
  return std::min<std::size_t>(request_.options.group, geometry_.slabs());
}

// 0: none is.  A part is no wider than all rows.
std::size_t cut_sweep::given_width(std::size_t levels, std::size_t unit) const {
  const std::size_t width = request_.options.width;
  return std::min(width / unit + (width % unit != 0 ? 1 : 0), cut_for(levels, unit, unit).parts() + 1);
}

std::optional<cut_choice> cut_sweep::choose(std::size_t levels, std::size_t most, std::size_t steps,
                                            std::uint64_t room) const {
  std::optional<cut_choice> best;
  const std::size_t given = given_group();
  for (std::size_t k = levels == 0 ? 1 : levels; k <= (levels == 0 ? most : levels); ++k)
    for (const std::size_t unit : units())
      for (std::size_t g = given == 0 ? 1 : given; g <= (given == 0 ? most_grouped : given); g *= 2) {
        if (g > 1 && g > geometry_.slabs()) break;
        const auto fits = [&](std::size_t units_wide) {
          return described(k, g, units_wide * unit, unit, steps).memory <= room;
        };
        std::size_t wide = given_width(k, unit);
        if (wide != 0) {
          if (!fits(wide)) break;
        } else {
          if (!fits(wide = 1)) break;                                 // nor do more slabs at a time
          std::size_t too_wide = cut_for(k, unit, unit).parts() + 1;  // that many make one part
          while (too_wide - wide > 1) {
            const std::size_t middle = wide + (too_wide - wide) / 2;
            (fits(middle) ? wide : too_wide) = middle;
          }
          // As few parts as that gives, and all as wide.
          const std::size_t parts = cut_for(k, wide * unit, unit).parts();
          while (wide > 1 && cut_for(k, (wide - 1) * unit, unit).parts() == parts) --wide;
        }
        const cut_choice c = described(k, g, wide * unit, unit, steps);
        if (!best || c.cost < best->cost) best = c;
      }
  return best;
}

std::uint64_t cut_sweep::least_memory(std::size_t levels) const {
  const std::size_t unit = units().back();
  const std::size_t width = std::max<std::size_t>(given_width(levels, unit), 1) * unit;
  return described(levels, std::max<std::size_t>(given_group(), 1), width, unit, levels).memory;
}

void cut_sweep::begin(const cut_choice& c) {
  choice_ = c;
  const auto open = [](const array_core& a, access_mode mode) {
    return std::make_unique<direct_array>(a.shared().local(), mode, "sweep()");
  };
  for (const sweep_field& f : request_.fields) {
    auto from = f.from != f.to ? open(*f.from, access_mode::read) : nullptr;
    inputs_.push_back({std::move(from), open(*f.to, access_mode::write)});
  }
  for (const sweep_coefficient& k : request_.coefficients)
    inputs_.push_back({open(*k.array, access_mode::read), nullptr});
  if (c.scratch != 0) scratch_.emplace(*request_.fields.front().to, c.scratch, "sweep");
}

std::unique_ptr<slab_place> cut_sweep::place(const wave_plan& plan, bool first) const {
  std::vector<cut_input> inputs;
  for (const arrays_of_input& a : inputs_) {
    const bool other = a.from && (first || !a.to);
    inputs.push_back({other ? a.from.get() : a.to.get(), a.to.get(), !other});
  }
  return std::make_unique<part_transfers>(request_, geometry_, plan, cut(plan.levels), std::move(inputs),
                                          scratch_ ? &scratch_->file() : nullptr);
}

}  // namespace ooc::detail
