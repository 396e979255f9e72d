// The shared pointer of a file that ranks of several hosts have open: a position that each of them can advance.
//
// It is the attribute `position` of a hidden, empty file beside the file, ".shared-pointer-TOKEN", where only the ranks
// of one opening know the token.  The first one to need it makes it; who closes the file last removes it.  A program
// that is killed leaves it behind.  Each step holds the hidden file's size lock, which the metadata service keeps: no
// rank waits for another one to call MPI.
//
// Any thread may call.  Throws ooc::error; EACCES where the folder may not be written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/base/mutex.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::mpiio {

class shared_pointer {
 public:
  /// Of the file at `path`.
  shared_pointer(std::shared_ptr<storage::store_core> core, const std::string& path, std::uint64_t token);

  /// Moves it on by so many bytes; returns where it was.
  std::uint64_t advance(std::uint64_t bytes);
  void move_to(std::uint64_t position);
  /// Where it is; 0 where it was never moved.
  std::uint64_t position();
  /// Removes its file, if there is one.
  void remove();

 private:
  storage::file_id find();
  storage::file_id find_or_make();
  std::uint64_t read(storage::file_id id);
  void write(storage::file_id id, std::uint64_t position);

  const std::shared_ptr<storage::store_core> core_;
  const std::string file_;
  mutex mutex_;
  storage::file_id id_ OOC_GUARDED_BY(mutex_) = 0;  ///< 0: not known yet
};

}  // namespace ooc::mpiio
