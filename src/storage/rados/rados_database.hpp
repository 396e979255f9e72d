// Databases of SQLite in RADOS: its VFS "ceph", of libcephsqlite, which is loaded as librados is.
#pragma once

#include <string>

#include "storage/rados/rados_pool.hpp"

namespace ooc::storage {

/// From now on SQLite opens "POOL:NAMESPACE/NAME" by the VFS "ceph" in the cluster of this pool, and returns the name
/// of a database `name` beside the objects of the pool.  A process has one cluster for that, and one user.  Throws
/// usage_error (errc::not_a_store) where libcephsqlite is not there, and for a second cluster.
std::string use_rados_database(const rados_pool& pool, const std::string& name);

/// The process that has a database open, for messages; empty: none.  One that has been killed has it for another 30 s.
std::string holder_of_rados_database(const rados_pool& pool, const std::string& name);

}  // namespace ooc::storage
