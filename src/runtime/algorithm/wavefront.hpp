// One pass of a sweep: k steps computed while the array goes by once.
//
// Level L is the array after L steps of the pass; level 0 is what is read, level k what is written.
// The front moves g slabs at a time, and what it computes at one time (wave_schedule.hpp) is a round of
// tasks.  What level L must remember of level L - 1 are 2 (g + r) slabs, a *ring*.  Level 0 is copied from the
// array into its ring, so that level k can be written over it.  The ghosts are saved before anything is
// written.
//
// Slabs are whole here; cut_wavefront.hpp is for those that are too large.
//
// Owner: run_sweep().  Threads: run() is called once, and makes its own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "oocarray/detail/sweep_engine.hpp"
#include "runtime/algorithm/slab_geometry.hpp"
#include "runtime/algorithm/wave_schedule.hpp"

namespace ooc::detail {

/// A field, in this pass.
struct wave_field {
  const array_core* from;
  array_core* to;
  bool in_place;
  std::size_t element;  ///< bytes
};

struct wave_coefficient {
  const array_core* from;
  std::size_t element;
};

class wavefront {
 public:
  wavefront(const slab_geometry& g, const wave_plan& plan, std::vector<wave_field> fields,
            std::vector<wave_coefficient> coefficients, sweep_program& program);

  /// What it needs at `memory`, aligned to 64; at most that of the plan with all ghosts.
  std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }
  void use(std::byte* memory) noexcept { memory_ = memory; }
  /// Slabs that are read: those to be written, and ghosts.
  slab_range reads() const noexcept { return range(0); }
  /// Copies the ghosts of the fields that are swept in place; before any rank writes.
  void save_ghosts();
  void run(const told_of_rounds& told);

  static std::size_t slots_of(const slab_geometry& g, const wave_plan& p) noexcept {
    return p.group * g.pieces();
  }

 private:
  struct scratch;
  struct ring {
    std::size_t offset;  ///< in memory_
    std::size_t slabs;
    std::size_t pitch;   ///< bytes from slab to slab
    std::size_t level_bytes;
  };
  struct turn {
    std::size_t level;
    slab_range slabs;
    std::size_t first_task;
  };

  slab_range range(std::size_t level) const noexcept { return schedule_.range(level); }
  slab_range due(std::size_t level) const noexcept { return schedule_.due(level, time_); }
  std::size_t lag() const noexcept { return schedule_.lag(); }
  bool at_end(std::ptrdiff_t i) const noexcept { return schedule_.at_end(i); }
  std::size_t index_of(std::ptrdiff_t i) const noexcept { return schedule_.index_of(i); }
  ring place(std::size_t element, std::size_t slabs, std::size_t levels);
  std::byte* slab_in(const ring& r, std::size_t element, std::size_t level,
                     std::ptrdiff_t i) const noexcept;
  /// The level of this field is kept as the first field's level below it.
  bool is_former(std::size_t f, std::size_t level) const noexcept {
    return plan_.keeps_former && level > 0 && f + 1 == fields_.size();
  }
  std::byte* field_slab(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept;
  const std::byte* source(std::size_t field, std::ptrdiff_t i) const noexcept;
  std::byte* target(std::size_t field, std::size_t level, std::ptrdiff_t i) const noexcept;
  std::ptrdiff_t run_from(std::ptrdiff_t i, std::ptrdiff_t last) const noexcept;

  std::size_t begin_time();
  void end_time();
  void promise();
  void do_task(const turn& t, std::size_t task, scratch& s);
  void bring_in(const array_core& from, const std::byte* first, std::size_t bytes) const;
  void read_piece(std::ptrdiff_t i, std::size_t piece);
  void read_run(std::ptrdiff_t first, std::ptrdiff_t last);
  void compute(std::size_t level, std::ptrdiff_t i, std::size_t count, std::size_t piece, scratch& s);
  void copy_former(std::size_t level, std::ptrdiff_t i, std::size_t count, std::size_t piece);
  void complete(const turn& t, scratch& s);
  void describe(sweep_piece& p, std::size_t level, std::ptrdiff_t i, scratch& s) const;

  const slab_geometry& geometry_;
  const wave_plan plan_;
  const wave_schedule schedule_;
  const std::vector<wave_field> fields_;
  const std::vector<wave_coefficient> coefficients_;
  sweep_program& program_;
  std::byte* memory_ = nullptr;
  std::uint64_t memory_bytes_ = 0;
  std::vector<ring> rings_;              ///< of each field
  std::vector<ring> coefficient_rings_;
  std::vector<std::size_t> ghosts_low_;  ///< where they are in memory_; of each field
  std::vector<std::size_t> ghosts_high_;

  // Set between two times, by whoever has done the last task.
  std::ptrdiff_t time_ = -1;
  std::ptrdiff_t times_ = 0;
  std::vector<turn> turns_;
  std::ptrdiff_t promised_ = 0;  ///< rows up to here

  std::vector<std::atomic<std::size_t>> open_tasks_;  ///< of each level
};

}  // namespace ooc::detail
