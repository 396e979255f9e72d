// The touches of a program, in its order, which `oocbench policy` replays.
//
// Touches of the same few grains one after the other are one access: nobody could see them.  Everything here is the
// same at each run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench::policy {

/// An array of the program.
struct array_shape {
  std::uint64_t bytes = 0;
  std::uint64_t block_bytes = 0;
  bool in_grains = true;  ///< blocks may come in parts
  std::uint64_t element_bytes = 8;
};

struct access {
  std::uint64_t place;    ///< byte of the array
  std::uint32_t work_ns;  ///< for which the program ran since the access before
  std::uint16_t array;
  bool write;
};

struct access_trace {
  std::string name;
  std::uint64_t budget = 0;
  std::uint64_t unit = 4096;  ///< bytes of what the rivals bring in
  /// Units that the rivals' memory holds: a grain costs a 16th more than its bytes.
  std::uint64_t memory() const { return budget / (unit == 4096 ? unit * 17 / 16 : unit); }
  std::vector<array_shape> arrays;
  std::vector<access> accesses;
};

/// The generated ones.  `budget`: bytes; arrays have the sizes that `oocbench patterns` gives them, or `lru`.
std::vector<access_trace> generated_traces(std::uint64_t budget);

/// The touches of a recording (OOC_TRACE).  Throws usage_error; std::runtime_error where it has none.
access_trace recorded_trace(const std::string& file);

}  // namespace bench::policy
