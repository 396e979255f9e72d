// A file while it is copied to another one that is to take its place: nobody else writes it, or changes its size.
//
//     file_move move(store, file, "moved to other nodes");
//     ... copy what move.from() has to a file that is made ...
//     take_over(store, made, move.from().meta);
//
// Whoever opens it for writing meanwhile is not kept from that, and then it cannot be taken over (errc::conflict).
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// The file of `e` gets a new generation, and nodes refuse (errc::cut_off) writes of who has it open: they go on by
/// after_cut(), when the caller lets go of the lock of its size, which it holds.
opened_file end_writes(store_core& store, entry e);

class file_move {
 public:
  /// `to_be`: what for.  Throws errc::busy where somebody writes the file as an array, EACCES for who may not write it,
  /// and errc::conflict where another file has taken its path since `file` was looked up.
  file_move(store_core& store, const entry& file, const std::string& to_be);

  /// Open for reading as it is, or, of a file with commits, as of the last one.
  const opened_file& from() const noexcept { return from_; }

 private:
  const std::shared_ptr<void> alone_;
  const size_lock_ptr size_;
  opened_file from_;
};

}  // namespace ooc::storage
