// Memory of the budget, for as long as an algorithm runs.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "runtime/pager/pager.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

/// Aligned to pages, in huge pages where it is worth it: algorithms go over it at many places at once, and disks
/// transfer to and from it.  It is the system's again when it goes, where malloc() might keep it.  Throws usage_error
/// (errc::budget_too_small) naming `what`.
class lent_memory {
 public:
  lent_memory(pager& p, std::uint64_t bytes, const std::string& what)
      : reservation_(p.reserve(bytes, what)), bytes_(bytes) {
    const std::size_t mapped = in_whole_pages(std::max<std::uint64_t>(bytes, 1));
    void* const memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_.reset(static_cast<std::byte*>(memory), [mapped](std::byte* m) { ::munmap(m, mapped); });
    // Where there are none, it is only slower.
    constexpr std::uint64_t worth_it = 8 << 20;
    if (bytes >= worth_it) ::madvise(memory_.get(), bytes, MADV_HUGEPAGE);
  }
  std::byte* data() const noexcept { return memory_.get(); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Keeps the memory, though not its place in the budget: for who may use it after an error, as messages do.
  std::shared_ptr<const void> owner() const noexcept { return memory_; }

 private:
  pager::reservation reservation_;
  std::shared_ptr<std::byte[]> memory_;
  std::uint64_t bytes_;
};

}  // namespace ooc::detail
