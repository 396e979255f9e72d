// Folders on network file systems, where the processes of several hosts cannot share a local store: SQLite's
// write-ahead log and the locks of stripe objects need memory and locks that all of them see.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ooc::storage {

/// "NFS", "Lustre", ...: the network file system with this magic number of statfs(2); empty: none that is known.
std::string_view network_file_system(long type) noexcept;
/// The same of a file system of FUSE, by its type in the table of mounts ("fuse.sshfs").
std::string_view network_file_system(std::string_view fuse_type) noexcept;

/// Of the file system that `folder` is on, or will be on when it has been made.
std::string network_file_system_of(const std::filesystem::path& folder);

}  // namespace ooc::storage
