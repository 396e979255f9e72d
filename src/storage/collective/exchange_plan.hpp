// How a file is cut for an exchange between ranks.
//
// Windows of equal size lie one after another from the file's first byte on; `ranks` of them that
// follow each other are a round, and window i of a round belongs to rank i, which alone transfers
// it.  A round is therefore one contiguous part of the file, and rounds go through the file from
// its begin to its end.  Rounds of which no rank wants anything are left out.
//
// Windows begin at multiples of 4 KiB and, where they are large enough, of a stripe on every node:
// no chunk is transferred by two ranks, and each window keeps all nodes busy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oocarray/request.hpp"
#include "oocarray/striping.hpp"
#include "storage/layout/regions.hpp"

namespace ooc::storage {

struct exchange_plan {
  std::uint64_t ranks = 1;
  std::uint64_t window = 0;           ///< bytes
  std::uint64_t last_round = 0;       ///< one past the last round of the file that is wanted
  std::vector<std::uint32_t> rounds;  ///< those of which something is wanted, ascending

  std::uint64_t window_begin(std::uint32_t round, std::uint64_t rank) const noexcept {
    return (round * ranks + rank) * window;
  }
  /// The regions of `r` in a window, by ascending offset; `node_offset` counts from the window's
  /// begin.
  void regions_in_window(const request& r, std::uint32_t round, std::uint64_t rank, std::vector<region>& out) const;
};

/// The windows of a round take `round_bytes` in all (but at least 4 KiB each).  The same on all
/// ranks that pass the same.  Throws usage_error (errc::invalid_request) where the requests reach
/// beyond 2^31 windows.
exchange_plan plan_exchange(std::span<const request> wanted, const striping& s, std::uint64_t round_bytes);

}  // namespace ooc::storage
