// A node's share of a request, in parts of bounded size, and the checksums that travel with them.
//
// Both ends of a connection find the same pieces (share_pieces) and cut them in the same way, so a
// part is described by its position alone.  Its bytes travel packed, in the order of the pieces.
//
// The checksums of a part: one for each chunk that a piece covers whole, in order, the value that
// is stored at rest (chunk_sum); then, if there are other bytes, one CRC32C of all of them in
// order.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/io_service.hpp"
#include "storage/pieces.hpp"

namespace ooc::storage {

struct io_part {
  static constexpr std::uint64_t max_bytes = 1 << 20;
  static constexpr std::size_t max_pieces = 1 << 15;

  std::vector<piece> pieces;  ///< by node offset
  std::uint64_t bytes = 0;
  std::uint32_t whole = 0;  ///< chunks that a piece covers whole
  bool rest = false;        ///< there are bytes outside those chunks

  std::uint32_t sums() const noexcept { return whole + (rest ? 1 : 0); }
  std::uint64_t wire_bytes() const noexcept { return bytes + std::uint64_t{sums()} * 4; }
};

class part_cutter {
 public:
  /// `pieces` as share_pieces() finds them.
  explicit part_cutter(std::vector<piece> pieces) : pieces_(std::move(pieces)) {}

  bool at_end() const noexcept { return next_ == pieces_.size(); }
  /// The next part: at most max_bytes bytes and max_pieces pieces, cut at the end of a chunk where
  /// a piece must be cut.
  io_part next();

 private:
  std::vector<piece> pieces_;
  std::size_t next_ = 0;
  std::uint64_t taken_ = 0;  // bytes of pieces_[next_] that earlier parts have
};

/// At most `n` ranges of about the same size that together are all of the pieces, none shorter than
/// `least` bytes but where there is one only.  They begin at ends of chunks of the share where a piece
/// must be cut, so that a chunk that was whole stays whole.
std::vector<byte_range> even_ranges(std::span<const piece> pieces, std::size_t n,
                                    std::uint64_t least);

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
  for (const piece& one : p.pieces) {
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
