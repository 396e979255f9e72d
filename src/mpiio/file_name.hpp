// Names of files as MPI programs give them: a store and a path in it.
//
//     ooc:local:/disk1,/disk2/runs/x     the folders of an embedded store, the last of them with the path
//     ooc://host:7420/runs/x             a served store; ?deadline=10s at the end goes with the store's URL
//     ooc:runs/x                         in the store of the environment variable OOC_STORE
//
// In the first form the store's last folder is the first one on the way that belongs to a store, so the store must be
// there already.
#pragma once

#include <string>
#include <string_view>

namespace ooc::mpiio {

struct file_name {
  std::string store;  ///< URL
  std::string path;   ///< never empty
};

bool is_file_name(std::string_view name);

/// Throws usage_error (errc::not_a_store) where store or path are missing.
file_name parse_file_name(std::string_view name);

}  // namespace ooc::mpiio
