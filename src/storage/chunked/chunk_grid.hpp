// Which chunks the bytes of a row-major array lie in, and where in them.
//
// A value; no locks.  All numbers of bytes count the row-major image of the array, or of a whole chunk; chunks at the
// upper ends reach beyond the array.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ooc::storage {

class chunk_grid {
 public:
  /// Extents in elements; none is 0.  The bytes of neither may pass 2^63.
  chunk_grid(std::vector<std::uint64_t> extents, std::vector<std::uint64_t> chunk, std::uint32_t element_size);

  std::uint64_t chunks() const noexcept;
  /// Its number along each dimension.
  std::vector<std::uint64_t> index_of(std::uint64_t chunk) const;
  std::uint64_t chunk_bytes() const noexcept;
  /// Of those, how many lie in the array.
  std::uint64_t bytes_in_array(std::uint64_t chunk) const;
  /// How many chunks a walk through the array in row-major order comes to before it is done with the first one.
  std::uint64_t chunks_in_use_together() const noexcept;
  /// The index of its first element, for messages: "[0, 128]".
  std::string place_of(std::uint64_t chunk) const;

  /// Calls f(chunk), ascending, for the chunks that hold any of these bytes.
  void for_each_chunk(std::uint64_t begin, std::uint64_t end, const std::function<void(std::uint64_t)>& f) const;

  struct piece {
    std::uint64_t in_chunk, in_array, bytes;
  };
  /// Calls f(piece) for what a chunk has of these bytes until it says false.
  void for_each_piece(std::uint64_t chunk, std::uint64_t begin, std::uint64_t end,
                      const std::function<bool(const piece&)>& f) const;

 private:
  using index = std::vector<std::uint64_t>;

  index coordinates(std::uint64_t byte) const;

  index extents_, chunk_;  // of the last dimension in bytes
  index grid_;             // chunks along each dimension
  std::uint32_t element_size_;
};

}  // namespace ooc::storage
