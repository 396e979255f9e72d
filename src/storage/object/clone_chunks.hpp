// Chunks of one stripe object become those of another, which shares their space on the disk.
//
// Data blocks are shared by FICLONERANGE, which XFS and btrfs have: that takes no space, and time for each extent
// instead of each byte.  On other file systems they are copied, where the caller allows that.  Checksums are written
// anew, 8 bytes for each chunk, as they are seeded with the place of their chunk; nobody looks at the bytes, so a chunk
// that is damaged is damaged in the copy, too.
#pragma once

#include <cstdint>

#include "storage/object/io_worker.hpp"
#include "storage/object/stripe_object.hpp"

namespace ooc::storage {

/// `n` chunks of `from`, at `place` there, become those of `to` from `chunk` on; never written ones are left out.  Both
/// have the locks that a read and a write take; `h`: of `to`, as from mark_unsynced().  `copier`: copies what cannot be
/// shared; null: that is EOPNOTSUPP.  Returns an errno, 0 for success.
int clone_chunks(io_worker* copier, stripe_object& from, std::uint64_t place, stripe_object& to, std::uint64_t chunk,
                 std::uint64_t n, const checksum_header& h);

}  // namespace ooc::storage
