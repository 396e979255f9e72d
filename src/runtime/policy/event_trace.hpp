// The events of the blocks of a runtime, recorded as they happen: OOC_TRACE=FILE in the environment.
//
// A trace is what the choices of the pager are made of, and what they come to: touches, in the order in which they were
// served, and what came in, left and was written.  `oocbench policy --trace FILE` replays the touches.  Touches of a
// block that is mapped are not seen, so a trace says the more the smaller the memory was.
//
// The file: trace_header, then trace_event after trace_event, in the byte order and with the layout of this machine.
// Segments are numbered from 1 as they open.  One with grains has two numbers: its grains have the one before it.
//
// event_trace is safe in fault handlers: events go into a ring that was made beforehand, without a lock, and the
// service thread writes them to the file.  Where the ring is full they are counted; the file says so where they are
// missing, and standard error at the end.  Where nothing is recorded an event costs one branch.
//
// Threads: note() any; drain() one at a time; record() and finish() before and after all others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/policy/block_index.hpp"

namespace ooc::detail {

/// The kind of an event; `block` is the block that it happened to, unless another meaning is given.
enum class traced : std::uint8_t {
  began = 1,        ///< the recording; `block`: bytes of the budget
  opened = 2,       ///< a segment; `block`: its bytes, `amount`: of a block; `detail`: 1 for grains
  shape = 3,        ///< of the segment that was opened; `block`: bytes of a row, `amount`: of an element; 0: not known
  closed = 4,       ///< a segment
  ran = 5,          ///< `block`: ns for which a thread has run since its last fault was served
  missed = 6,       ///< a touch has to wait for it; `amount`: the byte of the block, `detail`: a trace_touch
  found = 7,        ///< a touch found it in memory, not mapped, or with its access taken away; the same
  first_write = 8,  ///< to a block that is mapped for reading; the same
  called_in = 9,    ///< a call of the program, not a touch, waits for it
  arrived = 10,     ///< ahead of its touch
  mapped_ahead = 11,  ///< arrived, and needs no touch
  evicted = 12,
  dropped = 13,  ///< it was not current, or not wanted
  written_back = 14,
  promised = 15,   ///< the program will overwrite it
  in_grains = 16,  ///< it comes in by parts from here on
  whole = 17,      ///< its grains become one block, which is loaded
  lost = 18,       ///< `block`: events that are missing here
};

enum class trace_touch : std::uint8_t { read, write, unknown };

struct trace_event {
  std::uint64_t block = 0;
  std::uint32_t amount = 0;
  std::uint16_t segment = 0;
  traced what{};
  std::uint8_t detail = 0;

  bool operator==(const trace_event&) const = default;
};
static_assert(sizeof(trace_event) == 16);

struct trace_header {
  static constexpr std::array<char, 8> name{'O', 'O', 'C', 'T', 'R', 'A', 'C', 'E'};
  static constexpr std::uint32_t latest = 1;

  std::array<char, 8> magic = name;
  std::uint32_t version = latest;
  std::uint32_t event_bytes = sizeof(trace_event);
};
static_assert(sizeof(trace_header) == 16);

/// Events on their way from many threads to one.
class trace_ring {
 public:
  /// `capacity`: a power of two.
  explicit trace_ring(std::size_t capacity) : slots_(capacity) {}

  /// False where it is full.
  bool put(const trace_event& e) noexcept;
  /// Takes the oldest ones out; returns how many.
  std::size_t take(std::span<trace_event> out) noexcept;
  bool is_half_full() const noexcept {
    return first_free_.load(std::memory_order_relaxed) - first_.load(std::memory_order_relaxed) > slots_.size() / 2;
  }

 private:
  struct slot {
    std::atomic<std::uint64_t> filled{0};  ///< 1 + the number of the event that is in it
    trace_event event;
  };

  std::vector<slot> slots_;
  std::atomic<std::uint64_t> first_free_{0};  ///< numbers of events
  std::atomic<std::uint64_t> first_{0};
};

class event_trace {
 public:
  event_trace() noexcept;
  ~event_trace();
  event_trace(const event_trace&) = delete;
  event_trace& operator=(const event_trace&) = delete;

  /// Writes all that happens from now on to a new file, or over an old one; "%p" in its name stands for the number of
  /// the process.  Throws usage_error.
  void record(std::string file, std::uint64_t budget);
  bool on() const noexcept { return static_cast<bool>(to_); }
  void note(traced what, std::uint16_t segment, std::uint64_t b, std::uint32_t amount = 0,
            std::uint8_t detail = 0) noexcept {
    if (to_) [[unlikely]]
      put({b, amount, segment, what, detail});
  }
  /// The number of a segment that opens; 0 where nothing is recorded.
  std::uint16_t number_of_next() noexcept;
  /// Whether drain() is called for before long.
  bool fills() const noexcept;
  /// Writes what has been noted to the file.
  void drain() noexcept;
  /// Says what is missing, if anything, and ends the recording.
  void finish() noexcept;

 private:
  struct recording;
  void put(const trace_event& e) noexcept;

  std::unique_ptr<recording> to_;
};

/// The events of a file; throws usage_error where it is none of this version.
std::vector<trace_event> read_trace(const std::string& file);

}  // namespace ooc::detail
