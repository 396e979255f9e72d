#include "storage/base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>

namespace ooc::detail {
namespace {

std::atomic<bool> plainly{false};

void print(std::string_view what) noexcept {
  std::fprintf(stderr, "oocarray: %.*s\n", static_cast<int>(what.size()), what.data());
}

}  // namespace

void log_plainly() noexcept { plainly = true; }

void log_error(std::string_view what) noexcept {
  if (plainly) return print(what);
  try {
    std::shared_ptr<spdlog::logger> log = spdlog::get("oocarray");
    if (!log) log = std::make_shared<spdlog::logger>("oocarray", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    log->error("{}", what);
  } catch (...) {
    print(what);
  }
}

}  // namespace ooc::detail
