// Arrays shared by the ranks of an MPI program.
//
//     MPI_Init(&argc, &argv);
//     const auto world = ooc::mpi_group(MPI_COMM_WORLD);
//     ooc::ooc_array<double, 2> a{rt, store, "plate/a", ooc::create, {n, n}, {.group = world}};
//     const auto [first, last] = a.local_rows();
//     for (std::size_t i = first; i < last; ++i) ...
//     a.sync();                                  // every rank now sees what every other one wrote
//
// The only header of the library that knows MPI; link oocarray::mpi.  A program that uses it must
// have called MPI_Init_thread with at least MPI_THREAD_FUNNELED (MPI_Init does on most systems),
// and make its collective calls from the thread that may call MPI.  No other thread of the library
// calls MPI.
//
// Memory of an array may be passed to MPI only while it is pinned: ooc_array::pin().
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>

#include "oocarray/process_group.hpp"

namespace ooc {

struct mpi_options {
  /// How long a rank waits for the others in one collective call.  Choose it longer than the time
  /// by which one rank may be behind another, computation between two calls included; at most ten years.  0: as the
  /// environment variable OOC_COLLECTIVE_DEADLINE says ("90s", "10min", "24h"), else 10 minutes.  A program whose ranks
  /// may hang elsewhere, in MPI_Barrier for instance, calls MPI_Abort where this error ends it: MPI_Finalize would wait
  /// for them.
  std::chrono::milliseconds deadline{0};
  /// How long a rank waits before a line on standard error says for which ranks, and in which call; 0: it says nothing.
  std::chrono::milliseconds notice_after = std::chrono::seconds(10);
};

/// The ranks of `comm`, for array_options::group and runtime::stats().  Collective over `comm`.
/// The group duplicates the communicator, so that messages of the library and of the program never
/// meet.  All ranks must destroy it before MPI_Finalize.  If it is destroyed while an exception
/// unwinds the stack, it tells the other ranks, which then need not wait for the deadline.  Throws
/// io_error for an error of MPI; usage_error (errc::invalid_request), on all ranks, for a time below 0 or an
/// OOC_COLLECTIVE_DEADLINE of one of them that is none.
std::shared_ptr<process_group> mpi_group(MPI_Comm comm, const mpi_options& options = {});

}  // namespace ooc
