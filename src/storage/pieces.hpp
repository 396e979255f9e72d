// Which pieces of a request lie on one node: the intersection with the node's stripes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oocarray/request.hpp"
#include "oocarray/striping.hpp"

namespace ooc::storage {

/// Contiguous bytes of a share and of the caller's memory.
struct piece {
  std::uint64_t node_offset = 0;    ///< in the node's share of the file
  std::uint64_t memory_offset = 0;  ///< in the memory of the request
  std::uint64_t length = 0;         ///< bytes

  std::uint64_t node_end() const noexcept { return node_offset + length; }
  bool operator==(const piece&) const = default;
};

/// Replaces `out` by the pieces of `r` on the node with this turn, by ascending node offset (equal
/// offsets in the order of the request); neighbours that touch on the node and in memory are one.
///
/// The cost is in proportion to the pieces found: stripes and whole repetitions that lie on other
/// nodes are stepped over, not walked through.
void share_pieces(const request& r, const striping& s, std::uint32_t turn, std::vector<piece>& out);

/// The same in at most `most` steps, of which every piece takes one before neighbours are joined,
/// as does every repetition of a level that is looked into or stepped over.  False, with no pieces,
/// where that is not enough: neither memory nor time go beyond it.
bool share_pieces_within(const request& r, const striping& s, std::uint32_t turn,
                         std::uint64_t most, std::vector<piece>& out);

/// Bytes of some pieces, in their order: `count` from byte `first` on, 0 for all that follow.
struct byte_range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  bool operator==(const byte_range&) const = default;
};

/// Cuts off what lies outside the range; where it reaches beyond the pieces, they end earlier.
void cut(std::vector<piece>& pieces, byte_range r);

/// True if two of the pieces (sorted) share a byte of the node.
bool overlap(std::span<const piece> sorted) noexcept;

/// Contiguous runs on the node, whatever they are in memory: what the counters call pieces.
std::uint64_t node_runs(std::span<const piece> sorted) noexcept;

}  // namespace ooc::storage
