// An entry of the name space as bytes, for processes that are told of a file instead of asking the
// metadata service for it.  All of it but the free attributes and the capability.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "storage/service/metadata_service.hpp"

namespace ooc::storage {

std::vector<std::byte> packed_entry(const entry& e);
/// Throws integrity_error for bytes that end too early.
entry unpacked_entry(std::span<const std::byte> bytes);

}  // namespace ooc::storage
