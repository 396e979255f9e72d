#include "runtime/blocks/userfault_mapping.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "runtime/blocks/segment_state.hpp"
#include "runtime/blocks/sys.hpp"
#include "runtime/blocks/userfault_calls.hpp"

namespace ooc::detail {

namespace {

constexpr std::uint64_t both_modes = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
constexpr std::uint64_t features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_THREAD_ID |
                                   sys::userfault_feature_exact | sys::userfault_feature_move;
/// Up to here a copy costs less than mremap, with its event and the mapping that it leaves.
constexpr std::size_t copied_at_most = 128 << 10;
/// A frame, by the kernel, after a transfer has ended.
constexpr std::chrono::seconds held_at_most{10};

// A tenth of the mappings that a process may have, at two for each patch.
std::size_t patches_allowed() {
  std::ifstream in("/proc/sys/vm/max_map_count");
  std::size_t n = 0;
  return (in >> n ? n : 65530) / 20;
}

/// By the system call, as the superuser or where vm.unprivileged_userfaultfd is set; by the device,
/// where its permissions say so; and without the faults of system calls, which needs no privilege.
int open_descriptor(bool& serves_system_calls) noexcept {
  serves_system_calls = true;
  int fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
  if (fd >= 0) return fd;
  if (const int device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC); device >= 0) {
    fd = static_cast<int>(::syscall(SYS_ioctl, device, sys::new_userfault_call, O_CLOEXEC));
    ::close(device);
    if (fd >= 0) return fd;
  }
  serves_system_calls = false;
  return static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | sys::userfault_user_mode_only));
}

/// After a move that has come as far as `moved` of so many bytes.
[[noreturn]] void die_moving(const char* what, std::size_t moved, std::size_t bytes) noexcept {
  const int error = errno;
  char text[80];
  std::snprintf(text, sizeof text, "UFFDIO_MOVE of a %s, page %zu of %zu,", what, moved / page_bytes + 1,
                bytes / page_bytes);
  die(text, error);
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

// A touch of a missing page makes a table of page-table entries there, unless the addresses are for huge pages: and to
// where a table is, the kernel does not move a huge page as one, it splits it for good.
bool advise_pages(std::byte* p, std::size_t bytes, bool huge) noexcept {
  if (huge) sys::advise(p, bytes, MADV_HUGEPAGE);  // a kernel without them has nothing to split
  return sys::advise(p, bytes, MADV_DONTFORK);
}

}  // namespace

std::unique_ptr<userfault_mapping> userfault_mapping::open(std::string& why_not) {
  bool serves_system_calls = false;
  const int fd = open_descriptor(serves_system_calls);
  if (fd < 0) {
    why_not = "the kernel gives no userfaultfd: " + std::generic_category().message(errno);
    return nullptr;
  }
  uffdio_api api{UFFD_API, features, 0};
  if (!sys::userfault_call(fd, UFFDIO_API, &api)) {
    why_not = "the kernel's userfaultfd has no UFFDIO_MOVE, which Linux has from 6.8 on";
    ::close(fd);
    return nullptr;
  }
  return std::unique_ptr<userfault_mapping>(new userfault_mapping(fd, serves_system_calls));
}

userfault_mapping::userfault_mapping(int fd, bool serves_system_calls)
    : fd_(fd), serves_system_calls_(serves_system_calls), most_patches_(patches_allowed()) {}

userfault_mapping::~userfault_mapping() { ::close(fd_); }

// --- addresses

void userfault_mapping::add_frames(std::byte* region, std::size_t bytes) {
  if (!sys::userfault_register(fd_, region, bytes, UFFDIO_REGISTER_MODE_WP)) fail("userfaultfd: registering frames");
}

// Registered before anybody may touch it: a page of zeros would pass for data.
void userfault_mapping::open_range(const segment_state& s, std::uint64_t from, std::uint64_t to) {
  if (from == to) return;
  std::byte* const p = s.base + from;
  if (!sys::userfault_register(fd_, p, to - from, both_modes))
    fail("userfaultfd: registering the addresses of an array");
  if (!advise_pages(p, to - from, s.block_bytes() % sys::huge_page == 0) ||
      !sys::protect(p, to - from, PROT_READ | PROT_WRITE)) {
    sys::userfault_unregister(fd_, p, to - from);
    fail("opening the addresses of an array");
  }
}

void userfault_mapping::close_range(const segment_state& s, std::uint64_t from, std::uint64_t to) noexcept {
  if (from == to) return;
  std::byte* const p = s.base + from;
  if (!sys::protect(p, to - from, PROT_NONE)) die("mprotect of an array's addresses", errno);
  sys::userfault_unregister(fd_, p, to - from);  // wakes who waits there
  if (!sys::map(p, to - from, PROT_NONE, sys::reserve_flags | MAP_FIXED)) die("mmap of an array's addresses", errno);
  const lock_guard l(mutex_);
  const auto within = [&](const std::byte* a) { return a >= p && a < p + (to - from); };
  std::erase_if(patches_, within);
  std::erase_if(fences_, within);
  fence_count_ = fences_.size();
}

// --- blocks

void userfault_mapping::try_again() noexcept {
  about_to_wait();
  ::syscall(SYS_sched_yield);
}

std::size_t userfault_mapping::move_pages(std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  return sys::userfault_move_pages(fd_, to, from, bytes, sys::userfault_dont_wake, [this] { try_again(); });
}

// Whoever has read into the frame past the page cache (O_DIRECT) is told so before the kernel lets go of its pages.
void userfault_mapping::move_frame(std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  const auto give_up = std::chrono::steady_clock::now() + held_at_most;
  for (std::size_t done = 0;;) {
    done += move_pages(from + done, to + done, bytes - done);
    if (done == bytes) return;
    if (errno != EBUSY || std::chrono::steady_clock::now() > give_up) die_moving("frame", done, bytes);
    try_again();
  }
}

bool userfault_mapping::protect(std::byte* where, std::size_t bytes, block_access to) noexcept {
  return sys::userfault_protect(
      fd_, where, bytes, to == block_access::read ? UFFDIO_WRITEPROTECT_MODE_WP : UFFDIO_WRITEPROTECT_MODE_DONTWAKE,
      [this] { try_again(); });
}

// A page that the kernel has not given yet could not be moved, and would be missing at the block.
void userfault_mapping::back_with_memory(frame* f) noexcept {
  if (!std::exchange(f->unbacked, false)) return;
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, Linux 5.14
  while (!sys::advise(f->memory, f->cls->bytes, populate_write))
    if (errno != EAGAIN && errno != EINTR) die("memory for a frame", errno);
}

void userfault_mapping::map_in(frame* f, bool writable) noexcept {
  segment_state& s = *f->segment;
  std::byte* const to = s.address(f->block);
  const std::size_t n = s.mapped_bytes(f->block);
  back_with_memory(f);
  lift_fences(to, n);
  f->mapped_bytes = n;
  if (writable || !s.options.writable) {
    move_frame(f->memory, to, n);
    if (!writable && !protect(to, n, block_access::read)) die("write protection of a block", errno);
  } else if (n <= copied_at_most) {
    copy_protected(f, n);
  } else {
    if (!protect(f->memory, n, block_access::read)) die("write protection of a frame", errno);
    about_to_wait();
    if (!sys::move_pages(f->memory, to, n)) die("mremap of a frame", errno);
    // The registration of the frame comes along, which does not cover missing pages.
    if (!sys::userfault_register(fd_, to, n, both_modes)) die("registering a block", errno);
    note_patch(to);
  }
}

bool userfault_mapping::map_out(frame* f, block_access has) noexcept {
  std::byte* const from = f->segment->address(f->block);
  const std::size_t n = f->mapped_bytes;
  lift_fences(from, n);
  const std::size_t moved = move_pages(from, f->memory, n);
  if (moved == n) {
    mend_patch(from, n);
    return true;
  }
  if (errno != EBUSY) die_moving("block", moved, n);
  // The pages that have moved go back: not by a move where they are protected, see above.
  if (moved == 0) return false;
  if (has == block_access::read)
    copy_protected(f, moved);
  else
    move_frame(f->memory, from, moved);
  return false;
}

// The first bytes of a frame to the block, where they are missing.
void userfault_mapping::copy_protected(frame* f, std::size_t bytes) noexcept {
  if (!sys::userfault_copy(fd_, f->segment->address(f->block), f->memory, bytes,
                           UFFDIO_COPY_MODE_WP | sys::userfault_dont_wake, [this] { try_again(); }))
    die("UFFDIO_COPY of a frame", errno);
  // The memory is now the block's: where its pages will come back to there may be none.
  if (!sys::advise(f->memory, bytes, MADV_DONTNEED)) die("madvise of a frame", errno);
}

void userfault_mapping::set_access(frame* f, block_access to) noexcept {
  assert(to != block_access::none);
  if (!protect(f->segment->address(f->block), f->mapped_bytes, to)) die("write protection of a block", errno);
}

void userfault_mapping::discard(frame* f) noexcept {
  std::byte* const from = f->segment->address(f->block);
  if (!sys::advise(from, f->mapped_bytes, MADV_DONTNEED)) die("madvise of a block", errno);
  f->unbacked = true;
  mend_patch(from, f->mapped_bytes);
}

// --- patches: where mremap has brought a block, its addresses stay a mapping of their own

void userfault_mapping::note_patch(std::byte* block) noexcept {
  const lock_guard l(mutex_);
  patches_.insert(block);
}

// A new mapping that nobody has touched merges with its neighbours.  It is registered before it comes to
// the block, so that the block is missing at every moment.
void userfault_mapping::mend_patch(std::byte* block, std::size_t bytes) noexcept {
  {
    const lock_guard l(mutex_);
    if (patches_.size() <= most_patches_ || patches_.erase(block) == 0) return;
  }
  std::byte* const p = sys::map(nullptr, bytes, PROT_READ | PROT_WRITE, sys::reserve_flags);
  if (!p) die("mmap of a block", errno);
  if (!advise_pages(p, bytes, bytes % sys::huge_page == 0) || !sys::userfault_register(fd_, p, bytes, both_modes))
    die("registering a block", errno);
  about_to_wait();
  if (::syscall(SYS_mremap, p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, block) == -1)
    die("mremap of a block", errno);
}

// --- fences and wakes

void userfault_mapping::fence(std::byte* page, bool writes_only) noexcept {
  {
    const lock_guard l(mutex_);
    fences_.push_back(page);
    fence_count_ = fences_.size();
    if (!sys::protect(page, page_bytes, writes_only ? PROT_READ : PROT_NONE)) die("mprotect of a page", errno);
  }
  wake(page);
}

bool userfault_mapping::lift_fences(std::byte* where, std::size_t bytes) noexcept {
  if (fence_count_.load(std::memory_order_acquire) == 0) return false;
  const lock_guard l(mutex_);
  bool any = false;
  std::erase_if(fences_, [&](std::byte* page) {
    if (page < where || page >= where + bytes) return false;
    if (!sys::protect(page, page_bytes, PROT_READ | PROT_WRITE)) die("mprotect of a page", errno);
    return any = true;
  });
  fence_count_ = fences_.size();
  return any;
}

void userfault_mapping::wake(std::byte* page) noexcept {
  const wake_log::number n = wakes_.begin(page);
  sys::userfault_wake(fd_, page, page_bytes);
  wakes_.end(n);
}

}  // namespace ooc::detail
