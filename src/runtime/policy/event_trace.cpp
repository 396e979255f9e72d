#include "runtime/policy/event_trace.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "oocarray/error.hpp"

namespace ooc::detail {

namespace {

constexpr std::size_t ring_events = 1 << 16;

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw usage_error(errc::invalid_request, "the trace '" + file + "' " + why);
}

// Not through a stream: the thread that touches next may hold its lock.
void say(const std::string& text) noexcept {
  if (::write(2, text.data(), text.size()) < 0) { /* nobody to tell */
  }
}

}  // namespace

bool trace_ring::put(const trace_event& e) noexcept {
  std::uint64_t at = first_free_.load(std::memory_order_relaxed);
  do {  // others may have come past `at`, and the exchange then fails
    if (at >= first_.load(std::memory_order_acquire) + slots_.size()) return false;
  } while (!first_free_.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel, std::memory_order_relaxed));
  slot& s = slots_[at % slots_.size()];
  s.event = e;
  s.filled.store(at + 1, std::memory_order_release);
  return true;
}

// An event that is being put ends it: the next call finds it.
std::size_t trace_ring::take(std::span<trace_event> out) noexcept {
  std::size_t n = 0;
  std::uint64_t at = first_.load(std::memory_order_relaxed);
  for (; n < out.size(); ++at) {
    const slot& s = slots_[at % slots_.size()];
    if (s.filled.load(std::memory_order_acquire) != at + 1) break;
    out[n++] = s.event;
  }
  first_.store(at, std::memory_order_release);
  return n;
}

struct event_trace::recording {
  explicit recording(std::string name) : file(std::move(name)) {}

  /// Nothing more after a failure: the file ends there.
  void append(const void* bytes, std::size_t n) noexcept {
    for (const char* at = static_cast<const char*>(bytes); n > 0 && failed == 0;) {
      const ssize_t done = ::write(to, at, n);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        failed = done < 0 ? errno : EIO;
        return;
      }
      at += done;
      n -= static_cast<std::size_t>(done);
    }
  }

  const std::string file;
  int to = -1;
  int failed = 0;  ///< the errno with which it could not be written
  trace_ring ring{ring_events};
  std::array<trace_event, 4096> taken;
  std::atomic<std::uint64_t> lost{0};  ///< since the file was last told
  std::uint64_t lost_in_all = 0;
  std::uint16_t segments = 0;
};

event_trace::event_trace() noexcept = default;
event_trace::~event_trace() { finish(); }

void event_trace::record(std::string file, std::uint64_t budget) {
  if (const auto at = file.find("%p"); at != std::string::npos) file.replace(at, 2, std::to_string(::getpid()));
  auto r = std::make_unique<recording>(std::move(file));
  r->to = ::open(r->file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (r->to < 0) refuse(r->file, std::string("cannot be made (OOC_TRACE): ") + std::strerror(errno));
  const trace_header h;
  r->append(&h, sizeof h);
  if (r->failed != 0) {
    ::close(r->to);
    refuse(r->file, std::string("cannot be written (OOC_TRACE): ") + std::strerror(r->failed));
  }
  to_ = std::move(r);
  note(traced::began, 0, budget);
}

void event_trace::put(const trace_event& e) noexcept {
  if (!to_->ring.put(e)) to_->lost.fetch_add(1, std::memory_order_relaxed);
}

std::uint16_t event_trace::number_of_next() noexcept {
  if (!to_) return 0;
  if (to_->segments < 0xffff) ++to_->segments;  // those after it have its number
  return to_->segments;
}

bool event_trace::fills() const noexcept { return to_ && to_->ring.is_half_full(); }

// Says nothing: whoever reads standard error may be waiting for a touch, which waits for this thread.
void event_trace::drain() noexcept {
  if (!to_) return;
  recording& r = *to_;
  for (std::size_t n = r.taken.size(); n == r.taken.size();) {
    n = r.ring.take(r.taken);
    r.append(r.taken.data(), n * sizeof(trace_event));
  }
  const std::uint64_t lost = r.lost.exchange(0, std::memory_order_relaxed);
  r.lost_in_all += lost;
  const trace_event missing{lost, 0, 0, traced::lost};
  if (lost > 0) r.append(&missing, sizeof missing);
}

void event_trace::finish() noexcept {
  if (!to_) return;
  drain();
  if (to_->lost_in_all > 0)
    say("oocarray: the trace '" + to_->file + "' lacks " + std::to_string(to_->lost_in_all) +
        " events, which came faster than they could be written\n");
  if (::close(to_->to) != 0 && to_->failed == 0) to_->failed = errno;
  if (to_->failed != 0)
    say("oocarray: the trace '" + to_->file + "' could not be written to its end: " + std::strerror(to_->failed) +
        "\n");
  to_.reset();
}

std::vector<trace_event> read_trace(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  trace_header h;
  if (!in || !in.read(reinterpret_cast<char*>(&h), sizeof h) || h.magic != trace_header::name)
    refuse(file, "cannot be read, or is no recording of OOC_TRACE");
  if (h.version != trace_header::latest || h.event_bytes != sizeof(trace_event))
    refuse(file, "is of version " + std::to_string(h.version) + ", and this program reads version " +
                     std::to_string(trace_header::latest) + ": record it anew");
  std::vector<trace_event> events;
  std::vector<trace_event> some(1 << 16);
  do {
    in.read(reinterpret_cast<char*>(some.data()), static_cast<std::streamsize>(some.size() * sizeof(trace_event)));
    const auto bytes = static_cast<std::size_t>(in.gcount());
    if (bytes % sizeof(trace_event) != 0) refuse(file, "ends within an event: its recording did not end");
    events.insert(events.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(bytes / sizeof(trace_event)));
  } while (in);
  return events;
}

}  // namespace ooc::detail
