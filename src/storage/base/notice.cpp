#include "storage/base/notice.hpp"

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <ctime>
#include <memory>

#include "storage/base/line_limit.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::storage {

namespace {

/// On the thread of the notices: to the program's logger, if it has one.
class forwarding_sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& m) override {
    if (const auto own = spdlog::get("oocarray"))
      own->log(m.level, "{}", spdlog::string_view_t(m.payload));
    else
      stderr_.log(m);
  }
  void flush_() override {}

 private:
  spdlog::sinks::stderr_sink_mt stderr_;
};

struct notices {
  std::shared_ptr<spdlog::details::thread_pool> thread = std::make_shared<spdlog::details::thread_pool>(64, 1);
  std::shared_ptr<spdlog::async_logger> log = std::make_shared<spdlog::async_logger>(
      "oocarray", std::make_shared<forwarding_sink>(), thread, spdlog::async_overflow_policy::overrun_oldest);
};

void say(spdlog::string_view_t line) noexcept {
  try {
    // Never destroyed: static objects of the program may still wait for servers when it ends.
    static const notices* const n = new notices;
    n->log->warn("{}", line);
  } catch (...) {  // without memory or threads there is nobody to say it
  }
}

}  // namespace

void notice(const std::string& line) noexcept { say(line); }

void notice_of_many(const std::string& line) noexcept {
  static mutex one_at_a_time;
  static line_limit limit(20, std::chrono::seconds(10));
  line_limit::place place{};
  {
    const lock_guard lock(one_at_a_time);
    place = limit.next(line_limit::clock::now());
  }
  if (place == line_limit::place::left_out) return;
  notice(line);
  if (place == line_limit::place::last_shown) say("more of such lines are left out, for at most 10 s");
}

std::string seconds_text(std::chrono::steady_clock::duration t) {
  char text[32];
  const double s = std::chrono::duration<double>(t).count();
  std::snprintf(text, sizeof text, s < 1000 ? "%.3g s" : "%.0f s", s);
  return text;
}

std::string until_text(std::chrono::steady_clock::time_point end, std::chrono::steady_clock::duration whole) {
  const auto wall = std::chrono::system_clock::to_time_t(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(end - std::chrono::steady_clock::now()));
  std::tm local{};
  ::localtime_r(&wall, &local);
  char text[32];
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return std::string("until ") + text + " (" + seconds_text(whole) + ")";
}

}  // namespace ooc::storage
