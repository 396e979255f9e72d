// What a sweep may be told, and what it says afterwards (sweep.hpp).
//
// A *slab* is all elements of one first index: a row of a matrix, a plane of a cube.  A *pass* goes over the arrays
// once, and computes several steps, perhaps all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "oocarray/algorithm/pass.hpp"

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

}  // namespace ooc
