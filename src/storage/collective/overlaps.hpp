// Do the ranks' requests meet?  A collective write in which they do has no one result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "oocarray/request.hpp"
#include "storage/collective/exchange_plan.hpp"

namespace ooc::storage {

/// Bytes that two regions have in common.
struct shared_bytes {
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t length = 0;
  std::uint64_t first = 0;  ///< the ranks, which may be one
  std::uint64_t second = 0;
};

/// The first such bytes in the windows of `rank`: ranks share the work.  Memory: a list of the
/// regions of one window.
std::optional<shared_bytes> find_overlap(const exchange_plan& plan, std::span<const request> wanted,
                                         std::uint64_t rank);

}  // namespace ooc::storage
