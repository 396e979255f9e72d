// A sweep whose slabs are cut: whether it can be, how, and the transfers of its passes.
//
// Cutting costs transfers that whole slabs do not need: borders, which go to a scratch file and come back, and
// rows of coefficients that two parts read.  But parts may be as narrow as memory wants them, so more steps fit
// into a pass.  choose() weighs the two.
//
// Owner: run_sweep().  Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oocarray/detail/sweep_engine.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/ranks/temporary_file.hpp"
#include "runtime/sweep/part_transfers.hpp"
#include "runtime/sweep/row_cut.hpp"
#include "runtime/sweep/slab_geometry.hpp"
#include "runtime/sweep/wave_schedule.hpp"

namespace ooc::detail {

struct cut_choice {
  std::size_t levels = 1;  ///< k
  std::size_t group = 1;   ///< g
  std::size_t width = 1;   ///< w, in rows
  std::size_t unit = 1;
  std::size_t parts = 1;
  std::uint64_t memory = 0;   ///< bytes off the budget
  std::uint64_t scratch = 0;  ///< bytes of the scratch file
  /// Bytes that the sweep transfers, with what requests cost a disk beside their bytes.
  std::uint64_t cost = 0;
};

class cut_sweep {
 public:
  /// `plan`: what all passes have in common.
  cut_sweep(const sweep_request& r, const slab_geometry& g, const wave_plan& plan) noexcept
      : request_(r), geometry_(g), plan_(plan) {}

  /// The cut that costs least of those that fit in `room` bytes: for as many levels (0: any, up to `most`), and
  /// `steps` in all.  Empty: none fits.
  std::optional<cut_choice> choose(std::size_t levels, std::size_t most, std::size_t steps, std::uint64_t room) const;
  /// The cost of `steps` with whole slabs, in the same measure.
  std::uint64_t cost_of_whole(std::size_t levels, std::size_t group, std::size_t steps) const;
  /// The least memory that any cut with as many levels takes.
  std::uint64_t least_memory(std::size_t levels) const;

  /// Writes back what the program has modified, and makes the scratch file.  Throws what these do.
  void begin(const cut_choice& c);
  /// Of a pass with at most as many levels as the choice.
  row_cut cut(std::size_t levels) const noexcept { return cut_for(levels, choice_.width, choice_.unit); }
  std::unique_ptr<slab_place> place(const wave_plan& plan, bool first) const;

 private:
  std::size_t given_group() const noexcept;
  std::size_t given_width(std::size_t levels, std::size_t unit) const;  ///< in units
  wave_plan plan_with(std::size_t levels, std::size_t group) const noexcept;
  /// Of a row: all fields, all coefficients.
  std::uint64_t field_bytes() const noexcept;
  /// The same of what a level keeps.
  std::uint64_t kept_bytes(std::size_t level) const noexcept;
  std::uint64_t coefficient_bytes() const noexcept;
  cut_choice described(std::size_t levels, std::size_t group, std::size_t width, std::size_t unit,
                       std::size_t steps) const;
  std::vector<std::size_t> units() const;
  row_cut cut_for(std::size_t levels, std::size_t width, std::size_t unit) const noexcept {
    return {geometry_.extents()[1], geometry_.radius(1), geometry_.periodic(1), levels, width, unit,
            plan_.keeps_former};
  }

  const sweep_request& request_;
  const slab_geometry& geometry_;
  const wave_plan plan_;
  cut_choice choice_;
  struct arrays_of_input {
    std::unique_ptr<direct_array> from;  ///< null where it is to
    std::unique_ptr<direct_array> to;    ///< null of a coefficient
  };
  std::vector<arrays_of_input> inputs_;
  std::optional<temporary_file> scratch_;
};

}  // namespace ooc::detail
