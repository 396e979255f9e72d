// Sizes that grow with the page: of tests that reckon in blocks and pages, and run with larger ones, too
// (OOC_PAGE_BYTES).  With pages of 4 KiB they are what their names say.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/base/page.hpp"

namespace ooc::testing {

inline const std::uint64_t kib = page_bytes / 4, mib = 1024 * kib;
inline const std::size_t page_words = page_bytes / 8;

}  // namespace ooc::testing
