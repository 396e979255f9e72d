// One pass of a sweep: k steps computed while the array goes by once.
//
// Level L is the array after L steps of the pass; level 0 is what is read, level k what is written.
// The front moves g slabs at a time.  At time t, level L computes
//
//     slabs  base + t g - L (g + r)  to  + g - 1 ,
//
// cut off at the slabs that the level has (its *range*).  Everything that it needs of level L - 1 was
// computed before time t, so all levels of one t are independent of each other: a round of tasks.  What level L must remember of level L - 1 are 2 (g + r) slabs, a *ring*.  Level 0
// is copied from the array into its ring, so that level k can be written over it.
//
// A range is that of the rows to be written and (k - L) r slabs more on either side, which are
// computed although they belong to another rank, or to the other end of a periodic dimension.  Where the
// array ends and is not periodic, the range ends too.  The additional slabs of level 0, the *ghosts*, are
// saved before anything is written.
//
// Owner: run_sweep().  Threads: run() is called once, and makes its own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "oocarray/detail/sweep_engine.hpp"
#include "runtime/algorithm/slab_geometry.hpp"
#include "runtime/algorithm/task_rounds.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

/// The slabs first <= i < last; negative or past the array where it is periodic.
struct slab_range {
  std::ptrdiff_t first = 0, last = 0;
};

/// A field, in this pass.
struct wave_field {
  const std::byte* from;  ///< first byte of the array that is read
  array_core* to;
  bool in_place;
  std::size_t element;  ///< bytes
};

struct wave_coefficient {
  const std::byte* from;
  std::size_t element;
};

/// How a pass is done.
struct wave_plan {
  std::size_t levels = 1;      ///< k
  std::size_t group = 1;       ///< g
  std::size_t run = 1;         ///< N = 1: slabs that a thread computes at once
  unsigned threads = 1;
  slab_range rows;             ///< to be written
  bool ghosts_low = false;     ///< slabs before rows exist, and others write them
  bool ghosts_high = false;
  std::size_t steps_before = 0;
  bool completes = false;
  bool reported = false;       ///< values of the last level are wanted
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
  void run();

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

  slab_range range(std::size_t level) const noexcept;
  slab_range due(std::size_t level) const noexcept;
  std::size_t lag() const noexcept { return plan_.group + geometry_.radius(); }
  bool at_end(std::ptrdiff_t i) const noexcept;
  std::size_t index_of(std::ptrdiff_t i) const noexcept;
  ring place(std::size_t element, std::size_t slabs, std::size_t levels);
  std::byte* slab_in(const ring& r, std::size_t element, std::size_t level,
                     std::ptrdiff_t i) const noexcept;
  const std::byte* source(std::size_t field, std::ptrdiff_t i) const noexcept;
  std::byte* target(std::size_t field, std::size_t level, std::ptrdiff_t i) const noexcept;
  std::ptrdiff_t run_from(std::ptrdiff_t i, std::ptrdiff_t last) const noexcept;

  void work() noexcept;
  std::size_t begin_time();
  void end_time();
  void promise();
  void do_task(const turn& t, std::size_t task, scratch& s);
  void read_piece(std::ptrdiff_t i, std::size_t piece);
  void read_run(std::ptrdiff_t first, std::ptrdiff_t last);
  void compute(std::size_t level, std::ptrdiff_t i, std::size_t count, std::size_t piece, scratch& s);
  void complete(const turn& t, scratch& s);
  void describe(sweep_piece& p, std::size_t level, std::ptrdiff_t i, scratch& s) const;
  void keep_error() noexcept;

  const slab_geometry& geometry_;
  const wave_plan plan_;
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
  std::atomic<bool> failed_{false};
  mutex error_mutex_;
  std::exception_ptr error_ OOC_GUARDED_BY(error_mutex_);
  task_rounds rounds_;
};

}  // namespace ooc::detail
