// A request in as many as it takes for a server to take each.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/layout/regions.hpp"
#include "storage/service/io_service.hpp"

namespace ooc::storage {

struct split_request {
  request_ptr wanted;
  std::vector<region> regions;  ///< of it, on the node
};

/// `r` itself, or, where it has more entries or regions on the node than one message may have,
/// halves of it, of their halves, and so on; those without regions are left out while there are others.
std::vector<split_request> split_requests(request_ptr r, const striping& s, std::uint32_t stripe_index);

/// True if a byte of the node belongs to two regions, be they of different requests or of one.
bool overlap(const std::vector<split_request>& all);

}  // namespace ooc::storage
