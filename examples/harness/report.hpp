// What a run prints: seconds of every phase, traffic, the checked result, on request as JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "harness/ranks.hpp"
#include "oocarray/runtime.hpp"

namespace examples {

/// Faults that waited for the disk and bytes moved since the process began: counted by the runtime
/// or, without one, by the operating system.
struct traffic {
  std::uint64_t faults = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
};
/// Summed over the ranks, which must all ask.
traffic traffic_now(const ooc::runtime* rt, const ranks& all);

class report {
 public:
  /// `rt` may be null (rivals); otherwise it must live until finish(), as `all` must.
  report(std::string program, bool json, const ooc::runtime* rt, const ranks& all);
  ~report();

  /// Runs f and notes how long it took until all ranks had ended it, and what it moved on all.
  template <class F>
  auto phase(const std::string& name, F&& f) {
    const traffic before = traffic_now(runtime_, ranks_);
    const auto start = std::chrono::steady_clock::now();
    const auto note = [&] {
      ranks_.barrier();
      note_phase(name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start), before);
    };
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      std::forward<F>(f)();
      note();
    } else {
      auto result = std::forward<F>(f)();
      note();
      return result;
    }
  }

  void set(const std::string& key, double value);
  void set(const std::string& key, std::uint64_t value);
  void set(const std::string& key, const std::string& value);

  /// Bytes of arrays that the named phase used: gives its MB/s (10^6 bytes a second).
  void rate(const std::string& phase, double bytes);

  /// Prints the outcome and returns the exit status: 0, or 1 where the result is wrong.
  int finish(bool right);
  /// The same where nothing was computed that could be right or wrong.
  int finish_without_result();

 private:
  void note_phase(const std::string& name, std::chrono::duration<double> seconds, const traffic& before);

  struct state;
  std::unique_ptr<state> state_;
  const ooc::runtime* runtime_;
  const ranks& ranks_;
};

}  // namespace examples
