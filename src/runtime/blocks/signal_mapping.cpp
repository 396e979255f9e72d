#include <cstdio>

#include "oocarray/runtime.hpp"
#include "runtime/blocks/block_mapping.hpp"
#include "runtime/blocks/grain_mapping.hpp"
#include "runtime/blocks/segment_state.hpp"
#include "runtime/blocks/sys.hpp"

namespace ooc::detail {

void die(const char* what, int error) noexcept {
  char text[256];
  const int n = std::snprintf(text, sizeof text,
                              "oocarray: %s failed (errno %d)%s; the process ends, modified blocks "
                              "that were not written back are lost\n",
                              what, error, error == ENOMEM ? ": raise vm.max_map_count or use larger blocks" : "");
  if (n > 0 && ::write(2, text, static_cast<std::size_t>(n)) < 0) { /* nobody left to tell */
  }
  ::_exit(fatal_exit_status);
}

namespace {

constexpr int protection_of(block_access a) noexcept {
  return a == block_access::none ? PROT_NONE : a == block_access::read ? PROT_READ : PROT_READ | PROT_WRITE;
}

/// Blocks have no access but while they are mapped with some; nothing else is to be prepared.
/// Addresses of segments with grains are open where no block is mapped (grain_mapping).
class signal_mapping final : public block_mapping {
 public:
  explicit signal_mapping(grain_mapping* grains) noexcept : grains_(grains) {}

  void add_frames(std::byte*, std::size_t) override {}
  void open_range(const segment_state&, std::uint64_t, std::uint64_t) override {}
  void close_range(const segment_state&, std::uint64_t, std::uint64_t) noexcept override {}

  void map_in(frame* f, bool writable) noexcept override {
    const std::size_t n = f->cls->bytes;
    std::byte* to = f->segment->address(f->block);
    if (!writable && !sys::protect(f->memory, n, PROT_READ)) die("mprotect of a frame", errno);
    if (!sys::move_pages(f->memory, to, n)) die("mremap of a frame", errno);
    if (const std::size_t used = f->segment->mapped_bytes(f->block);
        used < n && !sys::protect(to + used, n - used, PROT_NONE))
      die("mprotect of the pages past an array's end", errno);
  }

  // The pages past the end have no access, so all of the block is one mapping again before it moves.
  // The last step replaces the block's mapping by a piece of the reservation, so that it merges with
  // its neighbours: otherwise every block ever touched would keep a mapping of its own.
  bool map_out(frame* f, block_access has) noexcept override {
    const std::size_t n = f->cls->bytes;
    std::byte* from = f->segment->address(f->block);
    if (has != block_access::none && !sys::protect(from, n, PROT_NONE)) die("mprotect of a block", errno);
    if (!sys::move_pages(from, f->memory, n)) die("mremap of a block", errno);
    if (!sys::protect(f->memory, n, PROT_READ | PROT_WRITE)) die("mprotect of a frame", errno);
    const std::size_t open = f->segment->grains ? f->segment->mapped_bytes(f->block) : 0;
    if (open < n && !sys::map(from + open, n - open, PROT_NONE, sys::reserve_flags | MAP_FIXED))
      die("mmap of a block", errno);
    if (open) grains_->reopen(from, open);
    return true;
  }

  void set_access(frame* f, block_access to) noexcept override {
    if (!sys::protect(f->segment->address(f->block), f->segment->mapped_bytes(f->block), protection_of(to)))
      die("mprotect of a block", errno);
  }

  void discard(frame* f) noexcept override { (void)map_out(f, block_access::write); }

 private:
  grain_mapping* const grains_;
};

}  // namespace

std::unique_ptr<block_mapping> make_signal_mapping(grain_mapping* grains) {
  return std::make_unique<signal_mapping>(grains);
}

}  // namespace ooc::detail
