// Small reads in the calling thread, which need no lock and no memory of their own.
#pragma once

#include "storage/layout/io_part.hpp"
#include "storage/object/stripe_object.hpp"

namespace ooc::storage {

/// At most this many bytes are worth it.
inline constexpr std::uint64_t max_quick_bytes = 64 << 10;

/// Reads a part as stripe_object_reader does with checking::by_caller.  False, with nothing promised about
/// memory and sums, where that takes more than copying from the page cache: bytes that are on disk,
/// chunks never written or being overwritten, checksums that do not match, direct I/O.
bool page_cache_read(stripe_object& s, const io_part& part, std::byte* memory, std::uint32_t* sums);

/// Reads whole chunks to aligned memory and verifies them, waiting for the disk.  False where that takes more than
/// a read: chunks never written or being overwritten, checksums that do not match, errors.  At most max_quick_bytes.
bool read_whole_chunks(stripe_object& s, std::uint64_t node_offset, std::byte* memory, std::size_t bytes) noexcept;

}  // namespace ooc::storage
