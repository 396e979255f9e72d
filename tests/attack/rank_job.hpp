// The ranks of an MPI program that a round starts, kills and stops.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "attack/rank_history.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::attack {

/// The ranks as processes: they are known by descriptors, as the numbers of dead ones are used
/// again.
class rank_job {
 public:
  rank_job(round& r, const rank_board& board, std::uint64_t ranks, const std::vector<std::string>& words);

  /// Waits until the ranks have made what they write and have acknowledged some epochs, or the job has ended.
  bool running(std::uint64_t epochs);
  /// One rank dies, or all, or mpirun, or some are stopped for a while; by the round's dice.  Whether they end by it.
  bool disturb();
  /// The status of mpirun; the ranks are dead then.
  int wait(std::chrono::seconds limit);

 private:
  void send(std::uint64_t rank, int signal) const;
  void send_to_all(int signal) const;

  round& r_;
  const rank_board& board_;
  std::uint64_t ranks_;
  pid_t mpirun_;
  std::vector<storage::file_descriptor> processes_;
};

}  // namespace ooc::attack
