// What algorithms over matrices share: how Eigen's work is divided between threads, and the memory that it takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace ooc::detail {

/// Parts of a matrix that threads take in turn, for each thread: who is late has less to do.
inline constexpr std::size_t parts_of_thread = 2;

/// Eigen packs parts of its operands, for each thread at most 4 MiB, of a budget of `memory` at most an eighth in all.
inline std::uint64_t packing_bytes(unsigned threads, std::uint64_t operand_bytes, std::uint64_t memory) {
  constexpr std::uint64_t most = 4 << 20;
  return threads * std::min({most, operand_bytes, memory / (8 * threads)});
}

/// The least memory that leaves `rest` bytes beside that.
inline std::uint64_t least_with_packing(unsigned threads, std::uint64_t operand_bytes, std::uint64_t rest) {
  return std::min(rest + packing_bytes(threads, operand_bytes, std::numeric_limits<std::uint64_t>::max()),
                  (rest * 8 + 6) / 7);
}

}  // namespace ooc::detail
