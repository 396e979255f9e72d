// Bytes of a file that were written and not sent yet: up to 1 MiB, in up to 1024 runs that do not overlap.
//
// Bytes that come for a place that is here replace those that are here.  All leave together, as one request, which
// the nodes may carry out in any order since no byte is in it twice.  Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>

#include "oocarray/request.hpp"

namespace ooc::mount {

/// Bytes of memory that begin with a page.
struct page_memory {
  page_memory() = default;
  page_memory(std::size_t bytes, bool zeros);

  struct give_back {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], give_back> data;
  std::size_t bytes = 0;
};

class write_buffer {
 public:
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;
  static constexpr std::size_t most_runs = 1024;

  bool empty() const { return runs_.empty(); }
  bool full() const { return used_ == most_bytes; }
  bool overlaps(std::uint64_t begin, std::uint64_t end) const;
  /// One past the last byte of the file that is here; 0: none is.
  std::uint64_t file_end() const;

  /// Keeps so many of the first of `bytes`, not always all; 0: they find no place until release().  Throws
  /// std::bad_alloc.
  std::size_t put(std::uint64_t at, std::span<const std::byte> bytes);

  /// The place of everything in the file, and in the memory that release() gives.
  request wanted() const;
  /// Everything; then it is empty.
  page_memory release() noexcept;

 private:
  struct run {
    std::size_t memory, bytes;
  };

  page_memory memory_;
  std::map<std::uint64_t, run> runs_;  // by place in the file
  std::size_t used_ = 0;               // bytes of memory_
};

}  // namespace ooc::mount
