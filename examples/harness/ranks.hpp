// The ranks of an example program: those that it was started on by mpirun, or one.
//
// Only rank 0 prints to stdout.  Built without MPI, or started without mpirun, there is one rank
// and no group, and every operation is the identity.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "oocarray/process_group.hpp"

namespace examples {

class ranks {
 public:
  /// Starts MPI where the program was started by mpirun.
  ranks(int& argc, char**& argv);
  /// Ends it; all ranks must come here.
  ~ranks();
  ranks(const ranks&) = delete;
  ranks& operator=(const ranks&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  bool leads() const noexcept { return rank_ == 0; }
  /// For array_options; empty for one rank.
  const std::shared_ptr<ooc::process_group>& group() const noexcept { return group_; }

  /// The sum, the largest over all ranks: MPI_Allreduce.
  double sum(double x) const;
  double max(double x) const;
  void sum(std::span<double> x) const;
  /// The numbers, the text of rank `root`: MPI_Bcast.
  void broadcast(std::span<double> x, int root) const;
  std::string broadcast(std::string text, int root) const;
  void barrier() const;

  /// Ends the program on all ranks: one that fails alone must not leave the others waiting. Returns
  /// where there is only one.
  void abort(int status) const;

 private:
  int rank_ = 0;
  int size_ = 1;
  bool started_ = false;
  std::shared_ptr<ooc::process_group> group_;
};

}  // namespace examples
