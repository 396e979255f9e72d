// The tests of the pager share this: arrays of words in blocks of 16 pages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"
#include "support/memory_source.hpp"

namespace ooc::test {

inline const std::size_t small_block = 16 * page_bytes;  ///< 64 KiB where pages have 4
inline const std::size_t words_per_block = small_block / 8;

inline std::uint64_t* words(detail::segment& s) { return reinterpret_cast<std::uint64_t*>(s.base()); }

}  // namespace ooc::test
