// Which way the ranks' requests go: each rank's straight to the nodes, or through each other.
//
// A node changes and checks whole 4 KiB chunks, and skips only gaps that are longer than a transfer
// is worth.  So where the regions of several ranks interleave finely, independent requests make it
// handle the same chunks once for every rank.  An exchange handles each chunk once, and pays for it
// with two copies and a message: much less than the chunks cost where the node is in the process,
// somewhat less where its server works beside the ranks; over a network, every byte would travel
// twice.  docs/decisions/0010-collective-io.md has what was measured.
#pragma once

#include <cstdint>
#include <span>

#include "oocarray/request.hpp"
#include "storage/service/io_service.hpp"

namespace ooc::storage {

enum class strategy : std::uint8_t {
  independent,  ///< every rank sends its own request to the nodes
  two_phase,    ///< ranks transfer contiguous windows and pass on what belongs to others
};

/// Pieces of this many bytes or more, on the average, are better served independently by nodes that
/// far away.
constexpr std::uint64_t long_region(access_kind kind, locality nodes) noexcept {
  switch (nodes) {
    case locality::none: return kind == access_kind::read ? 64 << 10 : 2 << 20;
    case locality::host: return kind == access_kind::read ? 1 << 10 : 8 << 10;
    case locality::network: break;
  }
  return 0;
}

/// The strategy for the ranks' requests, one for each rank; `nodes` is the farthest one's locality from
/// any rank.  The same on all ranks that pass the same; its cost is in proportion to the entries,
/// whatever the number of regions.
strategy choose_strategy(access_kind kind, std::span<const request> wanted, locality nodes);

}  // namespace ooc::storage
