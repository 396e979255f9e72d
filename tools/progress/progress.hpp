// How far a long piece of work is: rate and time left, on stderr.
//
//     ooc::progress bar("import", total_bytes);
//     while (...) { ...; bar.advance(n); }
//     bar.finish();
//
// On a terminal one line is drawn over and over, at most ten times a second; elsewhere (a log file)
// a new line is printed every five seconds and at the end.  Work that takes less than half a second
// prints nothing.  advance() may be called from any threads; it is cheap enough for every block.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>

namespace ooc {

/// "1.5 GiB".
std::string human_bytes(double bytes);

/// "0:07", "1:02:03".
std::string human_seconds(double seconds);

class progress {
 public:
  enum class unit { bytes, items };

  using clock = std::chrono::steady_clock;

  /// `total` may be 0 (nothing to do).  `out` must outlive the object.  `now` is the time; advance() calls
  /// it from any thread.
  progress(std::string label, std::uint64_t total, unit u = unit::bytes, std::FILE* out = stderr,
           std::function<clock::time_point()> now = clock::now);
  /// An object that was not finished leaves its line as it stands.
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void advance(std::uint64_t n);
  /// Prints the last line, with the time that it all took.
  void finish();

 private:
  std::string line(clock::time_point now, bool last) const;
  void draw(clock::time_point now, bool last);

  const std::string label_;
  const std::uint64_t total_;
  const unit unit_;
  std::FILE* const out_;
  const bool terminal_;
  const std::function<clock::time_point()> now_;
  const clock::time_point start_ = now_();

  std::atomic<std::uint64_t> done_{0};
  std::atomic<clock::rep> next_;  // when to draw again, on the clock
  std::mutex drawing_;
  bool drawn_ = false;
  bool finished_ = false;
};

}  // namespace ooc
