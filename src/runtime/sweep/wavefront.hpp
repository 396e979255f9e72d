// One pass of a sweep: k steps computed while the array goes by once.
//
// Level L is the array after L steps of the pass; level 0 is what is read, level k what is written.
// The front moves g slabs at a time, and what it computes at one time (wave_schedule.hpp) is a round of
// tasks.  What level L must remember of level L - 1 are 2 (g + r) slabs, a *ring* (wave_rings.hpp).  Level 0 is copied
// into its ring, so that level k can be written over it.
//
// The pass goes over the parts of the rows one after the other (row_cut.hpp); whole slabs are one part.  What the next
// part needs of this one are the last border(L) rows of each slab of each level L < k; they go to a scratch file and
// come back.  Level k - 1 of a part ends before level 0 of the next one begins, so a field can be written over what
// was read of it, and nothing is computed twice but what comes back where dimension 1 is periodic.
//
// Where level 0, coefficients, level k and borders are, a slab_place knows.
//
// Kernels see rows by their index in the array.  Where the rows of a part go past the ends of a periodic
// dimension, a piece ends there, and its pointers are moved by as many rows.
//
// Owner: run_sweep().  Threads: run() is called once, and makes its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "oocarray/detail/sweep_engine.hpp"
#include "runtime/sweep/row_cut.hpp"
#include "runtime/sweep/slab_geometry.hpp"
#include "runtime/sweep/slab_place.hpp"
#include "runtime/sweep/wave_rings.hpp"
#include "runtime/sweep/wave_schedule.hpp"

namespace ooc::detail {

class wavefront {
 public:
  /// The memory is that of the rings.
  wavefront(const slab_geometry& g, const wave_plan& plan, const row_cut& cut, const sweep_request& r,
            sweep_program& program, slab_place& place, std::byte* memory);

  void run(const told_of_rounds& told);
  /// For sweep_program::begin_values(): values are kept until the last part of their slabs has been computed.
  std::size_t slots() const noexcept {
    return (cut_.parts() == 1 ? plan_.group : geometry_.slabs()) * geometry_.pieces();
  }

 private:
  struct scratch;
  /// Rows that a thread computes at once; in the array they are first - shift to last - shift.
  struct piece {
    std::ptrdiff_t first, last, shift;
    std::size_t number;  ///< slab_geometry::pieces()
  };
  enum class work { fields, coefficients, borders };
  /// Tasks that do the same: each a piece of some slabs.
  struct turn {
    work kind;
    std::size_t level;
    slab_range slabs;
    std::size_t run;  ///< slabs of a task
    const std::vector<piece>* pieces;
    std::size_t first_task;
  };

  std::vector<piece> pieces_of(slab_range rows) const;
  const slab_geometry::position& strides(std::size_t level) const noexcept {
    return level < plan_.levels ? geometry_.ring_strides() : geometry_.array_strides();
  }
  std::byte* target(std::size_t field, std::size_t level, std::ptrdiff_t i) const noexcept {
    return level < plan_.levels ? rings_.slab(field, level, i) : place_.result(field, i);
  }
  std::ptrdiff_t run_from(std::ptrdiff_t i, std::ptrdiff_t last) const noexcept;

  void begin_part();
  std::size_t next_round(const told_of_rounds& told);
  std::size_t begin_turns();
  void fold();
  /// The slab whose values are in the first slots.
  std::ptrdiff_t first_slot() const noexcept {
    return cut_.parts() == 1 ? schedule_.due(plan_.levels, time_).first : 0;
  }

  void do_task(const turn& t, std::size_t task, scratch& s);
  void do_piece(const turn& t, std::ptrdiff_t i, const piece& rows, scratch& s);
  void read(std::size_t first, std::size_t last, std::ptrdiff_t i, const scratch& s) const;
  void copy_up(std::size_t field, std::size_t level, std::ptrdiff_t i, const scratch& s) const;
  void compute(std::size_t level, std::ptrdiff_t i, const piece& rows, scratch& s);
  void describe(sweep_piece& p, std::size_t level, std::ptrdiff_t i, std::ptrdiff_t shift, scratch& s) const;
  void complete(std::size_t level, scratch& s);

  const slab_geometry& geometry_;
  const wave_plan plan_;
  const wave_schedule schedule_;
  const row_cut cut_;
  const sweep_request& request_;
  sweep_program& program_;
  slab_place& place_;
  wave_rings rings_;

  // Set between two rounds, by whoever has done the last task.
  std::size_t part_ = 0;
  std::ptrdiff_t time_ = -1;
  std::vector<std::vector<piece>> pieces_;  ///< of each level, in this part
  std::vector<piece> coefficient_pieces_;
  std::vector<turn> turns_;
  std::vector<std::atomic<std::size_t>> open_tasks_;  ///< of each level
};

}  // namespace ooc::detail
