// How far the nodes of a store are, asked of all at once: one may be long in answering.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "storage/service/io_service.hpp"

namespace ooc::storage {

struct known_locality {
  failure failed;  ///< the node did not answer
  locality far = locality::network;
};

/// By node.  Waits; not to be called from a completion.
std::vector<known_locality> localities_of(std::span<const std::shared_ptr<io_service>> nodes);

}  // namespace ooc::storage
