#include "runtime/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>

#include "runtime/process_end.hpp"

namespace ooc::detail {

void log_error(std::string_view what) noexcept {
  if (process_end::begun()) {  // spdlog's own static objects may be gone
    std::fprintf(stderr, "oocarray: %.*s\n", static_cast<int>(what.size()), what.data());
    return;
  }
  try {
    std::shared_ptr<spdlog::logger> log = spdlog::get("oocarray");
    if (!log)
      log = std::make_shared<spdlog::logger>("oocarray",
                                             std::make_shared<spdlog::sinks::stderr_sink_mt>());
    log->error("{}", what);
  } catch (...) {
    std::fprintf(stderr, "oocarray: %.*s\n", static_cast<int>(what.size()), what.data());
  }
}

}  // namespace ooc::detail
