// A request in as many as it takes for a server to take each.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/io_service.hpp"
#include "storage/pieces.hpp"

namespace ooc::storage {

struct sendable {
  request_ptr wanted;
  std::vector<piece> pieces;  ///< of it, on the node
};

/// `r` itself, or, where it has more entries or pieces on the node than one message may have,
/// halves of it, of their halves, and so on; those without pieces are left out while there are others.
std::vector<sendable> sendable_requests(request_ptr r, const striping& s, std::uint32_t turn);

/// True if a byte of the node belongs to two pieces, be they of different requests or of one.
bool overlap(const std::vector<sendable>& all);

}  // namespace ooc::storage
