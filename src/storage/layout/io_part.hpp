// A node's stripe object of a request, in parts of bounded size, and the checksums that travel with them.
//
// Both ends of a connection find the same regions (object_regions) and cut them in the same way, so a
// part is described by its position alone.  Its bytes travel packed, in the order of the regions.
//
// The checksums of a part: one for each chunk that a region covers whole, in order, the value that
// is stored at rest (chunk_sum); then, if there are other bytes, one CRC32C of all of them in
// order.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/layout/file_shape.hpp"
#include "storage/layout/regions.hpp"

namespace ooc::storage {

struct io_part {
  static constexpr std::uint64_t max_bytes = 1 << 20;
  static constexpr std::size_t max_regions = 1 << 15;

  std::vector<region> regions;  ///< by node offset
  std::uint64_t bytes = 0;
  std::uint32_t whole = 0;  ///< chunks that a region covers whole
  bool rest = false;        ///< there are bytes outside those chunks

  std::uint32_t sums() const noexcept { return whole + (rest ? 1 : 0); }
  std::uint64_t wire_bytes() const noexcept { return bytes + std::uint64_t{sums()} * 4; }
};

class part_cutter {
 public:
  /// `regions` as object_regions() finds them.
  explicit part_cutter(std::vector<region> regions) : regions_(std::move(regions)) {}

  bool at_end() const noexcept { return next_ == regions_.size(); }
  /// The next part: at most max_bytes bytes and max_regions regions, cut at the end of a chunk where
  /// a region must be cut.
  io_part next();

 private:
  std::vector<region> regions_;
  std::size_t next_ = 0;
  std::uint64_t taken_ = 0;  // bytes of regions_[next_] that earlier parts have
};

/// At most `n` ranges of about the same size that together are all of the regions, none shorter than
/// `least` bytes but where there is one only.  They begin at ends of chunks of the stripe object where a region
/// must be cut, so that a chunk that was whole stays whole.
std::vector<byte_range> even_ranges(std::span<const region> regions, std::size_t n, std::uint64_t least);

/// The same part for a buffer that holds its bytes packed, and nothing else.
io_part packed(io_part p);

/// Calls whole(chunk, memory offset) and rest(memory offset, bytes) for what the part covers, in
/// order.
template <class Whole, class Rest>
void for_each_chunk(const io_part& p, Whole&& whole, Rest&& rest);

void compute_sums(const io_part& p, const std::byte* memory, std::uint32_t* sums) noexcept;
bool sums_match(const io_part& p, const std::byte* memory, const std::uint32_t* sums) noexcept;
/// The CRC32C of the bytes outside whole chunks.
std::uint32_t rest_sum(const io_part& p, const std::byte* memory) noexcept;

/// The memory of the part, in order; neighbours joined.
void append_memory(const io_part& p, std::byte* memory, std::vector<iovec>& to);

template <class Whole, class Rest>
void for_each_chunk(const io_part& p, Whole&& whole, Rest&& rest) {
  for (const region& one : p.regions) {
    std::uint64_t at = 0;
    while (at < one.length) {
      const std::uint64_t node = one.node_offset + at;
      const std::uint64_t left = one.length - at;
      const std::uint64_t within = node % chunk_size;
      if (within == 0 && left >= chunk_size) {
        whole(node / chunk_size, one.memory_offset + at);
        at += chunk_size;
      } else {
        const std::uint64_t n = left < chunk_size - within ? left : chunk_size - within;
        rest(one.memory_offset + at, n);
        at += n;
      }
    }
  }
}

}  // namespace ooc::storage
