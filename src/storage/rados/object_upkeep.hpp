// The calls of a node in RADOS that take several operations, one after another.
#pragma once

#include "storage/rados/file_snapshots.hpp"
#include "storage/rados/object_transfer.hpp"

namespace ooc::storage {

/// Makes, resizes, removes, looks at or verifies the objects of a file, or commits them, and waits for that.  Throws
/// error, std::bad_alloc.  Not to be called from an end of rados_pool.
failure keep_up(const rados_node_ptr& node, file_snapshots& snapshots, const node_call& call);

}  // namespace ooc::storage
