#include "runtime/blocks/page_dropper.hpp"

#include <sys/uio.h>

#include <array>
#include <cassert>
#include <utility>

#include "runtime/blocks/sys.hpp"
#include "storage/base/page.hpp"

// Debian 12's headers have both, other C libraries may not.
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

namespace ooc::detail {

namespace {

bool drop_listed(int self, const iovec* pages, std::size_t n, std::size_t bytes) noexcept {
  return ::syscall(SYS_process_madvise, self, pages, n, MADV_DONTNEED, 0) == static_cast<long>(n * bytes);
}

}  // namespace

page_dropper::page_dropper() noexcept : self_(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))) {
  if (self_ < 0) return;
  std::byte* const page = sys::map(nullptr, page_bytes, PROT_READ | PROT_WRITE, sys::reserve_flags);
  const iovec it{page, page_bytes};
  if (!page || !drop_listed(self_, &it, 1, page_bytes)) ::close(std::exchange(self_, -1));
  if (page) sys::unmap(page, page_bytes);
}

page_dropper::~page_dropper() {
  if (self_ >= 0) ::close(self_);
}

bool page_dropper::drop(std::span<std::byte* const> where, std::size_t bytes) const noexcept {
  assert(where.size() <= most_together);
  if (self_ >= 0 && where.size() > 1) {
    std::array<iovec, most_together> pages;
    for (std::size_t i = 0; i < where.size(); ++i) pages[i] = {where[i], bytes};
    if (drop_listed(self_, pages.data(), where.size(), bytes)) return true;
  }
  // One that has been dropped already may be dropped again: its owner has not let anybody touch it.
  for (std::byte* const one : where)
    if (!sys::advise(one, bytes, MADV_DONTNEED)) return false;
  return true;
}

}  // namespace ooc::detail
