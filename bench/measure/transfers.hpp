// Requests to a striped file, several in flight, as a pager makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/service/striped_file.hpp"

namespace bench {

enum class transfer { read, write };

/// Seconds until all of `requests` are done, started in order, `depth` at a time; request k uses
/// the `slot` bytes of memory at k * slot, from the start again where the memory ends.  Throws
/// ooc::error.
double transfer_seconds(const ooc::storage::striped_file& file, transfer what,
                        std::span<const ooc::storage::request_ptr> requests, std::span<std::byte> memory,
                        std::size_t slot, unsigned depth);

/// [0, bytes) of a file in contiguous requests of `each` bytes.
std::vector<ooc::storage::request_ptr> contiguous_requests(std::uint64_t bytes, std::uint64_t each);

}  // namespace bench
