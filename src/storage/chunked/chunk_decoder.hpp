// The bytes of a chunk as they were before filters were applied (oocarray/file_chunks.hpp), in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oocarray/file_chunks.hpp"

namespace ooc::storage {

/// Bytes to the next index of each dimension, as a chunk is stored; empty: in row-major order.
std::vector<std::uint64_t> steps_as_stored(const file_chunks& c, std::uint32_t element_size);

/// What one thread decodes with.  Not to be shared.
class chunk_decoder {
 public:
  /// `c`: extents, filters and order, which go together.
  chunk_decoder(const file_chunks& c, std::uint32_t element_size);

  /// Memory for what is stored of a chunk, until the next call.
  std::span<std::byte> stored(std::size_t bytes);
  /// Decodes what is there to the whole of `to`.  Returns why that cannot be; empty: it is done.
  std::string decode(std::uint32_t filter_mask, std::span<std::byte> to);

  /// Bytes that it has beside what it decodes to, for chunks of which at most `stored` are in the file.
  static std::uint64_t memory(const file_chunks& c, std::uint64_t chunk, std::uint64_t stored);

 private:
  std::span<std::byte> beside(std::span<const std::byte> now, std::size_t chunk);
  /// Copies what `from` has along this dimension, and those behind it, to the next bytes of `to`.
  void put_in_order(std::size_t dimension, const std::byte* from, std::byte*& to) const;

  const std::vector<chunk_filter> filters_;
  const std::vector<std::vector<std::uint32_t>> parameters_;  ///< of each filter
  const std::uint32_t element_size_;
  const std::vector<std::uint64_t> extents_;
  const std::vector<std::uint64_t> steps_;   ///< of steps_as_stored()
  std::vector<std::byte> stored_, between_;  ///< `between_`: of filters that are not the last to be undone
  std::size_t bytes_ = 0;                    ///< of stored_
};

}  // namespace ooc::storage
