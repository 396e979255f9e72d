// The one node of a store in RADOS as programs see it that reach it through gateways.
#pragma once

#include <memory>
#include <vector>

#include "storage/service/io_service.hpp"

namespace ooc::storage {

/// Asks for each file its gateway (gateway_of()); `gateways` by their numbers.
std::shared_ptr<io_service> make_gateways_node(std::vector<std::shared_ptr<io_service>> gateways);

}  // namespace ooc::storage
