// The changes in a block: the elements in which it differs from its twin.
//
// Two processes that write different elements of one block both keep theirs, as each sends only its
// own (the twins and diffs of page-based shared memory).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "oocarray/request.hpp"

namespace ooc::detail {

/// The part of `whole`, a request for the block at `frame`, whose elements of `element_size` bytes
/// differ between `frame` and `twin`.  Elements are counted from the file's first byte; one that
/// the block's edge cuts is compared as far as it lies within.  Where elements may be sent that did not
/// change, a larger size makes for fewer regions.
request changes(const request& whole, std::uint32_t element_size, const std::byte* frame, const std::byte* twin);

/// The bytes of a block that were sent to a store that failed: some of them may have arrived, so a twin
/// says no longer what the store has there.  Not thread-safe.
class bytes_in_doubt {
 public:
  /// Those in which `sent` differs from `twin`; `bytes` is a multiple of 8.
  bytes_in_doubt(const std::byte* sent, const std::byte* twin, std::size_t bytes);

  /// Makes `twin` differ from `frame` in each of them: they are sent again, whatever they are now.
  void spoil(std::byte* twin, const std::byte* frame) const noexcept;

 private:
  std::vector<std::uint8_t> words_;  ///< for each word of 8 bytes, a bit for each byte
};

}  // namespace ooc::detail
