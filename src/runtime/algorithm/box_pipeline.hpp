// The boxes of a copy on their way: some are being read, one is turned in memory by all threads, and each part of
// it that has been turned is being written.
//
// A *unit* is what is read whole before any of it is written: a box, or two boxes of a square
// matrix that change places.  Units touch different elements, so that their order does not matter;
// they are done in the order of the target's file.
//
// Memory: readers + writers buffers of a unit each.  A unit whose elements stay as they are, and in
// their order, is written from the buffer that it was read to.
//
// Owner: run_copy().  Threads: run() is called once, and makes its own; transfers end on threads of
// the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/box_permutation.hpp"
#include "runtime/algorithm/buffered_stream.hpp"
#include "runtime/array/direct_array.hpp"

namespace ooc::detail {

/// A box of the source, and where it goes.
struct box_move {
  extent_list from_lower, from_upper;
  extent_list to_lower, to_upper;

  std::size_t elements() const noexcept;
};

struct pipeline_plan {
  std::size_t from_size = 0, to_size = 0;  ///< bytes of an element
  extent_list from_unit, to_unit;          ///< where a box is best cut: multiples of these
  extent_list permutation;
  element_kernel kernel;
  bool as_it_is = false;  ///< a box is written as it was read
  std::size_t units = 0;
  std::size_t boxes = 1;     ///< of a unit, at most
  std::size_t elements = 0;  ///< of a box, at most
  std::function<std::vector<box_move>(std::size_t)> unit;
};

class box_pipeline {
 public:
  box_pipeline(pipeline_plan plan, algorithm_call& call);
  box_pipeline(const box_pipeline&) = delete;
  box_pipeline& operator=(const box_pipeline&) = delete;

  /// Elements of a box for which as much memory does.
  static std::uint64_t elements_for(const pipeline_plan& p, std::uint64_t memory);
  std::uint64_t memory_bytes() const noexcept;
  /// Moves all units through the memory, which is aligned to 4 KiB.  Throws what failed first.
  void run(const direct_array& from, const direct_array& to, std::byte* memory);

 private:
  /// The part of a box that is read, or turned and written, by one request.
  struct part_of_box {
    std::size_t box;                     ///< of the unit
    extent_list lower, upper;            ///< in the array
    std::size_t dimension, first, last;  ///< where the box is cut, and from where to where
    std::size_t offset, bytes;           ///< in the box's memory
  };

  static std::size_t box_bytes(const pipeline_plan& p, std::size_t element_size);
  std::byte* read_to(std::size_t box) const noexcept;
  std::byte* write_from(std::size_t box) const noexcept;
  std::size_t next();
  void begin_read(std::size_t unit, direct_transfer& t, std::byte* memory);
  void list_parts();
  void wait_for_memory();
  void wait_for_writes();
  std::size_t begin_turning(const part_of_box& p);
  void turn(std::size_t task);
  void begin_write(std::size_t part);
  static std::vector<part_of_box> cut(std::size_t box, const extent_list& lower, const extent_list& upper,
                                      const extent_list& multiple, std::size_t element_size);

  const pipeline_plan plan_;
  algorithm_call& call_;
  const direct_array* from_ = nullptr;
  const direct_array* to_ = nullptr;
  std::byte* turned_to_ = nullptr;
  std::vector<std::vector<box_move>> moves_;  ///< of the units on their way, one after the other
  std::size_t turned_ = 0;                    ///< units that have been turned
  std::vector<part_of_box> parts_;            ///< of the next one, as it is written
  std::size_t part_ = 0;                      ///< of these, that have been turned
  bool alike_ = false;                        ///< they lie in memory as those of the unit before
  bool turning_ = false;                      ///< the next part is the work of the round
  std::optional<box_permutation> now_;
  std::size_t batch_ = 1;                        ///< how many of its tasks are one task of the round
  std::optional<buffered_stream> units_;         ///< as they are read
  std::optional<buffered_stream> turned_parts_;  ///< of the last unit, as they are written
};

}  // namespace ooc::detail
