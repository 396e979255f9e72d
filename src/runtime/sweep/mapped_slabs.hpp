// The slabs of a sweep in the mapping of its arrays: level 0 is read from there, and the last level computed into it.
//
// Slabs that another rank overwrites, or this one where dimension 0 is periodic, are *ghosts*: save() copies them, of
// fields that are swept in place.  Blocks that the last level comes to are promised to be overwritten, so that those
// which have left memory are not loaded again.
//
// Owner: run_sweep().  Threads: as slab_place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "oocarray/detail/sweep_engine.hpp"
#include "runtime/sweep/slab_geometry.hpp"
#include "runtime/sweep/slab_place.hpp"
#include "runtime/sweep/wave_schedule.hpp"

namespace ooc::detail {

class mapped_slabs final : public slab_place {
 public:
  /// `first`: of the passes, which reads what the sweep reads.
  mapped_slabs(const sweep_request& r, bool first, const slab_geometry& g, const wave_plan& plan);

  std::uint64_t memory_bytes() const noexcept override { return memory_bytes_; }
  void use(std::byte* memory) noexcept override { memory_ = memory; }
  void save() override;
  void begin_time(std::ptrdiff_t time) override;
  const std::byte* source(std::size_t input, std::ptrdiff_t i, slab_range rows) const override;
  std::byte* result(std::size_t field, std::ptrdiff_t i) const noexcept override;
  traffic moved() const noexcept override;

 private:
  struct input {
    const array_core* array;
    bool in_place;
    std::size_t slab_bytes, row_bytes;
    std::size_t ghosts_low, ghosts_high;  ///< where they are in memory_
  };

  std::byte* ghost(const input& x, std::ptrdiff_t i) const noexcept;
  const std::byte* brought_in(const input& x, std::ptrdiff_t i, slab_range rows) const;

  const sweep_request& request_;
  const slab_geometry& geometry_;
  const wave_plan plan_;
  const wave_schedule schedule_;
  std::vector<input> inputs_;
  std::byte* memory_ = nullptr;
  std::uint64_t memory_bytes_ = 0;
  std::ptrdiff_t promised_;  ///< rows up to here
};

}  // namespace ooc::detail
