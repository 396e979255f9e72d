// Entries of a store for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "storage/service/metadata_service.hpp"

namespace ooc::tool {

/// "f8 1000x500", "4096 bytes", "folder".
std::string describe(const storage::entry& e);

/// "drwxr-xr-x".
std::string mode_text(const storage::entry& e);

/// "2024-05-01 12:00:00 UTC".
std::string time_text(std::int64_t ns);

/// A name as it can be shown: control characters, which a terminal would obey, as "\x1b", and
/// backslashes doubled where there are any.  Valid UTF-8 stays.
std::string printable(const std::string& name);

/// "1000x500".
std::string shape_text(const std::vector<std::uint64_t>& shape);

nlohmann::json to_json(const storage::entry& e);

/// Prints with names that are not UTF-8 made printable.
void print(const nlohmann::json& j);

}  // namespace ooc::tool
