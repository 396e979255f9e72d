// Progress of a phase on stderr: share done, rate and time left.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace examples {

class progress {
 public:
  /// `total` steps lie ahead.  Draws nothing if `quiet`, or if stderr is not a terminal.
  progress(const std::string& label, std::uint64_t total, bool quiet);
  /// Wipes the bar.
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// `n` steps are done.  Cheap enough for every row of a matrix.
  void step(std::uint64_t n = 1);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace examples
