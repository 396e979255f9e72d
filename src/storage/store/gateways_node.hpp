// Stores whose bytes lie in RADOS, and the one node of such a store as programs see it that reach it through gateways.
#pragma once

#include <memory>
#include <vector>

#include "storage/service/io_service.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// Reached by a key of Ceph or through gateways: RADOS decides where the bytes are.
bool is_in_rados(const store_core& store);

/// Asks for each file its gateway (gateway_of()); `gateways` by their numbers.
std::shared_ptr<io_service> make_gateways_node(std::vector<std::shared_ptr<io_service>> gateways);

}  // namespace ooc::storage
