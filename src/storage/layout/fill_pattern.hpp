// The value as which a byte that was never written is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

/// Writes the file's fill pattern as it stands at `node_offset` of the stripe object with this stripe index.  The
/// pattern repeats from FILE offset 0, so its phase jumps at every stripe.  Defined past the end of
/// the stripe object too: the padding of a last, partial chunk is what a later growth will read.
void fill_object_bytes(const file_shape& f, std::uint32_t stripe_index, std::uint64_t node_offset,
                       std::span<std::byte> out) noexcept;

}  // namespace ooc::storage
