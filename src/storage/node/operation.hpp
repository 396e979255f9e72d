// One call of io_service on a local node, and what its steps leave for the next one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "storage/layout/io_part.hpp"
#include "storage/object/stripe_object_cache.hpp"
#include "storage/object/stripe_object_reader.hpp"
#include "storage/service/io_service.hpp"
#include "storage/service/request_scheduler.hpp"

namespace ooc::storage {

/// One call of io_service, from its submission to its completion.
struct operation : node_call {
  request_origin origin;
  std::optional<io_part> part;    ///< read, write: instead of `wanted`
  std::uint32_t* sums = nullptr;  ///< of the part; of a write: only read
  checking who = checking::here;  ///< read of a part

  failure result;
  completion done;

  // Between the steps.
  std::uint64_t next_cost = 0;  ///< of the next step, in bytes; beside those of a part
  std::uint64_t chunk = 0;      ///< verify, clone, trim: the first that was not looked at
  std::uint64_t chunks = 0;     ///< of those: that there are
  bool claimed = false;         ///< the claim has been granted
  std::shared_ptr<stripe_object> target;
  std::shared_ptr<stripe_object> copy;  ///< clone: that of `into`
  std::vector<region> regions;
  std::uint64_t bytes = 0;  ///< in all regions on the node
  std::vector<bad_chunk> bad;
  chunk_locks::claim claim;
  operation* next_resumed = nullptr;  ///< in the queue of those that were parked
};

using operation_ptr = std::unique_ptr<operation>;

}  // namespace ooc::storage
