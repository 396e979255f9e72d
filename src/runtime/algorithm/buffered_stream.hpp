// Buffers through which items go in order: while one is used, the next ones are read and the last ones written.
//
//     buffered_stream s(slots, ahead);
//     s.use(memory, bytes);                        // of a buffer
//     for (n = 0; n < items; ++n) {
//       std::byte* const buffer = s.read(n, items, [&](auto item, direct_transfer& t, std::byte* to) {
//         t.begin_read(..., to);
//       });
//       ...
//       s.write(n).begin_write(..., buffer);
//     }
//     s.wait();
//
// Item n has buffer n mod slots, from when its read begins (or fill() has returned) until its write has ended.  read()
// begins the reads of `ahead` items, that of item n included.  What is not written gives its buffer up when the read of
// the item that has it next begins; so with ahead == slots, item n - 1 is no longer used when read(n) is called.
//
// A transfer that fails fails the call that waits for it: a read the one for that item, a write that of the item which
// needs the buffer, or wait().
//
// Owner: the algorithm; the memory outlives the stream, whose destructor waits.  Threads: one at a time; arrived(),
// write(), buffer() and swap_buffer() by whoever works at the item.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/array/direct_transfer.hpp"

namespace ooc::detail {

class buffered_stream {
 public:
  buffered_stream(std::size_t slots, std::size_t ahead) : slots_(slots), ahead_(ahead) {
    assert(slots > 0 && ahead <= slots);
  }

  void use(std::byte* memory, std::size_t bytes) noexcept {
    for (slot& s : slots_) s.buffer = std::exchange(memory, memory + bytes);
  }
  std::byte* buffer(std::uint64_t n) const noexcept { return slots_[n % slots_.size()].buffer; }
  /// The result of item n is in the other memory, which is the buffer from now on.
  void swap_buffer(std::uint64_t n, std::byte*& other) noexcept { std::swap(of(n).buffer, other); }

  /// Begins the reads of items before `until` that have not begun, in order, as begin(item, transfer, buffer) says.
  template <class Begin>
  void begin_reads(std::uint64_t until, Begin begin) {
    for (; begun_ < until; ++begun_) {
      std::byte* const to = fill(begun_);
      begin(begun_, of(begun_).read, to);
    }
  }
  /// When item n, whose read has begun, has been read.
  std::byte* arrived(std::uint64_t n) {
    of(n).read.wait();
    return buffer(n);
  }
  /// Item n of so many.
  template <class Begin>
  std::byte* read(std::uint64_t n, std::uint64_t items, Begin begin) {
    begin_reads(std::min(n + ahead_, items), begin);
    assert(n < begun_);
    return arrived(n);
  }
  /// Items count from 0 again; all reads that had begun have arrived.
  void restart() noexcept { begun_ = 0; }

  /// The buffer of item n, when what was in it has been written.
  std::byte* fill(std::uint64_t n) {
    write(n).wait();
    return buffer(n);
  }
  direct_transfer& write(std::uint64_t n) noexcept { return of(n).write; }
  /// When everything has been written.
  void wait() {
    for (slot& s : slots_) s.write.wait();
  }

 private:
  struct slot {
    std::byte* buffer = nullptr;
    direct_transfer read, write;
  };
  slot& of(std::uint64_t n) noexcept { return slots_[n % slots_.size()]; }

  std::vector<slot> slots_;
  const std::size_t ahead_;
  std::uint64_t begun_ = 0;  ///< items whose read has begun
};

}  // namespace ooc::detail
