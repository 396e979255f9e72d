// What the environment asks a runtime to say of itself: OOC_REPORT, a page at its end, and OOC_PROGRESS, a line while
// it runs.
//
// Owner: the pager, which it asks.  Threads: write() by any; the line comes from a thread of its own.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/policy/usage_report.hpp"
#include "storage/base/log.hpp"
#include "storage/base/ticker.hpp"

namespace ooc::detail {

class run_report {
 public:
  struct state {
    run_usage run;
    std::vector<array_usage> arrays;
  };

  /// Null where the environment asks for nothing.
  static std::unique_ptr<run_report> wanted(std::function<state()> look) {
    const auto said = [](const char* name) {
      const char* const value = std::getenv(name);
      return std::string(value != nullptr ? value : "");
    };
    const std::string report = said("OOC_REPORT"), line = said("OOC_PROGRESS");
    const int seconds = std::atoi(line.c_str());
    if (report.empty() && seconds <= 0) return nullptr;
    return std::unique_ptr<run_report>(
        new run_report(std::move(look), report, std::chrono::seconds(std::max(seconds, 0))));
  }
  ~run_report() { write(); }

  /// Ends the line, and writes the report, once.
  void write() noexcept {
    try {
      if (written_.exchange(true)) return;
      line_.stop();
      if (shown_ && on_terminal_) std::fputc('\n', stderr);
      if (to_.empty()) return;
      const state now = look_();
      const std::string text = usage_report(now.run, now.arrays);
      if (to_ == "1") return static_cast<void>(std::fputs(text.c_str(), stderr));
      std::FILE* const file = std::fopen(to_.c_str(), "a");
      const bool good = file != nullptr && std::fputs(text.c_str(), file) >= 0;
      if ((file != nullptr && std::fclose(file) != 0) || !good)
        log_error("OOC_REPORT: '" + to_ + "' cannot be written: name a file in a folder that is there, or give 1");
    } catch (const std::exception& e) {
      log_error(std::string("OOC_REPORT: ") + e.what());
    }
  }

 private:
  run_report(std::function<state()> look, std::string to, std::chrono::seconds every)
      : look_(std::move(look)), to_(std::move(to)), every_(every), line_([this] { return show(); }) {
    if (every.count() == 0) return;
    before_ = look_();
    line_.wake();
  }

  ticker::clock::time_point show() {
    try {
      state now = look_();
      if (now.run.seconds - before_.run.seconds >= 0.5) {  // not when it is woken first
        const std::string text = progress_line(before_.run, now.run, before_.arrays, now.arrays);
        std::fprintf(stderr, on_terminal_ ? "\r%s\x1b[K" : "%s\n", text.c_str());
        shown_ = true;
        before_ = std::move(now);
      }
    } catch (const std::bad_alloc&) {  // the next one, perhaps
    }
    return ticker::clock::now() + every_;
  }

  const std::function<state()> look_;
  const std::string to_;  ///< "1": stderr; else a file; empty: there is no report
  const std::chrono::seconds every_;
  const bool on_terminal_ = ::isatty(STDERR_FILENO) != 0;
  state before_;
  bool shown_ = false;
  std::atomic<bool> written_{false};
  ticker line_;
};

}  // namespace ooc::detail
