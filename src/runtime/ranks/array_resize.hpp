// resize() of an array.
#pragma once

#include <cstddef>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

/// Changes the first extent.  Collective over the array's group, with no other use of the array
/// meanwhile; what one rank throws, all throw.
void resize_array(shared_array& a, std::size_t first_extent);

}  // namespace ooc::detail
