// What is stored of a chunk (oocarray/file_chunks.hpp): the reverse of chunk_decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oocarray/file_chunks.hpp"

namespace ooc::storage {

/// What one thread encodes with.  Not to be shared.
class chunk_encoder {
 public:
  /// `c`: extents, filters, packing and order, which go together.
  chunk_encoder(const file_chunks& c, std::uint32_t element_size);

  /// Encodes a whole chunk, in row-major order; stored() has it then.  Returns why that cannot be; empty: it is done.
  std::string encode(std::span<const std::byte> chunk);
  std::span<const std::byte> stored() const noexcept { return stored_; }

  /// Bytes that it has beside the chunk.
  static std::uint64_t memory(const file_chunks& c, std::uint64_t chunk);

 private:
  /// For what is made of `now`.
  std::span<std::byte> beside(std::span<const std::byte> now);
  /// Copies the elements from `from` on, along this dimension and those behind it, to where a chunk stores them.
  void put_as_stored(std::size_t dimension, const std::byte*& from, std::byte* to) const;

  const std::vector<chunk_filter> filters_;
  std::vector<chunk_packing> packing_;
  const std::uint32_t element_size_;
  const std::vector<std::uint64_t> extents_;
  const std::vector<std::uint64_t> steps_;  ///< of steps_as_stored()
  std::vector<std::byte> first_, second_;   ///< what one filter makes, and what the next makes of it
  std::span<const std::byte> stored_;
};

}  // namespace ooc::storage
