// Blosc takes aligned memory for each call, and gives it back.  glibc before 2.38 seldom finds such memory again (its
// bug 14581): a program that packs chunks would grow by almost as much as it packs.
#pragma once

#include <cstddef>

namespace ooc::storage {

/// Tells that Blosc has packed or unpacked so many bytes.  After some it gives the pages that malloc() holds free back
/// to the kernel, where the C library is that old.  Any thread may call.
void note_blosc_call(std::size_t bytes) noexcept;

}  // namespace ooc::storage
