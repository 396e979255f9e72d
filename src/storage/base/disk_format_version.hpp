// The version of what stores have on disk; docs/disk-format.md describes it.
#pragma once

#include <cstdint>
#include <string>

namespace ooc::storage {

/// Of the files that say whose a folder is, and of the stripe objects.
inline constexpr int disk_format_version = 2;

/// Throws that `what` is of another version of the format, and what helps.
[[noreturn]] void refuse_version(const std::string& what, std::int64_t found, std::int64_t known);

}  // namespace ooc::storage
