#include "runtime/blocks/grain_mapping.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
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

std::unique_ptr<grain_mapping> grain_mapping::open(std::uint64_t budget, std::string& why_not) {
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
  constexpr std::uint64_t least = 64, most = 512;
  const std::size_t count = std::clamp<std::uint64_t>(budget / 64 / grain_bytes, least, most);
  const std::size_t bytes = count * grain_bytes;
  std::byte* const slots = sys::map(nullptr, bytes, PROT_READ | PROT_WRITE, sys::reserve_flags);
  if (!slots) throw std::bad_alloc();
  sys::advise(slots, bytes, MADV_NOHUGEPAGE);
  sys::advise(slots, bytes, MADV_DONTFORK);
  return std::unique_ptr<grain_mapping>(new grain_mapping(fd, slots, count));
}

grain_mapping::grain_mapping(int fd, std::byte* slots, std::size_t count) : fd_(fd), slots_(slots) {
  for (std::size_t i = 0; i < count; ++i) spares_.all.push_back(slots + i * grain_bytes);
}

grain_mapping::~grain_mapping() {
  ::close(fd_);
  sys::unmap(slots_, spares_.all.size() * grain_bytes);
}

void grain_mapping::reopen(std::byte* where, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  // A page of zeros must not be seen: no access until it is registered.
  if (!sys::map(where, bytes, PROT_NONE, sys::reserve_flags | MAP_FIXED) ||
      !sys::userfault_register(fd_, where, bytes, grain_faults) || !sys::protect(where, bytes, PROT_READ | PROT_WRITE))
    die("opening the addresses of a block", errno);
}

void grain_mapping::open_range(const segment_state& s, std::uint64_t from, std::uint64_t to) {
  if (from == to) return;
  std::byte* const p = s.base + from;
  if (sys::userfault_register(fd_, p, to - from, grain_faults) && sys::protect(p, to - from, PROT_READ | PROT_WRITE))
    return;
  const int error = errno;
  close_range(s, from, to);
  throw std::system_error(error, std::generic_category(), "opening the addresses of an array");
}

void grain_mapping::close_range(const segment_state& s, std::uint64_t from, std::uint64_t to) noexcept {
  if (from == to) return;
  std::byte* const p = s.base + from;
  if (!sys::map(p, to - from, PROT_NONE, sys::reserve_flags | MAP_FIXED)) die("mmap of an array's addresses", errno);
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
    if (spares_.backed < spares_.all.size()) {
      std::swap(f->memory, spares_.all[spares_.backed++]);
      return;
    }
  }
  if (!sys::advise(f->memory, f->mapped_bytes, MADV_DONTNEED)) die("madvise of a frame", errno);
}

void grain_mapping::copy_out(frame* f) noexcept {
  take_page(f);
  copy_untracked(f->memory, f->segment->address(f->block), f->mapped_bytes);
}

bool grain_mapping::map_out(frame* f, block_access has) noexcept {
  if (has == block_access::write) set_access(f, block_access::read);
  copy_out(f);
  discard(f);
  return true;
}

void grain_mapping::map_out_together(std::span<frame* const> frames, std::span<const block_access> has) noexcept {
  for (std::size_t i = 0, n; i < frames.size(); i += n) {
    n = protected_together(frames.subspan(i), has.subspan(i));
    std::byte* const first = frames[i]->segment->address(frames[i]->block);
    std::byte* const last = frames[i + n - 1]->segment->address(frames[i + n - 1]->block);
    if (has[i] == block_access::write) protect(first, last + grain_bytes, block_access::read);
  }
  std::array<std::byte*, page_dropper::most_together> pages;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    copy_out(frames[i]);
    pages[i] = frames[i]->segment->address(frames[i]->block);
  }
  if (!dropper_.drop({pages.data(), frames.size()}, grain_bytes)) die("giving up grains", errno);
}

// How many from the first on can be protected as one range: writable ones of one block, with nothing in memory
// between them.  Where a grain comes in between meanwhile it is protected, too, and its next write is a fault
// (fault_server).
std::size_t grain_mapping::protected_together(std::span<frame* const> frames,
                                              std::span<const block_access> has) noexcept {
  const segment_state& g = *frames[0]->segment;
  const block_index first = frames[0]->block;
  block_index seen = first;
  std::size_t n = 1;
  for (; n < frames.size() && has[0] == block_access::write && has[n] == has[0]; ++n) {
    const block_index next = frames[n]->block;
    if (frames[n]->segment != &g || next <= seen || next / g.grains_in_block != first / g.grains_in_block) break;
    while (++seen < next && g.at(seen).state() == block_state::out) continue;
    if (seen != next) break;
  }
  return n;
}

void grain_mapping::protect(std::byte* from, std::byte* to, block_access left) noexcept {
  if (!sys::userfault_protect(
          fd_, from, static_cast<std::size_t>(to - from),
          left == block_access::read ? UFFDIO_WRITEPROTECT_MODE_WP : UFFDIO_WRITEPROTECT_MODE_DONTWAKE, yield))
    die("write protection of a grain", errno);
}

void grain_mapping::set_access(frame* f, block_access to) noexcept {
  assert(to != block_access::none);
  std::byte* const page = f->segment->address(f->block);
  protect(page, page + f->mapped_bytes, to);
}

// The kernel frees them with the mapping, where it covers all that one of them is for.
void grain_mapping::give_up_page_tables(std::byte* where, std::size_t bytes) noexcept {
  constexpr std::size_t page_table_reach = std::size_t{2} << 20;
  if (bytes % page_table_reach == 0) reopen(where, bytes);
}

void grain_mapping::discard(frame* f) noexcept {
  if (!sys::advise(f->segment->address(f->block), f->mapped_bytes, MADV_DONTNEED)) die("madvise of a grain", errno);
}

}  // namespace ooc::detail
