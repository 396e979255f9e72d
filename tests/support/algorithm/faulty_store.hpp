// A store whose only node, in memory, misbehaves on request.
#pragma once

#include <cstddef>
#include <future>
#include <memory>
#include <vector>

#include "oocarray/store.hpp"
#include "support/faulty_io_service.hpp"
#include "support/memory_store.hpp"

namespace ooc::testing {

struct faulty_store {
  memory_store behind{1};
  std::shared_ptr<storage::faulty_io_service> node = std::make_shared<storage::faulty_io_service>(behind.nodes[0]);
  std::shared_ptr<storage::store_core> core =
      std::make_shared<storage::store_core>("memory:", "test", behind.metadata, storage::striped_file::nodes{node});

  ooc::store handle() const { return ooc::store(core); }
  /// Stripe objects that there are.
  std::size_t objects() const {
    std::promise<std::size_t> n;
    behind.nodes[0]->list([&](const failure&, std::vector<storage::file_id> all) { n.set_value(all.size()); });
    return n.get_future().get();
  }
};

}  // namespace ooc::testing
