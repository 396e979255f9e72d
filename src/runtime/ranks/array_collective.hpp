// read_all() and write_all() of an array: transfers of all ranks at once.
#pragma once

#include <cstddef>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

/// Reads to or writes from `memory`, which has room for as many elements.  Collective over the
/// array's group, with no other use of the array meanwhile; what one rank throws, all throw.
void transfer_all(shared_array& a, access_kind kind, box_view b, std::byte* memory,
                  std::size_t elements);

}  // namespace ooc::detail
