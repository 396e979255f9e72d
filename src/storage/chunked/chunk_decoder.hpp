// The bytes of a chunk as they were before filters were applied (oocarray/file_chunks.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oocarray/file_chunks.hpp"

namespace ooc::storage {

/// What one thread decodes with.  Not to be shared.
class chunk_decoder {
 public:
  chunk_decoder(std::vector<chunk_filter> filters, std::uint32_t element_size)
      : filters_(std::move(filters)), element_size_(element_size) {}

  /// Memory for what is stored of a chunk, until the next call.
  std::span<std::byte> stored(std::size_t bytes);
  /// Decodes what is there to the whole of `to`.  Returns why that cannot be; empty: it is done.
  std::string decode(std::uint32_t filter_mask, std::span<std::byte> to);

  /// Bytes that it has beside what it decodes to, for chunks of which at most `stored` are in the file.
  static std::uint64_t memory(std::uint64_t chunk, std::uint64_t stored) { return std::max(chunk, stored) + chunk + 8; }

 private:
  /// Makes `now` what it was before the filter, in the memory `next` where that is elsewhere.
  std::string undo(chunk_filter f, std::span<const std::byte>& now, std::span<std::byte> next) const;

  const std::vector<chunk_filter> filters_;
  const std::uint32_t element_size_;
  std::vector<std::byte> stored_, between_;  ///< `between_`: of filters that are not the last to be undone
  std::size_t bytes_ = 0;                    ///< of stored_
};

}  // namespace ooc::storage
