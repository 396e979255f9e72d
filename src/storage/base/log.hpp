// Messages of the library where it cannot throw: one line on stderr, through spdlog.
#pragma once

#include <string_view>

namespace ooc::detail {

/// Writes to the logger "oocarray" (a program may register its own), else to stderr.  Never throws.
/// Not for fault handlers.
void log_error(std::string_view what) noexcept;

/// From now on log_error() writes to stderr itself: exit() has begun, and spdlog's static objects may be
/// gone.
void log_plainly() noexcept;

}  // namespace ooc::detail
