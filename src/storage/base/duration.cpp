#include "storage/base/duration.hpp"

#include <charconv>
#include <cstdint>

#include "oocarray/error.hpp"

namespace ooc::storage {

std::chrono::milliseconds parse_duration(std::string_view text, const std::string& what) {
  double number = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(r.ptr, static_cast<std::size_t>(text.data() + text.size() - r.ptr));
  const double factor = unit == "ms"                ? 1
                        : unit == "s" || unit == "" ? 1000
                        : unit == "min"             ? 60'000
                        : unit == "h"               ? 3'600'000
                                                    : 0;
  if (r.ec != std::errc() || factor == 0 || !(number >= 0) || number * factor > 1e12)
    throw usage_error(errc::invalid_request,
                      what + " is '" + std::string(text) + "'; write for instance 10s, 1500ms or 2min");
  return std::chrono::milliseconds(static_cast<std::int64_t>(number * factor));
}

}  // namespace ooc::storage
