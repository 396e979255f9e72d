// A file that is written whole: whoever opens it by its name has all that one writer wrote.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <system_error>

namespace ooc::storage {

/// The file has these bytes when this returns, in a new file that takes the name; folders above it are made where they
/// are missing.  On failure the file is as it was.  The bytes are durable when the file system has been synced.
///
/// What is being written lies beside it under a name of its own, ".NAME.oocarray", with a lock: of several writers one
/// waits for the other, and what one left that died is written over.
std::error_code write_whole_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace ooc::storage
