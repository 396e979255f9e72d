// A list of pieces as the shortest request: pieces that are evenly spaced in the file and in memory become one nested
// entry, so that a request for the columns of a matrix is as short in the message as it was in the program.
#pragma once

#include <vector>

#include "oocarray/request.hpp"

namespace ooc::storage {

/// All entries, in their order.  Throws usage_error where an offset passes 2^63 - 1.
request folded(std::vector<nested_request> entries);

}  // namespace ooc::storage
