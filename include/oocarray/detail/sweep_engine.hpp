// The part of ooc::sweep() that is compiled once: a sweep without its types.
//
// The engine knows slabs as bytes: which level computes which slab when, where a slab lies in
// memory, which thread does it.  The computation itself is a sweep_program, made by the
// template (algorithm/sweep.hpp).
//
// Threads: run_sweep() is called by one thread; it calls compute() and complete() of the program
// from several at once, for different slabs, and everything else from the calling thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/array_core.hpp"

namespace ooc {

/// The treatment of the ends of a dimension.
enum class boundary : std::uint8_t {
  fixed,     ///< elements within the radius of an end keep their values
  periodic,  ///< the neighbour of the last element is the first
};

struct sweep_options {
  /// How many steps one pass over the array computes.  0: as many as memory has room for, at most 32 (with many
  /// threads 128, see docs/algorithms.md), and on ranks as long as the rows computed twice are below an eighth.
  std::size_t fuse = 0;
  /// Threads that compute.  0: one for each processor.
  unsigned threads = 0;
  /// The file says "in the middle of a sweep" while it holds neither the old nor the new elements,
  /// and a process that dies meanwhile leaves it so; see open_unfinished.  The price is that the
  /// sweep ends with a durable sync() of what it wrote.
  bool mark = true;
  /// Slabs that each level computes between two meetings of the threads.  0: chosen by their size.
  std::size_t group = 0;
  /// Indices of the second dimension that are swept together where slabs are cut.  0: slabs are cut where
  /// memory has room for few steps of whole ones, as wide as costs the disk least.  On ranks, for one
  /// dimension, and with edges() of whole slabs, they are never cut.
  std::size_t width = 0;
  /// About how many elements a thread computes at once; a reduction depends on it.  0: 16384.
  std::size_t piece = 0;
  /// Commit the arrays that are written (commit.hpp) after so many passes, and after the last one; 0: not at all.  They
  /// are made with options.commits.  The commit's attribute `steps` says how many steps are done: those before the
  /// sweep, which `steps_before` says, and those of the sweep.
  std::size_t commit_every = 0;
  std::size_t steps_before = 0;
  /// Called now and then within the passes, at most about a thousand times, with the bytes of the arrays that
  /// have been read and written on this rank (each counted once a pass, without ghosts and borders).  False: stop
  /// as soon as what is on its way has arrived, and throw ooc::error (std::errc::operation_canceled), on ranks on
  /// all of them.  What is written then holds neither old nor new elements, and keeps its mark: to stop with
  /// whole ones, let stencil_of::after() return false.  It must not touch the arrays.
  std::function<bool(const pass_progress&)> progress = {};
  bool plan = false;  ///< see pass_options
};

/// Bytes are those of arrays, and of the borders between parts, as the model counts them; those of the borders are not
/// foreseen by a plan.
struct sweep_statistics : pass_statistics {
  std::size_t steps = 0;  ///< done; fewer than asked for where the callback said so
  std::size_t fuse = 0;   ///< most steps that a pass computed
  std::size_t parts = 1;  ///< into which slabs were cut
};

namespace detail {

/// A part of a slab, or for N = 1 a run of slabs.  Strides count elements, [k] is that of dimension
/// k; pointers are those of the slab's element (0, 0, ...), which may lie outside the part.
struct sweep_piece {
  std::size_t index = 0;  ///< of the (first) slab, within the array
  std::size_t count = 1;  ///< slabs; more than 1 for N = 1 only
  std::size_t step = 0;   ///< from 1, since the sweep began
  bool reported = false;  ///< values of this step are asked for
  std::size_t slot = 0;   ///< where the value is to be kept until fold()
  const std::size_t* extents = nullptr;
  const std::ptrdiff_t* lower = nullptr;  ///< what is to be computed, [k] of dimension k > 0
  const std::ptrdiff_t* upper = nullptr;
  std::byte* const* out = nullptr;  ///< of each field; null of one that nobody computes
  const std::ptrdiff_t* out_strides = nullptr;
  /// Of each field, then of each coefficient: 2 r + 1 slabs, from the lowest neighbour on; null where
  /// there is none.  N = 1: slabs follow each other in memory.
  const std::byte* const* in = nullptr;
  const std::ptrdiff_t* in_strides = nullptr;
};

class sweep_program {
 public:
  virtual ~sweep_program() = default;
  virtual void compute(const sweep_piece& p) = 0;
  /// All pieces of the slab (N = 1: slabs), or of the part that p says, have been computed.
  virtual void complete(const sweep_piece& p) = 0;
  /// Room for the values of as many pieces; `keep`: fold() keeps the value of each slab, for ranks.
  virtual void begin_values(std::size_t slots, bool keep) = 0;
  /// The values of `slabs` slabs, in order, each of `pieces` pieces from `slot` on.
  virtual void fold(std::size_t slot, std::size_t slabs, std::size_t pieces) = 0;
  /// The result of fold() for the slabs of this process, and the results of all ranks, in order.
  virtual std::vector<std::byte> folded() = 0;
  virtual void combine(const std::vector<std::vector<std::byte>>& of_ranks) = 0;
  /// Step number `step` has been done on all ranks; false: stop.
  virtual bool report(std::size_t step) = 0;
};

struct sweep_field {
  array_core* from;  ///< read by the first pass
  array_core* to;    ///< written by all, and read by the later ones
  std::size_t element_size;
};

struct sweep_coefficient {
  const array_core* array;
  std::size_t element_size;
};

struct sweep_request {
  std::vector<sweep_field> fields;
  std::vector<sweep_coefficient> coefficients;
  std::vector<std::size_t> radius;  ///< of each dimension
  std::vector<boundary> boundaries;
  std::size_t steps = 0;
  std::size_t every = 0;         ///< report() after these steps; 0: after the last one only
  bool completes = false;        ///< complete() is wanted
  bool completes_parts = false;  ///< it may be given a part of a slab
  bool values = false;           ///< fold() is wanted
  bool keeps_former = false;     ///< the last field is the first as it was a step before
  sweep_options options;

  /// Inputs: fields, and after them coefficients.
  std::size_t inputs() const noexcept { return fields.size() + coefficients.size(); }
  std::size_t element_size(std::size_t input) const noexcept {
    return input < fields.size() ? fields[input].element_size : coefficients[input - fields.size()].element_size;
  }
};

sweep_statistics run_sweep(const sweep_request& r, sweep_program& program);

}  // namespace detail
}  // namespace ooc
