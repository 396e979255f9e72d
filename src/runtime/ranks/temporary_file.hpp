// Room in the store of an array, or in the folder of a file in place, for as long as an algorithm runs.
//
// The space is reserved when the file is made.  It has a passing name, under which nobody sees it, in the array's
// folder, and goes with this object, or after the death of the process when the store is opened again.  For an array of
// a group one file is made for all ranks: making it is collective, what one rank throws, all throw, and it goes with
// the object of rank 0, which must outlive the transfers of the others.
//
// Owner: the algorithm; the array outlives it.  Threads: file() by any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "oocarray/detail/array_core.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::detail {

class temporary_file {
 public:
  /// `purpose`: for messages, which call it '<path of the array>.sort'.  Throws io_error: ENOSPC.
  temporary_file(array_core& beside, std::uint64_t bytes, const std::string& purpose);
  ~temporary_file();
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  const storage::striped_file& file() const noexcept { return *file_.file; }

 private:
  void make(array_core& beside, std::uint64_t bytes, const std::string& purpose);
  void share(process_group& group, array_core& beside, std::uint64_t bytes, const std::string& purpose);

  std::shared_ptr<storage::store_core> store_;
  bool made_ = false;  ///< by this rank, which removes it
  storage::opened_file file_;
};

}  // namespace ooc::detail
