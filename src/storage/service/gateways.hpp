// The gateways of a store in RADOS: I/O servers for programs without a key of Ceph.  Each file has one of them.
#pragma once

#include <cstdint>
#include <string>

#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

/// The gateway through which alone the file is read and written, of `count`.
constexpr std::uint32_t gateway_of(file_id id, std::uint32_t count) noexcept {
  return static_cast<std::uint32_t>(id % count);
}

/// What a gateway has in the place of the identity of a folder: whoever can reach the pool may take its place.
inline std::string gateway_uuid(std::uint32_t number) { return "rados-gateway-" + std::to_string(number); }

}  // namespace ooc::storage
