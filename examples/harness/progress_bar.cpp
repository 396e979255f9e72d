#include "harness/progress_bar.hpp"

#include <unistd.h>

#include <cstdio>

namespace examples {

progress_bar::progress_bar(const std::string& label, std::uint64_t total, std::uint64_t bytes, bool quiet)
    : bytes_(bytes) {
  if (!quiet) bar_.emplace(label, total * bytes);
}

progress_bar::~progress_bar() {
  if (bar_) bar_->finish();
}

void progress_bar::make_way() const {
  if (bar_ && ::isatty(STDERR_FILENO)) std::fputs("\r\033[K", stderr);
}

}  // namespace examples
