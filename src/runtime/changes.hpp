// What changed in a block: the elements in which it differs from its twin.
//
// Two processes that write different elements of one block both keep theirs, as each sends only its
// own (the twins and diffs of page-based shared memory).
#pragma once

#include <cstddef>
#include <cstdint>

#include "oocarray/request.hpp"

namespace ooc::detail {

/// The part of `whole`, a request for the block at `frame`, whose elements of `element_size` bytes
/// differ between `frame` and `twin`.  Elements are counted from the file's first byte; one that
/// the block's edge cuts is compared as far as it lies within.  Where elements may be sent that did not
/// change, a larger size makes for fewer pieces.
request changes(const request& whole, std::uint32_t element_size, const std::byte* frame,
                const std::byte* twin);

}  // namespace ooc::detail
