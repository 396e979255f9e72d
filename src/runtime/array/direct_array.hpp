// The elements of an array past its blocks in memory: what algorithms read and write in pieces of their own.
//
// An algorithm that knows what it needs next moves it with long requests between the file and memory
// that it has taken off the budget (lent_memory).  No block is mapped, and nothing faults.  While a
// direct_array is there, the file holds all that the program has written: making one writes modified
// blocks back.  One for writing also takes back promises to overwrite, and drops all blocks when it
// is made and when it ends, so that the program sees what was written.
//
// Nothing here waits for other ranks: an algorithm on several ranks makes it on all of them together, and
// ends it when all have ended their transfers (algorithm_call::together()).
//
// Owner: the algorithm; the array outlives it.  Threads: any; no other thread may use the array
// meanwhile.  Completions as in io_service.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "oocarray/access.hpp"
#include "oocarray/detail/array_core.hpp"
#include "runtime/array/array_source.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::detail {

class local_array;

class direct_array {
 public:
  /// Throws usage_error (errc::busy) where a region of an array that is to be written is pinned, and
  /// what writeback() throws.  `operation`: "sort()", for messages.
  direct_array(local_array& a, access_mode mode, const char* operation);
  /// Drops blocks that another thread has brought in against the rules, modified or not.
  ~direct_array();
  direct_array(const direct_array&) = delete;
  direct_array& operator=(const direct_array&) = delete;

  const storage::striped_file& file() const noexcept { return *state_->file; }
  /// Elements in row-major order, wherever in the file they lie.
  request elements(std::uint64_t first, std::uint64_t count) const;
  /// The elements of a box, in memory row-major and packed.
  request box(box_view b) const;

 private:
  local_array& array_;
  const bool writes_;
  const array_source::state_ptr state_;
  const std::optional<std::uint64_t> run_;  ///< where elements in row-major order begin, if they lie in one run
};

}  // namespace ooc::detail
