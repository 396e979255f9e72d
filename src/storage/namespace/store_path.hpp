// Paths inside a store: "plate/a".  See metadata_service.hpp for what is allowed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ooc::storage {

inline constexpr std::size_t max_name = 255;   ///< bytes in one component
inline constexpr std::size_t max_path = 4096;  ///< bytes in a whole path

/// The components of `path`; none for the root.  Throws usage_error (EINVAL, ENAMETOOLONG).
std::vector<std::string> split_path(std::string_view path);

/// "a/b" from {"a", "b"}: no leading, trailing or doubled slashes; "" for the root.
std::string join_path(const std::vector<std::string>& components);

}  // namespace ooc::storage
