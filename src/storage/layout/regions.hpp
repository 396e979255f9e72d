// Which regions of a request lie on one node: the intersection with the node's stripes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oocarray/request.hpp"
#include "oocarray/striping.hpp"

namespace ooc::storage {

/// Gaps of at most so many bytes between regions are read along with them (data sieving): one
/// longer access costs a disk less than two.
inline constexpr std::uint64_t max_sieved_gap = 8 << 10;

/// Contiguous bytes of a stripe object and of the caller's memory.
struct region {
  std::uint64_t node_offset = 0;    ///< in the node's stripe object of the file
  std::uint64_t memory_offset = 0;  ///< in the memory of the request
  std::uint64_t length = 0;         ///< bytes

  std::uint64_t node_end() const noexcept { return node_offset + length; }
  bool operator==(const region&) const = default;
};

/// Replaces `out` by the regions of `r` on the node with this stripe index, by ascending node offset (equal
/// offsets in the order of the request); neighbours that touch on the node and in memory are one.
///
/// The cost is in proportion to the regions found: stripes and whole repetitions that lie on other
/// nodes are stepped over, not walked through.
void object_regions(const request& r, const striping& s, std::uint32_t stripe_index, std::vector<region>& out);

/// The same in at most `most` steps, of which every region takes one before neighbours are joined,
/// as does every repetition of a level that is looked into or stepped over.  False, with no regions,
/// where that is not enough: neither memory nor time go beyond it.
bool object_regions_within(const request& r, const striping& s, std::uint32_t stripe_index, std::uint64_t most,
                           std::vector<region>& out);

/// Bytes of some regions, in their order: `count` from byte `first` on, 0 for all that follow.
struct byte_range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  bool operator==(const byte_range&) const = default;
};

/// Cuts off what lies outside the range; where it reaches beyond the regions, they end earlier.
void cut(std::vector<region>& regions, byte_range r);

/// True if two of the regions (sorted) share a byte of the node.
bool overlap(std::span<const region> sorted) noexcept;

/// Contiguous runs on the node, whatever they are in memory: what the counters call regions.
std::uint64_t node_runs(std::span<const region> sorted) noexcept;

}  // namespace ooc::storage
