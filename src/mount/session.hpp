// A store as a folder of the file system: from mounting it to its unmounting.
#pragma once

#include <functional>

#include "mount/file_system.hpp"

namespace ooc::mount {

/// Mounts the store at options.folder and serves it until it is unmounted, or SIGINT, SIGTERM or SIGHUP comes.  Calls
/// `mounted` once the folder shows the store.  Throws usage_error where it cannot be mounted.  The umask of the process
/// becomes 0, as the kernel has applied that of each caller.
void serve(const ooc::store& store, const mount_options& options, const std::function<void()>& mounted);

}  // namespace ooc::mount
