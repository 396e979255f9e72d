// The value as which a byte that was never written is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

/// Writes the file's fill pattern as it stands at `node_offset` of the stripe object with this stripe index.  The
/// pattern repeats from FILE offset 0, so its phase jumps at every stripe.  Defined past the end of
/// the stripe object too: the padding of a last, partial chunk is what a later growth will read.
void fill_object_bytes(const file_shape& f, std::uint32_t stripe_index, std::uint64_t node_offset,
                       std::span<std::byte> out) noexcept;

/// The same in a file without stripes: `out` begins at byte `at` of it.  An empty pattern is zeros.
void fill_with(const std::vector<std::byte>& pattern, std::uint64_t at, std::span<std::byte> out) noexcept;
/// Whether that is what there is already.
bool is_filled_with(const std::vector<std::byte>& pattern, std::uint64_t at, std::span<const std::byte> bytes) noexcept;

}  // namespace ooc::storage
