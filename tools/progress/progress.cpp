#include "progress/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace ooc {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 500ms;  // shorter work prints nothing
constexpr auto on_terminal = 100ms;
constexpr auto elsewhere = 5s;
constexpr int bar_width = 24;

}  // namespace

std::string human_bytes(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t u = 0;
  while (bytes >= 1024 && u + 1 < units.size()) {
    bytes /= 1024;
    ++u;
  }
  char text[32];
  std::snprintf(text, sizeof text, u == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
  return text;
}

std::string human_seconds(double seconds) {
  const auto s = static_cast<unsigned long long>(std::min(seconds + 0.5, 3.6e8));
  char text[48];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%llu:%02llu", s / 60, s % 60);
  return text;
}

progress::progress(std::string label, std::uint64_t total, unit u, std::FILE* out,
                   std::function<clock::time_point()> now)
    : label_(std::move(label)),
      total_(total),
      unit_(u),
      out_(out),
      terminal_(::isatty(::fileno(out)) == 1),
      now_(std::move(now)),
      next_(
          (start_ + (terminal_ ? clock::duration(patience) : clock::duration(elsewhere))).time_since_epoch().count()) {}

progress::~progress() {
  if (terminal_ && drawn_ && !finished_) std::fputc('\n', out_);
}

void progress::advance(std::uint64_t n) {
  done_.fetch_add(n, std::memory_order_relaxed);
  const auto now = now_();
  auto due = next_.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < due) return;
  const clock::duration pause = terminal_ ? clock::duration(on_terminal) : clock::duration(elsewhere);
  if (next_.compare_exchange_strong(due, (now + pause).time_since_epoch().count())) draw(now, false);
}

void progress::finish() {
  const auto now = now_();
  if (!drawn_ && now - start_ < (terminal_ ? clock::duration(patience) : clock::duration(elsewhere))) finished_ = true;
  if (finished_) return;
  draw(now, true);
  finished_ = true;
}

std::string progress::line(clock::time_point now, bool last) const {
  const std::uint64_t done = done_.load(std::memory_order_relaxed);
  const double part = total_ == 0 ? 1 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const double took = std::max(1e-9, std::chrono::duration<double>(now - start_).count());
  const double rate = static_cast<double>(done) / took;

  std::string s = label_ + " ";
  if (terminal_) {
    const int full = static_cast<int>(part * bar_width);
    s += '[' + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(bar_width - full), '.') + "] ";
  }
  char text[80];
  std::snprintf(text, sizeof text, "%3.0f %%  ", part * 100);
  s += text;
  if (unit_ == unit::bytes) {
    s += human_bytes(static_cast<double>(done)) + " of " + human_bytes(static_cast<double>(total_)) + "  " +
         human_bytes(rate) + "/s";
  } else {
    std::snprintf(text, sizeof text, "%llu of %llu  %.1f/s", static_cast<unsigned long long>(done),
                  static_cast<unsigned long long>(total_), rate);
    s += text;
  }
  if (last || done >= total_)
    s += "  took " + human_seconds(took);
  else if (done != 0)
    s += "  " + human_seconds(static_cast<double>(total_ - done) / rate) + " left";
  return s;
}

void progress::draw(clock::time_point now, bool last) {
  const std::lock_guard lock(drawing_);
  drawn_ = true;
  const std::string text = line(now, last);
  if (terminal_)
    std::fprintf(out_, "\r%s\x1b[K%s", text.c_str(), last ? "\n" : "");
  else
    std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

}  // namespace ooc
