// The lock under which the database of a local store passes from "nobody writes" to "there is a log".
//
// docs/decisions/0017-read-only-opening.md has the states.  A writer holds it alone while it opens the database,
// which makes the log and its index where they are missing.  Who may write nothing, and finds no log, holds it
// with others like him during each call, so that no writer can begin in between.
//
// It is a flock on the file `oocarray-node`, which every store has and which needs to be readable only.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "storage/base/file_descriptor.hpp"

namespace ooc::storage {

/// Takes a lock of the whole file (flock): LOCK_SH or LOCK_EX.  Says after 2 s on standard error that it waits for
/// `whom`.  Returns an errno: ETIMEDOUT where others hold it for longer than `patience`.
int lock_within(int fd, int kind, std::chrono::milliseconds patience, const std::string& whom);

enum class opening { alone, with_others };

class opening_lock {
 public:
  opening_lock() = default;  ///< none
  /// Waits until nobody is in the way.  Throws io_error, ETIMEDOUT after 60 s.
  opening_lock(const std::filesystem::path& node_file, opening how);
  opening_lock(opening_lock&&) noexcept = default;
  opening_lock& operator=(opening_lock&& o) noexcept;
  ~opening_lock();

 private:
  file_descriptor fd_;
};

}  // namespace ooc::storage
