#include "runtime/blocks/grain_mapping.hpp"

#include <sched.h>

#include <cassert>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "runtime/blocks/segment_options.hpp"
#include "runtime/blocks/segment_state.hpp"
#include "runtime/blocks/sys.hpp"
#include "runtime/blocks/untracked.hpp"
#include "runtime/blocks/userfault_calls.hpp"

namespace ooc::detail {

namespace {

constexpr std::uint64_t grain_faults = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;

void yield() noexcept { ::sched_yield(); }

}  // namespace

std::unique_ptr<grain_mapping> grain_mapping::open(std::string& why_not) {
  const int fd = sys::open_userfaultfd_for_user_faults();
  if (fd < 0) {
    why_not = "the kernel gives no userfaultfd: " + std::generic_category().message(errno);
    return nullptr;
  }
  uffdio_api api{UFFD_API, UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP, 0};
  if (!sys::userfault_call(fd, UFFDIO_API, &api)) {
    why_not = "the kernel's userfaultfd protects no pages, which Linux can from 5.7 on";
    ::close(fd);
    return nullptr;
  }
  constexpr std::size_t bytes = spare_slots::count * grain_bytes;
  std::byte* const slots = sys::map(nullptr, bytes, PROT_READ | PROT_WRITE, sys::reserve_flags);
  if (!slots) throw std::bad_alloc();
  sys::advise(slots, bytes, MADV_NOHUGEPAGE);
  sys::advise(slots, bytes, MADV_DONTFORK);
  return std::unique_ptr<grain_mapping>(new grain_mapping(fd, slots));
}

grain_mapping::grain_mapping(int fd, std::byte* slots) noexcept : fd_(fd), slots_(slots) {
  for (std::size_t i = 0; i < spare_slots::count; ++i) spares_.all[i] = slots + i * grain_bytes;
}

grain_mapping::~grain_mapping() {
  ::close(fd_);
  sys::unmap(slots_, spare_slots::count * grain_bytes);
}

void grain_mapping::reopen(std::byte* where, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  // A page of zeros must not be seen: no access until it is registered.
  if (!sys::map(where, bytes, PROT_NONE, sys::reserve_flags | MAP_FIXED) ||
      !sys::userfault_register(fd_, where, bytes, grain_faults) ||
      !sys::protect(where, bytes, PROT_READ | PROT_WRITE))
    die("opening the addresses of a block", errno);
}

void grain_mapping::open_range(const segment_state& s, std::uint64_t from, std::uint64_t to) {
  if (from == to) return;
  std::byte* const p = s.base + from;
  if (sys::userfault_register(fd_, p, to - from, grain_faults) &&
      sys::protect(p, to - from, PROT_READ | PROT_WRITE))
    return;
  const int error = errno;
  close_range(s, from, to);
  throw std::system_error(error, std::generic_category(), "opening the addresses of an array");
}

void grain_mapping::close_range(const segment_state& s, std::uint64_t from,
                                std::uint64_t to) noexcept {
  if (from == to) return;
  std::byte* const p = s.base + from;
  if (!sys::map(p, to - from, PROT_NONE, sys::reserve_flags | MAP_FIXED))
    die("mmap of an array's addresses", errno);
}

// Where no slot with a page is left the kernel makes one at the first write to the frame's own.
void grain_mapping::take_page(frame* f) noexcept {
  if (!std::exchange(f->unbacked, false)) return;
  const lock_guard l(mutex_);
  if (spares_.backed == 0) return;
  std::swap(f->memory, spares_.all[--spares_.backed]);
  f->zeroed = false;
}

void grain_mapping::before_load(frame* f) noexcept { take_page(f); }

void grain_mapping::map_in(frame* f, bool writable) noexcept {
  f->mapped_bytes = f->cls->bytes;
  if (!sys::userfault_copy(fd_, f->segment->address(f->block), f->memory, f->mapped_bytes,
                           (writable ? 0 : UFFDIO_COPY_MODE_WP) | sys::userfault_dont_wake, yield))
    die("UFFDIO_COPY of a grain", errno);
  // The bytes are at the block now.
  f->unbacked = true;
  {
    const lock_guard l(mutex_);
    if (spares_.backed < spare_slots::count) {
      std::swap(f->memory, spares_.all[spares_.backed++]);
      return;
    }
  }
  if (!sys::advise(f->memory, f->mapped_bytes, MADV_DONTNEED)) die("madvise of a frame", errno);
}

bool grain_mapping::map_out(frame* f, block_access has) noexcept {
  std::byte* const from = f->segment->address(f->block);
  if (has == block_access::write) set_access(f, block_access::read);
  take_page(f);
  copy_untracked(f->memory, from, f->mapped_bytes);
  if (!sys::advise(from, f->mapped_bytes, MADV_DONTNEED)) die("madvise of a grain", errno);
  return true;
}

void grain_mapping::set_access(frame* f, block_access to) noexcept {
  assert(to != block_access::none);
  if (!sys::userfault_protect(fd_, f->segment->address(f->block), f->mapped_bytes,
                              to == block_access::read ? UFFDIO_WRITEPROTECT_MODE_WP
                                                       : UFFDIO_WRITEPROTECT_MODE_DONTWAKE,
                              yield))
    die("write protection of a grain", errno);
}

// The kernel frees them with the mapping, where it covers all that one of them is for.
void grain_mapping::give_up_page_tables(std::byte* where, std::size_t bytes) noexcept {
  constexpr std::size_t page_table_reach = std::size_t{2} << 20;
  if (bytes % page_table_reach == 0) reopen(where, bytes);
}

void grain_mapping::discard(frame* f) noexcept {
  if (!sys::advise(f->segment->address(f->block), f->mapped_bytes, MADV_DONTNEED))
    die("madvise of a grain", errno);
}

}  // namespace ooc::detail
