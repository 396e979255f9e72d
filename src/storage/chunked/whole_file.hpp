// A file that is written whole: whoever opens it by its name has all that one writer wrote.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <system_error>

namespace ooc::storage {

/// The file has these bytes when this returns, in a new file that takes the name; folders above it are made where they
/// are missing.  On failure the file is as it was.  The bytes are durable when the file system has been synced; until
/// then a crash of the machine leaves these or those that were there before, and, where there was no file, perhaps one
/// that is empty or cut short, on file systems that write names before bytes.
///
/// What is being written lies beside it under a name of its own, ".NAME.oocarray", with a lock: of several writers one
/// waits for the other, and what one left that died is written over.
///
/// Owner, group and mode stay what they are, as far as this process may say so.  A file that was not there gets those
/// of the open file `like`, without the right to execute it, or, for -1, those of any new file.
std::error_code write_whole_file(const std::string& path, std::span<const std::byte> bytes, int like = -1);
/// The same with what `write` writes to the new file.  No other writer gives the file its name meanwhile.
std::error_code write_whole_file(const std::string& path, const std::function<std::error_code(int fd)>& write,
                                 int like = -1);

/// Files below `folder`, which may not be there, that have been written by now become durable.  `before`: a file on
/// `device` that has been open since before they were written, which hears of failures since.
std::error_code sync_files_below(const std::string& folder, int before, dev_t device);

}  // namespace ooc::storage
