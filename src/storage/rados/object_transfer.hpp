// Reads and writes of a file's regions: one operation for each object that they touch.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/layout/regions.hpp"
#include "storage/rados/rados_pool.hpp"
#include "storage/service/io_service.hpp"
#include "storage/service/node_counters.hpp"

namespace ooc::storage {

/// What operations share with their node, which they may outlive.
struct rados_node_state {
  explicit rados_node_state(std::shared_ptr<rados_pool> p) : pool(std::move(p)) {}
  /// The same node, whose objects are reached as `p` does (file_snapshots.hpp).
  rados_node_state(std::shared_ptr<rados_pool> p, const std::shared_ptr<rados_node_state>& of)
      : pool(std::move(p)), node(of) {}

  const std::shared_ptr<rados_pool> pool;
  const std::shared_ptr<rados_node_state> node;  ///< that counts; null: this does
  node_counters own;
  node_counters& counters() { return node ? node->own : own; }

  /// `rc`: a negative errno of RADOS.
  failure failed(io_kind kind, const file_shape& f, int rc, const std::string& more = "") const;
  failure refused(io_kind kind, const file_shape& f, const std::string& why) const;
};
using rados_node_ptr = std::shared_ptr<rados_node_state>;

/// "the read of 'a'"
std::string described(io_kind kind, const file_shape& f);

/// `regions`: of the file (its only stripe object), sorted; of a write no two share a byte.
void read_regions(const rados_node_ptr& node, const shape_ptr& file, const std::vector<region>& regions,
                  std::byte* memory, completion done);
void write_regions(const rados_node_ptr& node, const shape_ptr& file, const std::vector<region>& regions,
                   const std::byte* memory, completion done);

}  // namespace ooc::storage
