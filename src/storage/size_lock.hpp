// The lock under which the size of a file changes, across threads and processes.
#pragma once

#include <filesystem>
#include <memory>

#include "storage/io_service.hpp"

namespace ooc::storage {

/// Waits until nobody holds the lock of file `id` in the lock file `locks` (made if missing) and
/// takes it.  It is held until the guard goes or the process dies.  Throws io_error, ETIMEDOUT
/// after 60 s.
std::shared_ptr<void> lock_size(const std::filesystem::path& locks, file_id id);

}  // namespace ooc::storage
