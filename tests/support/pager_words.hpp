// The tests of the pager share this: arrays of 64-KiB blocks of words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"
#include "support/memory_source.hpp"

namespace ooc::test {

inline constexpr std::size_t kib64 = 64 << 10;
inline constexpr std::size_t words_per_block = kib64 / 8;

inline std::uint64_t* words(detail::segment& s) { return reinterpret_cast<std::uint64_t*>(s.base()); }

}  // namespace ooc::test
