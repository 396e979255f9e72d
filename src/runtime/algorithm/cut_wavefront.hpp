// One pass of a sweep whose slabs are too large for the rings: the wavefront of wavefront.hpp within parts of
// the rows (row_cut.hpp), one part after the other.
//
// The rings hold, of each slab, the rows of the part and the border before them.  What the next part needs of
// this one are the last border(L) rows of each slab of each level L < k; they go to a scratch file and come
// back.  Level k - 1 of a part ends before level 0 of the next one begins, so a field can be written over what
// was read of it, and nothing is computed twice but what comes back where dimension 1 is periodic.
//
// All that is not in a ring goes past the blocks (part_transfers): a part touches some rows of each slab, and
// blocks hold many.
//
// Kernels see rows by their index in the array.  Where the rows of a part go past the ends of a periodic
// dimension, a piece ends there, and its pointers are moved by as many rows.
//
// Owner: run_sweep().  Threads: run() is called once, and makes its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "oocarray/detail/sweep_engine.hpp"
#include "runtime/algorithm/part_transfers.hpp"
#include "runtime/algorithm/row_cut.hpp"
#include "runtime/algorithm/slab_geometry.hpp"
#include "runtime/algorithm/wave_schedule.hpp"

namespace ooc::detail {

class cut_wavefront {
 public:
  /// Arrays may be null in what only asks how much memory it takes.
  cut_wavefront(const slab_geometry& g, const wave_plan& plan, const row_cut& cut,
                std::vector<cut_field> fields, std::vector<cut_coefficient> coefficients,
                sweep_program& program);

  /// At most those of a plan with more levels; see part_transfers.
  std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }
  std::uint64_t scratch_bytes() const noexcept { return transfers_.scratch_bytes(); }
  /// `memory` is aligned to 64; `file` may be null where no scratch bytes are needed.
  void use(std::byte* memory, const storage::striped_file* file) noexcept;
  void run(const told_of_rounds& told);
  std::uint64_t bytes_read() const noexcept { return transfers_.bytes_read(); }
  std::uint64_t bytes_written() const noexcept { return transfers_.bytes_written(); }

  /// For sweep_program::begin_values(): all are kept until the last part has been computed.
  static std::size_t slots_of(const slab_geometry& g) noexcept { return g.slabs() * g.pieces(); }

 private:
  struct scratch;
  struct ring {
    std::size_t offset;  ///< in memory_
    std::size_t slabs;
    std::size_t pitch;   ///< bytes from slab to slab
  };
  /// Rows that a thread computes at once; in the array they are first - shift to last - shift.
  struct piece {
    std::ptrdiff_t first, last, shift;
    std::size_t number;  ///< slab_geometry::pieces()
  };
  struct turn {
    std::size_t level;
    slab_range slabs;
    std::size_t first_task;
    std::size_t pieces;         ///< tasks that compute or read a piece of all slabs
    std::size_t tasks_of_slab;  ///< after these: what else is to be done for each slab
  };

  ring place(std::size_t element, std::size_t slabs, std::size_t rows);
  std::byte* ring_slab(const ring& r, std::ptrdiff_t i) const noexcept;
  /// The level of this field is kept as the first field's level below it.
  bool is_former(std::size_t f, std::size_t level) const noexcept {
    return plan_.keeps_former && level > 0 && f + 1 == fields_.size();
  }
  std::byte* field_slab(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept;
  std::byte* coefficient_slab(std::size_t c, std::ptrdiff_t i) const noexcept;
  std::byte* target(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept;
  const slab_geometry::position& target_strides(std::size_t level) const noexcept {
    return level < plan_.levels ? geometry_.ring_strides() : geometry_.array_strides();
  }
  std::vector<piece> pieces_of(slab_range rows) const;
  void set_box(const piece& p, scratch& s) const noexcept;

  void begin_part();
  std::size_t next_round(const told_of_rounds& told);
  std::size_t begin_turns();
  void do_task(const turn& t, std::size_t task, scratch& s);
  void do_piece(std::size_t level, std::ptrdiff_t i, const piece& p, scratch& s);
  void compute(std::size_t level, std::ptrdiff_t i, const piece& p, scratch& s);
  void copy_former(std::size_t level, std::ptrdiff_t i, const scratch& s);
  void describe(sweep_piece& p, std::size_t level, std::ptrdiff_t i, std::ptrdiff_t shift, scratch& s) const;
  void complete(const turn& t, scratch& s);
  void fold();

  const slab_geometry& geometry_;
  const wave_plan plan_;
  const wave_schedule schedule_;
  const row_cut cut_;
  const std::vector<cut_field> fields_;
  const std::vector<cut_coefficient> coefficients_;
  sweep_program& program_;
  part_transfers transfers_;
  std::byte* memory_ = nullptr;
  std::uint64_t memory_bytes_ = 0;
  std::vector<ring> rings_;  ///< of each field, of each level
  std::vector<ring> coefficient_rings_;

  // Set between two rounds, by whoever has done the last task.
  std::size_t part_ = 0;
  std::ptrdiff_t time_ = -1;
  std::vector<std::vector<piece>> pieces_;  ///< of each level, in this part
  std::vector<piece> coefficient_pieces_;
  std::vector<turn> turns_;
  std::vector<std::atomic<std::size_t>> open_tasks_;  ///< of each level
};

}  // namespace ooc::detail
