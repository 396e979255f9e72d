// What a run prints: seconds of every phase, traffic, the checked result, on request as JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "oocarray/runtime.hpp"

namespace examples {

/// Faults that waited for the disk and bytes moved since the process began: counted by the runtime
/// or, without one, by the operating system.
struct traffic {
  std::uint64_t faults = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
};
traffic traffic_now(const ooc::runtime* rt);

class report {
 public:
  /// `rt` may be null (rivals); otherwise it must live until finish().
  report(std::string program, bool json, const ooc::runtime* rt);
  ~report();

  /// Runs f and notes how long it took and what it moved.
  template <class F>
  decltype(auto) phase(const std::string& name, F&& f) {
    struct scope {
      report& r;
      const std::string& name;
      std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
      traffic before = traffic_now(r.runtime_);
      ~scope() {
        r.note_phase(name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start),
                     before);
      }
    } timed{*this, name};
    return std::forward<F>(f)();
  }

  void set(const std::string& key, double value);
  void set(const std::string& key, std::uint64_t value);
  void set(const std::string& key, const std::string& value);

  /// Bytes of arrays that the named phase used: gives its MB/s (10^6 bytes a second).
  void rate(const std::string& phase, double bytes);

  /// Prints the outcome and returns the exit status: 0, or 1 where the result is wrong.
  int finish(bool right);

 private:
  void note_phase(const std::string& name, std::chrono::duration<double> seconds,
                  const traffic& before) noexcept;

  struct state;
  std::unique_ptr<state> state_;
  const ooc::runtime* runtime_;
};

}  // namespace examples
