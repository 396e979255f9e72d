// A server's folder is used by one server at a time.
#pragma once

#include <filesystem>
#include <string>

#include "storage/base/file_descriptor.hpp"

namespace ooc::servers {

/// Locks the folder for as long as the result lives.  `owner` says what the other one would be, as
/// "I/O server".  Throws usage_error (errc::busy) where one has it, io_error where it cannot be
/// opened or locked.
storage::file_descriptor lock_folder(const std::filesystem::path& folder, const std::string& owner);

}  // namespace ooc::servers
