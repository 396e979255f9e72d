// The numbers that the policies of this folder go by, all of them, each with what it stands for.
//
// They were found by trying.  `oocbench policy --vary` halves and doubles each and replays all traces: bench/README.md
// has the table, with the trace that decides about each.  Sizes of tables that memory is set aside for are not among
// them.
//
// A plain value, the same for all of a process.  It is changed by the laboratory alone, while there is no runtime.
#pragma once

#include <array>

namespace ooc::detail {

struct policy_numbers {
  /// Those that count.
  static policy_numbers now;

  // grain_choice
  unsigned filled_for_whole = 4;    ///< blocks come whole; one that fills up counts 3, one that comes in grains -2
  unsigned grains_among_whole = 4;  ///< then one block in so many comes in grains, to see
  unsigned hardly_touched = 8;      ///< blocks in a row that a sweep cannot have touched, and it is none

  // write_guess, write_history
  unsigned guessed_reads = 256;     ///< grains that are read, after which the counts are halved
  unsigned protected_one_in = 8;    ///< where writes are likely, one grain in so many comes in protected, to see
  unsigned swept_again_one_in = 8;  ///< blocks written behind a sweep may be changed again, one in so many

  // left_behind
  unsigned looked_back = 64;         ///< grains after which a walk has left one, at first
  unsigned looked_back_most = 2048;  ///< at last, and then nothing is named for a while
  unsigned left_pause = 1 << 16;     ///< of so many grains

  // read_ahead, read_ahead_yield, segment_history
  unsigned stream_lately = 64;  ///< touches after which a sweep that has not gone on is over
  unsigned poor_from = 32;      ///< blocks read ahead in vain, and half of the others: read-ahead does not pay
  unsigned sure_run = 16;       ///< touches of a sweep over blocks, before it is read ahead where that does not pay
  unsigned grains_ahead = 256;  ///< of a walk, at most
  unsigned grains_ahead_poor = 2;
  unsigned run_of_grains = 16;  ///< one after the other, before their block is loaded

  // repeated_sweep
  unsigned passes_alike = 1;  ///< one after the other, and the sweep repeats

  // aged_return
  unsigned aged_lately = 256;  ///< blocks that came back or left, after which the counts are halved
  unsigned aged_back = 3;      ///< a block that came back counts as so many that left

  // block_ageing
  unsigned aged_per_miss = 4;  ///< blocks that age when one comes in, at most
};

inline constinit policy_numbers policy_numbers::now;

struct policy_number {
  const char* name;
  unsigned policy_numbers::*value;
};
/// All of them, for who varies them.
inline constexpr std::array all_policy_numbers{
    policy_number{"filled_for_whole", &policy_numbers::filled_for_whole},
    policy_number{"grains_among_whole", &policy_numbers::grains_among_whole},
    policy_number{"hardly_touched", &policy_numbers::hardly_touched},
    policy_number{"guessed_reads", &policy_numbers::guessed_reads},
    policy_number{"protected_one_in", &policy_numbers::protected_one_in},
    policy_number{"swept_again_one_in", &policy_numbers::swept_again_one_in},
    policy_number{"looked_back", &policy_numbers::looked_back},
    policy_number{"looked_back_most", &policy_numbers::looked_back_most},
    policy_number{"left_pause", &policy_numbers::left_pause},
    policy_number{"stream_lately", &policy_numbers::stream_lately},
    policy_number{"poor_from", &policy_numbers::poor_from},
    policy_number{"sure_run", &policy_numbers::sure_run},
    policy_number{"grains_ahead", &policy_numbers::grains_ahead},
    policy_number{"grains_ahead_poor", &policy_numbers::grains_ahead_poor},
    policy_number{"run_of_grains", &policy_numbers::run_of_grains},
    policy_number{"passes_alike", &policy_numbers::passes_alike},
    policy_number{"aged_lately", &policy_numbers::aged_lately},
    policy_number{"aged_back", &policy_numbers::aged_back},
    policy_number{"aged_per_miss", &policy_numbers::aged_per_miss},
};
static_assert(sizeof(policy_numbers) == all_policy_numbers.size() * sizeof(unsigned));

}  // namespace ooc::detail
