// A server's folder is used by one server at a time, and by nobody but its user.
#pragma once

#include <filesystem>
#include <string>

#include "storage/base/file_descriptor.hpp"

namespace ooc::servers {

/// Locks the folder for as long as the result lives.  `owner` says what the other one would be, as
/// "I/O server".  Throws usage_error (errc::busy) where one has it, io_error where it cannot be
/// opened or locked.
storage::file_descriptor lock_folder(const std::filesystem::path& folder, const std::string& owner);

/// Takes all rights to the folder and to what is in it from group and others: who may see what in the store is
/// for the servers to say.  What they make later nobody else may use either (run_main sets the umask).  The
/// folder goes last, so one that was cut off is taken up again.  Throws usage_error (EPERM) where the folder, or
/// something in it, belongs to another user.
void close_to_others(const std::filesystem::path& folder);

}  // namespace ooc::servers
