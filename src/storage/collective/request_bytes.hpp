// A request as bytes between the ranks of a group; see packed.hpp.
#pragma once

#include "oocarray/request.hpp"
#include "storage/base/packed.hpp"

namespace ooc::storage {

void pack(packer& p, const request& r);
/// Throws integrity_error where the bytes are no request.
request unpack_request(unpacker& u);

}  // namespace ooc::storage
