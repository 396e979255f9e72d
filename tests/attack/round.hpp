// One round: its dice, its folder, and how it says what it found.
//
// A round is a process of its own, started by the driver, which ends it when its time is over and
// removes what it leaves behind (processes, mounts, files).  What a round does depends on its seed
// alone, as far as the machine's timing lets it.
//
// Threads and processes: a round may fork; totals are shared.  The dice belong to one process, so
// that a child that throws them too gets what its parent would have got.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attack/totals.hpp"

namespace ooc::attack {

/// Ends a round that found something.
struct finding : std::runtime_error {
  finding(verdict v, const std::string& text) : std::runtime_error(text), what_it_is(v) {}
  verdict what_it_is;
};

class round {
 public:
  round(std::uint64_t seed, std::filesystem::path folder, totals& t)
      : seed_(seed), folder_(std::move(folder)), totals_(t), dice_(seed) {}

  std::uint64_t seed() const noexcept { return seed_; }
  const std::filesystem::path& folder() const noexcept { return folder_; }
  totals& counts() noexcept { return totals_; }
  std::mt19937_64& dice() noexcept { return dice_; }
  /// A number in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(dice_);
  }
  bool one_in(std::uint64_t n) { return between(1, n) == 1; }

  /// Runs `f` in a child.  A finding or an exception in there is told to the driver, and the child
  /// ends with status `found`; otherwise with what `f` returned.
  pid_t in_child(const std::function<int()>& f);
  static constexpr int found = 99;

  /// Waits for a child of this process and returns its status as a shell would.  A child that told
  /// a finding ends this process's round with the same.
  int wait_for(pid_t child);
  /// The same for at most so long; where it does not end, kills it and reports it as hung.
  int wait_for(pid_t child, std::chrono::milliseconds limit, const std::string& what);

  /// Writes down what was found (only the first of a round counts).
  static void tell(totals& t, verdict v, std::string_view text) noexcept;

 private:
  std::uint64_t seed_;
  std::filesystem::path folder_;
  totals& totals_;
  std::mt19937_64 dice_;
};

/// The output of a command, and its status.  Arguments go to no shell.
struct command_result {
  int status = -1;
  std::string output;  ///< standard output and error
};
command_result run_command(const std::vector<std::string>& words);
/// The same of a command without which there is no round: where it fails, the round is not run.
void must_run(const std::vector<std::string>& words);

using round_function = void (*)(round&);

// The kinds, each in the file of its name.
void random_programs(round& r);
void block_programs(round& r);
void rank_programs(round& r);
void killed_writers(round& r);
void killed_servers(round& r);
void power_loss(round& r);
void damaged_files(round& r);
void full_disks(round& r);
void hostile_clients(round& r);
void cut_networks(round& r);
void delayed_packets(round& r);
void killed_ranks(round& r);
void forging_clients(round& r);
void revoked_keys(round& r);
void shared_files(round& r);
void commits(round& r);
void moved_files(round& r);

}  // namespace ooc::attack
