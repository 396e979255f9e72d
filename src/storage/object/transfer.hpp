// Moving bytes between one file and many places in memory, as many at a time as the device takes.
//
// A transfer_list is a plan: extents of the file in the order of their offsets, each with the
// regions of memory it consists of.  A transfer_engine carries it out: through io_uring with up to
// 64 extents in flight, or with preadv/pwritev where the kernel refuses rings.  run() returns when
// every extent has ended, well or badly, so the memory is free again.
//
// An engine belongs to one thread.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ooc::storage {

/// One contiguous extent of the file.
struct transfer {
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t bytes = 0;
  std::uint64_t done = 0;   ///< bytes transferred so far, from the start
  std::uint32_t first = 0;  ///< its first region of memory in transfer_list::memory
  std::uint32_t count = 0;  ///< number of regions
  int error = 0;            ///< an errno; 0: none

  bool complete() const noexcept { return done == bytes; }
};

struct transfer_list {
  static constexpr std::uint64_t max_bytes = std::uint64_t{2} << 20;  ///< of one extent
  static constexpr std::uint32_t max_regions = 512;                   ///< of one extent

  std::vector<transfer> extents;
  std::vector<iovec> memory;

  /// Appends `bytes` at `offset`; joins the last extent where they continue it.
  void add(std::uint64_t offset, std::byte* at, std::uint64_t bytes);
  /// The offset at which add() would join the last extent.
  std::uint64_t end() const noexcept { return extents.empty() ? 0 : extents.back().offset + extents.back().bytes; }
  void clear() noexcept {
    extents.clear();
    memory.clear();
  }
};

enum class direction { read, write };

class transfer_engine {
 public:
  virtual ~transfer_engine() = default;

  /// Carries out every extent that is not complete; each ends complete or with its `error` set.  A
  /// read past the end of the file delivers zeros.
  virtual void run(int fd, direction d, transfer_list& list) = 0;
};

/// The best engine that the kernel offers; `io_uring` false: not a ring.
std::unique_ptr<transfer_engine> make_transfer_engine(bool io_uring);
/// The one with preadv/pwritev, in the calling thread.
std::unique_ptr<transfer_engine> make_plain_engine();

/// For the engines: what is to be done after the kernel answered `result` (bytes or -errno) for the
/// rest of `t`.  True: submit the rest again.
bool continue_transfer(transfer& t, std::span<iovec> memory, direction d, long result) noexcept;

}  // namespace ooc::storage
