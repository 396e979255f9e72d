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
#include <span>
#include <string>
#include <vector>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/algorithm/sweep_options.hpp"
#include "oocarray/detail/array_core.hpp"

namespace ooc {

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
