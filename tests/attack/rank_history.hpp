// A history (history.hpp) that several ranks write together, of which some are killed or stopped.
//
// Epoch e: each rank sets those of the epoch's elements that are its own, and then all call sync().
// So an epoch is acknowledged when sync() has returned on one rank; some ranks may be an epoch
// ahead of that.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "attack/history.hpp"

namespace ooc::attack {

/// Ranks tell the round this, in a file that all of them map.
struct rank_board {
  static constexpr std::size_t most_ranks = 8;
  std::atomic<std::uint64_t> acknowledged{0};  ///< by sync() on rank 0; epochs count from 1
  std::atomic<bool> made{false};               ///< the array
  std::atomic<pid_t> pids[most_ranks] = {};
};
/// Maps the board that is in `file`, and makes it if it is not there.  Never unmapped.
rank_board& map_rank_board(const std::filesystem::path& file);

/// What is written, and how: the seed alone decides, so every rank and the round know.
struct rank_plan {
  rank_plan(std::uint64_t seed, const std::string& url, totals& t);

  history epochs;
  writer_options how;
  bool owner_computes = false;
};

}  // namespace ooc::attack
