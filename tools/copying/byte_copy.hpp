// The bytes of one file, from wherever they come to wherever they go.
#pragma once

#include <cstdint>
#include <functional>

#include "copying/file_tree.hpp"

namespace ooc::tool {

/// What `source` does not skip; the caller publishes `target` then.  Holds two buffers of at most `buffer` bytes.
/// `step`: after each part, with its bytes.  A signal ends it between two parts (interrupted).
void copy_bytes(byte_source& source, byte_target& target, std::uint64_t buffer,
                const std::function<void(std::uint64_t)>& step);

}  // namespace ooc::tool
