// read_all() and write_all() of an array: transfers of all ranks at once.
//
// Every rank learns every box, writes back the blocks that any box touches, takes back promises to overwrite them,
// and waits for the others.  The data then move between the store and the caller's memory, past the blocks
// (storage/collective/collective_transfer.hpp).  After a write, successful or not, all ranks drop the blocks that
// were touched.
#pragma once

#include <cstddef>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

/// Reads to or writes from `memory`, which has room for as many elements.  Collective over the
/// array's group, with no other use of the array meanwhile; what one rank throws, all throw.
void transfer_all(shared_array& a, access_kind kind, box_view b, std::byte* memory, std::size_t elements);

}  // namespace ooc::detail
