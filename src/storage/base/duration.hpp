// Times as people write them, in URLs and environment variables.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace ooc::storage {

/// "10s", "1500ms", "2min", "1h".  Throws usage_error (errc::invalid_request) that names `what`.
std::chrono::milliseconds parse_duration(std::string_view text, const std::string& what);

}  // namespace ooc::storage
