// The page of memory in which blocks are mapped, moved and aligned.
#pragma once

#include <cstdint>
#include <string>

namespace ooc {

/// What users give sizes of blocks in multiples of, on every machine.  Where pages are larger, blocks become so.
inline constexpr std::uint64_t block_step = 4096;

namespace detail {

/// Bytes in a page of the kernel: 4, 16 or 64 KiB.
std::uint64_t kernel_page_bytes() noexcept;
/// `page_bytes`.
std::uint64_t reckoned_page_bytes() noexcept;

/// Why OOC_PAGE_BYTES cannot be; empty where it can, or is not set.
std::string wrong_page_setting();

}  // namespace detail

/// Bytes in a page.  It is the kernel's, or more where OOC_PAGE_BYTES says so: then everything behaves as on a machine
/// with such pages, for tests.
inline const std::uint64_t page_bytes = detail::reckoned_page_bytes();

/// The next multiple.
inline std::uint64_t in_whole_pages(std::uint64_t bytes) noexcept {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace ooc
