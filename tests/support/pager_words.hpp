// The tests of the pager share this: arrays of words in blocks of 16 pages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"
#include "support/memory_source.hpp"

/// Sizes that grow with the page, for tests that run with larger ones, too (OOC_PAGE_BYTES); with pages of 4 KiB they
/// are what their names say.
namespace ooc::testing {

inline const std::uint64_t kib = page_bytes / 4, mib = 1024 * kib;
inline const std::size_t page_words = page_bytes / 8;

}  // namespace ooc::testing

namespace ooc::test {

inline const std::size_t small_block = 16 * page_bytes;  ///< 64 KiB where pages have 4
inline const std::size_t words_per_block = small_block / 8;

inline std::uint64_t* words(detail::segment& s) { return reinterpret_cast<std::uint64_t*>(s.base()); }

}  // namespace ooc::test
