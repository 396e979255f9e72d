// How a file is dealt out over the I/O nodes of a store (Cettei, Ligon, Ross 1998, section 2).
#pragma once

#include <cstdint>

namespace ooc {

/// A file is cut into stripes of `sf` bytes that go round-robin to `nn` nodes beginning with node
/// `sn` of the store's `N`.  Offset o: k = o / sf; node = (sn + k mod nn) mod N; offset on the node
/// = (k / nn) * sf + o mod sf.
struct striping {
  std::uint32_t sn = 0;  ///< first node
  std::uint32_t nn = 0;  ///< nodes in use; 0 at creation: all of them
  std::uint64_t sf = 0;  ///< bytes in a stripe; 0 at creation: chosen from shape and block

  bool operator==(const striping&) const = default;

  /// The stripe index of a file offset: its node's position among the nn nodes in use (0 is node
  /// sn).
  std::uint64_t stripe_index_of(std::uint64_t offset) const noexcept { return offset / sf % nn; }
  std::uint32_t node_of(std::uint64_t offset, std::uint32_t store_nodes) const noexcept {
    return static_cast<std::uint32_t>((sn + stripe_index_of(offset)) % store_nodes);
  }
  std::uint64_t node_offset(std::uint64_t offset) const noexcept { return offset / sf / nn * sf + offset % sf; }
  /// The inverse: the file offset of byte `node_offset` on the node with this stripe index.
  std::uint64_t file_offset(std::uint64_t stripe_index, std::uint64_t node_offset) const noexcept {
    return (node_offset / sf * nn + stripe_index) * sf + node_offset % sf;
  }
  /// Bytes of a file of `size` bytes that the node with this stripe index holds.
  std::uint64_t object_size(std::uint64_t stripe_index, std::uint64_t size) const noexcept {
    const std::uint64_t whole = size / sf / nn * sf;
    const std::uint64_t rest = size - size / sf / nn * nn * sf;
    const std::uint64_t before = stripe_index * sf;
    return whole + (rest <= before ? 0 : rest - before < sf ? rest - before : sf);
  }
};

}  // namespace ooc
