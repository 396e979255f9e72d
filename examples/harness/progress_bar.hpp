// Progress of a phase on stderr: share done, rate and time left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "progress/progress.hpp"  // of tools/

namespace examples {

class progress_bar {
 public:
  /// `total` steps lie ahead, each of which uses `bytes` bytes of the arrays.  A quiet one draws
  /// nothing.
  progress_bar(const std::string& label, std::uint64_t total, std::uint64_t bytes, bool quiet);
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  /// `n` steps are done.  Cheap enough for every row of a matrix.
  void step(std::uint64_t n = 1) {
    if (bar_) bar_->advance(n * bytes_);
  }
  /// Wipes the line from a terminal, so that other output may follow; it is drawn again later.
  void make_way() const;

 private:
  std::uint64_t bytes_;
  std::optional<ooc::progress> bar_;
};

}  // namespace examples
