// A server's folder is used by one server at a time, and by nobody but its user.
#pragma once

#include <filesystem>
#include <string>

#include "storage/base/file_descriptor.hpp"

namespace ooc::servers {

/// Makes the folder where there is none, and locks it for as long as the result lives.  `owner` says what the other one
/// would be, as "I/O server".  Throws usage_error (errc::busy) where one has it, io_error where it cannot be made,
/// opened or locked.
storage::file_descriptor lock_folder(const std::filesystem::path& folder, const std::string& owner);

/// Throws usage_error (errc::not_a_store) where a folder that is to become that of an `owner` holds anything but
/// `unfinished`, which one that was cut off has left.
void refuse_strangers(const std::filesystem::path& folder, const std::string& owner,
                      const std::string& unfinished = {});

/// Takes all rights to the folder and to what is in it from group and others: who may see what in the store is
/// for the servers to say.  What they make later nobody else may use either (run_main sets the umask).  The
/// folder goes last, so one that was cut off is taken up again.  Throws usage_error (EPERM) where the folder, or
/// something in it, belongs to another user.
void close_to_others(const std::filesystem::path& folder);

}  // namespace ooc::servers
