// How a sort divides the memory that it has: the runs, and how they are merged.
//
// Arithmetic without I/O.  Sizes are elements unless they say bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ooc::detail {

/// Elements of a file that follow each other.
struct run_part {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const noexcept { return end - first; }
};

struct sort_facts {
  std::uint64_t elements = 0;  ///< of the rank that has most
  std::size_t element_size = 1;
  bool scratch = false;    ///< sorting takes as much memory again, which is lent to it
  bool allocates = false;  ///< sorting allocates half as much memory by itself
  unsigned threads = 1;
  std::uint64_t ranks = 1;  ///< whose runs are merged together by the last merge
};

/// An array that fits in memory is one part for each thread, which are sorted and then merged on their way to
/// the file, if there is one rank only.  A larger one is read into slots, each a run: one is read, one written,
/// and one sorted by each thread.  Then each run has two buffers of `piece` elements, and the result `outputs`
/// of `output`.
struct sort_plan {
  static constexpr std::size_t outputs = 3;

  bool in_memory = false;
  unsigned threads = 1;  ///< that sort
  std::size_t run = 0;   ///< at most, in one slot or part
  std::size_t slots = 0;
  std::uint64_t runs = 0;   ///< of the elements
  std::size_t granule = 1;  ///< so many elements end where a chunk of the file ends
  std::size_t fan_in = 0;   ///< runs that are merged at once
  unsigned merges = 0;      ///< passes that merge
  std::size_t piece = 0;
  std::size_t output = 0;
  std::uint64_t lent_bytes = 0;   ///< memory to allocate
  std::uint64_t taken_bytes = 0;  ///< off the budget: with what sorting allocates by itself
};

/// The least memory in bytes with which elements of this size can be sorted.
std::uint64_t least_sort_memory(const sort_facts& f);
/// For at least so many bytes of memory.
sort_plan plan_sort(const sort_facts& f, std::uint64_t memory_bytes);

/// So many elements end where a 4 KiB chunk ends; 1 if that is more than `most`.
std::size_t chunk_granule(std::size_t element_size, std::size_t most);

}  // namespace ooc::detail
