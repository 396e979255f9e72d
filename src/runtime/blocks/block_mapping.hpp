// How the bytes of a frame come to the address of their block, and leave it.
//
// The one thing that the ways of mapping do differently (docs/decisions/0019-userfaultfd.md):
//
//   signal_mapping     pages move by mremap, access is taken and given by mprotect, and a touch that is
//                      refused is a SIGSEGV in the thread that made it
//   userfault_mapping  pages move by UFFDIO_MOVE, a touch of what is missing or write-protected sleeps in
//                      the kernel until a thread of the runtime has served it: system calls may touch
//                      blocks too
//   grain_mapping      for grains where blocks are mapped by signals
//
// Invariants: between map_in() and map_out() the frame's slot has no pages, at any other time the block
// has none.  A write to a block that was mapped for reading is a fault, from the moment on in which the
// block can be read: no write goes unnoticed.
//
// Threads: calls about a frame are for the owner of its block, without the pager's lock, also in fault
// handlers: they allocate nothing.  Calls about addresses are for who opens and closes a segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ooc::detail {

class grain_mapping;
struct frame;
struct segment_state;

enum class block_access : std::uint8_t { none, read, write };

class block_mapping {
 public:
  virtual ~block_mapping() = default;

  // --- addresses

  /// Memory of frames, before it is used.  Throws std::system_error.
  virtual void add_frames(std::byte* region, std::size_t bytes) = 0;
  /// The bytes [from, to) of a segment's blocks, which have no access, may be touched from now on.
  /// Throws std::system_error.
  virtual void open_range(const segment_state& s, std::uint64_t from, std::uint64_t to) = 0;
  /// They may no longer: no block is mapped there any more, and who waits there is refused.
  virtual void close_range(const segment_state& s, std::uint64_t from, std::uint64_t to) noexcept = 0;

  // --- blocks

  /// Before bytes are read into the frame's slot.
  virtual void before_load(frame*) noexcept {}
  /// Moves the frame's pages to the block's address, but for those past the segment's end.
  virtual void map_in(frame* f, bool writable) noexcept = 0;
  /// Moves them back to the frame, which is then readable and writable.  `has` is the access to the
  /// block.  False where the kernel holds some of them for a transfer of the program's: the block is
  /// then as it was.
  [[nodiscard]] virtual bool map_out(frame* f, block_access has) noexcept = 0;
  /// The same for blocks that can be moved at any time, at most page_dropper::most_together of them, faster than one
  /// by one.  Only where worth_together() says that there is such a way.
  virtual void map_out_together(std::span<frame* const>, std::span<const block_access>) noexcept {}
  /// How many blocks that is worth doing for; 1: there is no such way.
  virtual std::size_t worth_together() const noexcept { return 1; }
  /// Changes the access to a mapped block.
  virtual void set_access(frame* f, block_access to) noexcept = 0;
  /// Gives up the bytes of a mapped block, which the kernel may hold.
  virtual void discard(frame* f) noexcept = 0;

  /// No block or grain is mapped at these addresses: the kernel may forget what it keeps of them.
  virtual void give_up_page_tables(std::byte*, std::size_t) noexcept {}

  /// True: a block ages by moving to its frame, where it is `ready`, and modified blocks are written from
  /// there.  System calls may then touch it.  False: it ages in place (`inactive`), and is flushed in
  /// place.
  virtual bool moves_out_to_age() const noexcept { return false; }
  /// Called by a thread that serves a touch before it may sleep.
  virtual void about_to_wait() noexcept {}
  /// Whether who touched `where` may have gone on since `asked`, a number that came with the touch: he touches it again
  /// if need be.
  virtual bool has_gone_on(const std::byte* /*where*/, std::uint64_t /*asked*/) const noexcept { return false; }
};

/// `grains`, which outlives it, opens the addresses of segments with grains; nullptr: there are none.
std::unique_ptr<block_mapping> make_signal_mapping(grain_mapping* grains = nullptr);

/// Ends the process after a system call on array memory failed: there is no way on from there.
[[noreturn]] void die(const char* what, int error) noexcept;

}  // namespace ooc::detail
