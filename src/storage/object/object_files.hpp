// The files of stripe objects as files: their length, their names.  Functions return an errno, 0 for success.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ooc::storage {

/// Makes a file longer, with its space if `reserved`.  `from`: where the new part begins.
int extend_file(int fd, std::uint64_t from, std::uint64_t bytes, bool reserved);
/// The names in a folder become durable.
int flush_folder(const std::filesystem::path& path);

}  // namespace ooc::storage
