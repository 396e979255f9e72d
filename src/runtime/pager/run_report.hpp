// What a runtime says of itself: its counters, a page (runtime::report(), and at its end where OOC_REPORT asks for it),
// and, where OOC_PROGRESS does, a line while it runs.
//
// Owner: the pager.  Threads: any; the line comes from a thread of its own.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "runtime/blocks/userfault_mapping.hpp"
#include "runtime/pager/pager_state.hpp"
#include "runtime/pager/signals.hpp"
#include "runtime/policy/usage_report.hpp"
#include "storage/base/log.hpp"
#include "storage/base/ticker.hpp"

namespace ooc::detail {

class run_report {
 public:
  explicit run_report(pager_state& s)
      : state_(s), to_(said("OOC_REPORT")), every_(std::atoi(said("OOC_PROGRESS").c_str())) {
    if (every_.count() <= 0) return;
    before_ = look();
    line_.wake();
  }
  ~run_report() { end(); }
  run_report(const run_report&) = delete;
  run_report& operator=(const run_report&) = delete;

  runtime_stats stats() const {
    runtime_stats r = state_.memory.all_counts.now();
    if (const auto* m = dynamic_cast<const userfault_mapping*>(&state_.memory.mapping())) {
      r.userfaultfd = 1;
      r.kernel_access = m->serves_system_calls();
    }
    guarded_lock g(state_.mutex());
    r.budget_bytes = state_.memory.pool().budget();
    r.resident_bytes = state_.memory.pool().used();
    return r;
  }
  std::string text() const {
    const moment now = look();
    return usage_report(now.run, now.arrays);
  }

  /// Ends the line, and writes the page that the environment asks for, once.
  void end() const noexcept {
    try {
      if (ended_.exchange(true)) return;
      line_.stop();
      if (shown_ && on_terminal_) std::fputc('\n', stderr);
      if (to_.empty()) return;
      if (to_ == "1") return static_cast<void>(std::fputs(text().c_str(), stderr));
      std::FILE* const file = std::fopen(to_.c_str(), "a");
      const bool good = file != nullptr && std::fputs(text().c_str(), file) >= 0;
      if ((file != nullptr && std::fclose(file) != 0) || !good)
        log_error("OOC_REPORT: '" + to_ + "' cannot be written: name a file in a folder that is there, or give 1");
    } catch (const std::exception& e) {
      log_error(std::string("OOC_REPORT: ") + e.what());
    }
  }

 private:
  struct moment {
    run_usage run;
    std::vector<array_usage> arrays;
  };

  static std::string said(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
  }
  moment look() const {
    moment m{{std::chrono::duration<double>(ticker::clock::now() - made_).count(), stats()}, {}};
    const guarded_lock g(state_.mutex());
    m.arrays = state_.usage.with(state_.segments);
    return m;
  }
  ticker::clock::time_point show() {
    try {
      moment now = look();
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

  pager_state& state_;
  const std::string to_;  ///< "1": stderr; else a file; empty: there is no page at the end
  const std::chrono::seconds every_;
  const ticker::clock::time_point made_ = ticker::clock::now();
  const bool on_terminal_ = ::isatty(STDERR_FILENO) != 0;
  moment before_;
  bool shown_ = false;
  mutable std::atomic<bool> ended_{false};
  mutable ticker line_{[this] { return show(); }};
};

}  // namespace ooc::detail
