// Which way the ranks' requests go: each rank's straight to the nodes, or through each other.
//
// Nodes transfer whole 4 KiB chunks, and skip only gaps that are longer than a transfer is worth.
// So where the pieces of several ranks interleave finely, independent requests transfer the same
// chunks once for every rank, and writes change each chunk as often.  An exchange transfers each
// chunk once, and pays for it with two copies and a message.  docs/decisions/0010-collective-io.md
// has what was measured.
#pragma once

#include <cstdint>
#include <span>

#include "oocarray/request.hpp"

namespace ooc::storage {

enum class route : std::uint8_t {
  independent,  ///< every rank sends its own request to the nodes
  exchanged,    ///< ranks transfer contiguous windows and pass on what belongs to others
};

/// Pieces of this many bytes or more, on the average, are better served independently.
inline constexpr std::uint64_t long_piece = std::uint64_t{64} << 10;

/// The route for the ranks' requests, one for each rank.  The same on all ranks that pass the same;
/// its cost is in proportion to the entries, whatever the number of pieces.
route choose_route(std::span<const request> wanted);

}  // namespace ooc::storage
