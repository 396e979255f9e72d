// Arithmetic of the partitioned view (file.hpp): logical bytes -> file bytes.
#pragma once

#include <cstdint>

#include "oocarray/file.hpp"
#include "oocarray/request.hpp"

namespace ooc::storage {

/// The bytes [position, position + length) of the view as one request.  Throws usage_error where a
/// file offset passes 2^63 - 1.
request view_request(const partition& p, std::uint64_t position, std::uint64_t length, access_kind kind);

/// How many bytes of the view lie in a file of `file_size` bytes.
std::uint64_t view_size(const partition& p, std::uint64_t file_size) noexcept;

}  // namespace ooc::storage
