// Transfers between a file and memory of an algorithm, several requests in flight at once.
//
// An element_file is an array past its blocks, or a temporary file, as a sequence of elements.  A
// direct_transfer belongs to one buffer: begin_...() starts to fill or to write it, wait() returns when
// that has ended.  Long transfers go as several requests, which the threads of the store share.
//
// Owner: the algorithm.  The memory outlives the transfer, whose destructor waits.  Threads: one at a
// time, which may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "oocarray/error.hpp"
#include "runtime/array/direct_array.hpp"
#include "storage/base/in_flight.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::detail {

/// Elements of one size, one after the other.
class element_file {
 public:
  element_file(const direct_array& a, std::size_t element_size)
      : file_(&a.file()), array_(&a), element_size_(element_size) {}
  element_file(const storage::striped_file& f, std::size_t element_size) : file_(&f), element_size_(element_size) {}

  const storage::striped_file& file() const noexcept { return *file_; }
  std::size_t element_size() const noexcept { return element_size_; }
  request elements(std::uint64_t first, std::uint64_t count) const {
    return array_ ? array_->elements(first, count) : request::contiguous(first * element_size_, count * element_size_);
  }

 private:
  const storage::striped_file* file_;
  const direct_array* array_ = nullptr;
  std::size_t element_size_;
};

class direct_transfer {
 public:
  /// The one before has ended.
  void begin_read(const element_file& f, std::uint64_t first, std::uint64_t count, std::byte* to);
  void begin_write(const element_file& f, std::uint64_t first, std::uint64_t count, const std::byte* from);
  /// A request as it is.
  void begin_read(const storage::striped_file& f, request r, std::byte* to);
  void begin_write(const storage::striped_file& f, request r, const std::byte* from);
  /// Throws what the store says, once.
  void wait() { throw_if(requests_.wait()); }

 private:
  void in_requests(const element_file& f, std::uint64_t first, std::uint64_t count,
                   const std::function<void(request, std::size_t)>& each);

  in_flight requests_;
};

}  // namespace ooc::detail
