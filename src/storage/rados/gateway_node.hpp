// The node of a store in RADOS as a gateway serves it, `ooc-iod --backend rados:...`: for programs without a key of
// Ceph, whose capabilities the server checks.
//
// RADOS knows the gateway only, so it cannot shut out one of its clients.  What keeps out a client that has lost its
// claim is that every file has one gateway, the one with number id % gateways, through which alone it is written
// (file_fences).  A gateway that takes the place of another has RADOS shut that one out first.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "storage/rados/possession.hpp"
#include "storage/rados/rados_pool.hpp"
#include "storage/service/served_node.hpp"

namespace ooc::storage {

class gateway_node : public served_node {
 public:
  /// The number of gateways that the store has: how its files are shared out among them.
  virtual void set_gateways(std::uint32_t count) = 0;
  virtual const std::string& store_uuid() const = 0;
};

/// Takes the place of gateway `number` of the store.  `lost` is called, on a thread of the node, once another has taken
/// it, or the store is to be reached without: nothing can be read or written here any more.  Throws usage_error
/// (errc::not_a_store) where there is no store or it has no such gateway, io_error where RADOS does not answer.
std::shared_ptr<gateway_node> make_gateway_node(const std::shared_ptr<rados_pool>& pool, std::uint32_t number,
                                                std::function<void(const std::string& why)> lost);

}  // namespace ooc::storage
