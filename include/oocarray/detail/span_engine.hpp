// The part of an elementwise pass that has no types: which elements, in which order, in which
// thread. What is done to them is a span_program, made by the templates
// (algorithm/elementwise.hpp).
//
// A *piece* is what one thread does at a time: up to 2^15 elements that follow each other, or a
// tile.  So the threads stay close together, and what is read ahead of one of them the others do
// not read again. The elements of a piece come in *runs*, each of which is contiguous in all
// arrays.
//
// Threads: a span_run belongs to one thread; pass() calls the program from several at once, each
// piece from one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/array_core.hpp"

namespace ooc::detail {

inline constexpr std::size_t elements_of_piece = std::size_t{1} << 15;

class span_program {
 public:
  virtual ~span_program() = default;
  /// Before anything else: the pieces of this rank are 0 to pieces - 1, in the order of elements.
  virtual void begin(std::size_t /*pieces*/) {}
  /// `count` elements of array number k begin at p[k].  `thread` < threads of the request.  `at`: the indices of the
  /// first, where the request asks for them.  Arrays that are only read must not be written.
  virtual void run(std::size_t piece, unsigned thread, std::byte* const* p, std::size_t count,
                   const std::size_t* at) = 0;
  /// All runs of the piece have been.
  virtual void end_piece(std::size_t /*piece*/) {}
  /// Another thread has failed: whoever waits for a piece must not.
  virtual void stop() noexcept {}
};

struct span_array {
  array_core* core;
  std::size_t element_size;
  bool read;
  bool written;
};

/// Where pieces begin and end.
enum class piece_rule : std::uint8_t {
  by_threads,  ///< small arrays have smaller ones, so that there is something for each thread
  fixed,       ///< the same whatever the number of threads; cut where the rank's rows begin and end
  whole,       ///< the same on any number of ranks; the first element says whose a piece is
};

struct span_request {
  const char* verb = "";  ///< for messages and marks
  std::vector<span_array> arrays = {};
  piece_rule rule = piece_rule::by_threads;
  /// Elements of other ranks are read too: begin() brings together what all have written.
  bool reads_others = false;
  bool indices = false;      ///< each run is of one row, and the program is told where it begins
  std::uint64_t memory = 0;  ///< that the program takes for itself
  pass_options options = {};
};

/// One call of an algorithm: begin(), pass() as often as it says, finish().
class span_run {
 public:
  /// Throws usage_error where arrays do not fit together, or memory has no room for the pass.
  explicit span_run(const span_request& r);
  ~span_run();
  span_run(const span_run&) = delete;
  span_run& operator=(const span_run&) = delete;

  unsigned threads() const noexcept;
  /// Marks what is written; so many passes will be made, the last of which writes.
  void begin(unsigned passes = 1);
  /// An exception of one rank is thrown on all ranks.
  void pass(span_program& program);
  /// The bytes that `mine` returns on each rank, by rank.  An exception of one rank is thrown on all ranks.
  std::vector<std::vector<std::byte>> gathered(const std::function<std::vector<std::byte>()>& mine);
  /// For reads that follow at once: an array's elements from one address on, which may be those of other ranks.
  void bring_in(const array_core& a, const void* first, std::size_t bytes) const;
  int rank() const noexcept;
  int ranks() const noexcept;
  /// Durable where that was asked for.
  pass_statistics finish();

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace ooc::detail
