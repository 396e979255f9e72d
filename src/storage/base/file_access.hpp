// Permissions of files in the file system, as a store that several users share needs them.
//
// Any thread may call.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

namespace ooc::storage {

/// The umask of this process.
std::uint32_t process_umask();

/// The groups of this process beside its effective one.
std::vector<std::uint32_t> further_groups();

/// Why the effective user may not do this (R_OK, W_OK, X_OK) with what is at `path`; EROFS on a read-only mount.
/// Empty: he may.
std::error_code forbidden(const std::filesystem::path& path, int access);

/// Gives what is at `path` this mode, owner and group (keep: ~0, also where the caller may not give it away).
/// At no moment has it rights that neither its present nor the new mode grants.  Where its group stays another
/// one, that group is granted no more than everybody.  Returns an errno.
int set_access(const std::filesystem::path& path, std::uint32_t mode, std::uint32_t owner, std::uint32_t group);
/// The same for an open file.
int set_access(int fd, std::uint32_t mode, std::uint32_t owner, std::uint32_t group);

/// Makes a folder with the mode and group of the folder `like`, whatever the umask: who may work there may work
/// here.  It is there under its name only when it has them.  One that is there is left as it is.  Returns an
/// errno.
int make_folder_like(const std::filesystem::path& folder, const std::filesystem::path& like);

}  // namespace ooc::storage
