// Boxes of arrays as commands take them, and a walk over one in pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "storage/layout/box_requests.hpp"

namespace ooc::tool {

/// The elements with lower <= i < upper.
struct box {
  storage::index lower, upper;
  /// Elements in each dimension.
  storage::index extents() const;
};

/// "10:20,:,5:" in an array of these extents; empty: all of it.  Throws usage_mistake that names
/// --box, for one without elements and for one that reaches past the array, too.
box parse_box(const std::string& text, const storage::index& extents);

/// Calls f(lower, upper, bytes) for boxes of at most `max_bytes` (at least one element) that are
/// `b` together; not at all where it is empty.  Where the array is stored in pieces of the shape `grain`, no two boxes
/// share one, unless a piece is larger than max_bytes: its boxes then follow one another.
void for_each_piece(const box& b, const storage::index& grain, std::uint32_t element_size, std::uint64_t max_bytes,
                    const std::function<void(const storage::index&, const storage::index&, std::uint64_t)>& f);

}  // namespace ooc::tool
