// Locks of files across processes: who changes a size, and who writes through a cache.
//
// They are bytes of one lock file, held by the open file description of their guard: they go with
// the guard or with the process.  Any thread may call.
#pragma once

#include <filesystem>
#include <memory>

#include "storage/base/file_descriptor.hpp"
#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

/// A lock file without a name, which is opened as /proc/self/fd/N.  Throws io_error.
file_descriptor locks_of_one_process();

/// Waits until nobody holds the lock of file `id` in the lock file `locks` (made if missing) and
/// takes it.  It is held until the guard goes or the process dies.  Throws io_error, ETIMEDOUT
/// after 60 s.
std::shared_ptr<void> lock_size(const std::filesystem::path& locks, file_id id);

/// Says that the caller writes the file through a cache of whole blocks: alone, or, `together`,
/// beside others that send only what they changed.  Does not wait: an empty pointer where somebody
/// else's claim is in the way.  Throws io_error.
std::shared_ptr<void> claim_writer(const std::filesystem::path& locks, file_id id, bool together);

}  // namespace ooc::storage
