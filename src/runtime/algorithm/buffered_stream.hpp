// Buffers through which items go in order: while one is used, the next ones are read and the last ones written.
//
//     buffered_stream s(slots, ahead);
//     s.use(memory, bytes);                        // of a buffer
//     for (n = 0; n < items; ++n) {
//       std::byte* const buffer = s.read(n, items, [&](auto item, direct_transfer& t, std::byte* to) {
//         t.begin_read(..., to);
//       });
//       ...
//       s.written(n).begin_write(..., buffer);
//     }
//     s.wait();
//
// Item n has buffer n mod slots, from when its read begins (or fill() has returned) until its write has ended.  Reads
// of up to `ahead` items have begun at once, that of the item in use included.  An item that is only read gives its
// buffer up when a later one is asked for that needs it; one that is only written is begun with fill().
//
// A transfer that fails fails the call that waits for it: of the read that of the item, of the write that of the item
// which needs its buffer, or wait().
//
// Owner: the algorithm; the memory outlives the stream, whose destructor waits.  Threads: one at a time, but for the
// transfers of an item, which may be waited for and begun by who works at it.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/array/direct_transfer.hpp"

namespace ooc::detail {

class buffered_stream {
 public:
  buffered_stream(std::size_t slots, std::size_t ahead) : slots_(slots), ahead_(ahead) {
    assert(ahead <= slots && slots > 0);
  }

  void use(std::byte* memory, std::size_t bytes) noexcept {
    memory_ = memory;
    bytes_ = bytes;
  }
  std::byte* buffer(std::uint64_t n) const noexcept { return memory_ + n % slots_.size() * bytes_; }

  /// Begins the reads of items before `until` that have not begun, in order, as begin(item, transfer, buffer) says.
  template <class Begin>
  void begin_reads(std::uint64_t until, Begin begin) {
    for (; begun_ < until; ++begun_) begin(begun_, of(begun_).read, fill(begun_));
  }
  /// The item has been read.
  std::byte* arrived(std::uint64_t n) {
    assert(n < begun_);
    of(n).read.wait();
    return buffer(n);
  }
  /// Begins the reads of item n and of those after it of so many, and waits for that of n.
  template <class Begin>
  std::byte* read(std::uint64_t n, std::uint64_t items, Begin begin) {
    begin_reads(std::min(n + ahead_, items), begin);
    return arrived(n);
  }

  /// The buffer of item n, when what was in it has been written.
  std::byte* fill(std::uint64_t n) {
    written(n).wait();
    return buffer(n);
  }
  direct_transfer& written(std::uint64_t n) noexcept { return of(n).write; }

  /// All that was written has ended.
  void wait() {
    for (slot& s : slots_) s.write.wait();
  }
  /// Items count from 0 again; all reads that have begun have been waited for.
  void restart() noexcept { begun_ = 0; }

 private:
  struct slot {
    direct_transfer read, write;
  };
  slot& of(std::uint64_t n) noexcept { return slots_[n % slots_.size()]; }

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t begun_ = 0;  ///< items whose read has begun
  std::vector<slot> slots_;
  const std::size_t ahead_;
};

}  // namespace ooc::detail
