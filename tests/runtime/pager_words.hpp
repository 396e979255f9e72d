// What the tests of the pager share: arrays of 64-KiB blocks of words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oocarray/runtime.hpp"
#include "runtime/memory_source.hpp"
#include "runtime/pager.hpp"
#include "runtime/segment.hpp"

namespace ooc::test {

inline constexpr std::size_t kib64 = 64 << 10;
inline constexpr std::size_t words_per_block = kib64 / 8;

inline std::uint64_t* words(detail::segment& s) {
  return reinterpret_cast<std::uint64_t*>(s.base());
}

}  // namespace ooc::test
