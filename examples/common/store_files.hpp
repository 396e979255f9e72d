// Files that an example makes in a store, and takes away again.
#pragma once

#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "oocarray/store.hpp"

namespace examples {

/// Removes the files named to it when it is destroyed, unless told to keep them.  Declare it before
/// the arrays, so that they are closed first.
class store_files {
 public:
  /// On ranks, rank 0 does it when all have come so far.
  store_files(ooc::store s, bool keep, const ranks& all)
      : store_(std::move(s)), keep_(keep), ranks_(all) {}
  ~store_files();
  store_files(const store_files&) = delete;
  store_files& operator=(const store_files&) = delete;

  /// Notes the file and returns its path; what an earlier run left there is removed.
  const char* fresh(const char* path);

 private:
  void remove(const char* path) noexcept;

  ooc::store store_;
  bool keep_;
  const ranks& ranks_;
  std::vector<const char*> paths_;
};

}  // namespace examples
