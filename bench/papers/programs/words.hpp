// What the experiments' files hold: every 8 bytes follow from their place, so that any part of what
// was read can be compared with what a writer of these bytes would have written.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace papers {

/// The 8 bytes at offset 8 * i.
inline std::uint64_t word(std::uint64_t i) { return i * 0x9E3779B97F4A7C15u ^ i >> 7; }

/// What belongs at byte `offset`, a multiple of 8, and after.
inline void fill(std::uint64_t offset, std::span<std::uint64_t> memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = word(offset / 8 + i);
}

/// Throws std::runtime_error that names the first byte that fill() would have written otherwise.
inline void check(std::uint64_t offset, std::span<const std::uint64_t> memory) {
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (memory[i] != word(offset / 8 + i))
      throw std::runtime_error("wrong data at byte " + std::to_string(offset + 8 * i));
}

}  // namespace papers
