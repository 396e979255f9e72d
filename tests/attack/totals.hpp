// The counts of all rounds, in memory that a round shares with the processes that it starts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace ooc::attack {

/// The outcome of a round.
enum class verdict : std::uint32_t {
  passed,
  lost,     ///< an acknowledged (after power loss: durable) byte is not there
  wrong,    ///< a read gave what nobody wrote, as good
  failed,   ///< an error, a crash or a refusal where the contract knows none
  hung,     ///< did not end in time
  slow,     ///< the innocent client waited longer than it may
  not_run,  ///< this machine cannot have it; the text says what is missing
};
inline constexpr std::size_t verdicts = 7;
const char* name_of(verdict v) noexcept;

/// The outcomes of the rounds of one kind.
struct tally {
  std::atomic<std::uint64_t> milliseconds{0};
  std::atomic<std::uint64_t> of[verdicts] = {};  ///< rounds by verdict
};

/// Plain atomics, so that a process may be killed at any time.
struct totals {
  tally kinds[24];
  std::atomic<std::uint64_t> runs{0};  ///< of the driver; more than one in a file that is kept
  std::atomic<std::uint64_t> seed{0};  ///< of the first one, with which the others go on
  std::atomic<std::uint64_t> rounds{0};
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> acknowledged_bytes{0};
  std::atomic<std::uint64_t> torn{0};     ///< chunks refused as torn that a crash had cut short
  std::atomic<std::uint64_t> refused{0};  ///< damaged chunks and files that were refused
  std::atomic<std::uint64_t> slowest_read_us{0};
  std::atomic<std::uint64_t> slowest_lookup_us{0};

  // Of the round that runs now; the first one to fail in it writes them.
  std::atomic<verdict> outcome{verdict::passed};
  std::atomic<bool> told{false};
  char text[4000] = {};
};

/// Maps the totals that are in `file`, and makes them if it is not there.  Throws where it holds
/// something else.  Never unmapped.
totals& map_totals(const std::filesystem::path& file);

void raise_to(std::atomic<std::uint64_t>& maximum, std::uint64_t value) noexcept;

}  // namespace ooc::attack
