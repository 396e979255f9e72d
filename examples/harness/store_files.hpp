// Files that an example makes in a store, or finds there, and takes away at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "harness/command_line.hpp"
#include "harness/ranks.hpp"
#include "oocarray/ooc_array.hpp"
#include "oocarray/store.hpp"

namespace examples {

/// Removes the files named to it when it is destroyed, unless the options keep them.  Declare it
/// before the arrays, so that they are closed first.
class store_files {
 public:
  /// On ranks, rank 0 does it when all have come so far.
  store_files(ooc::store s, const common_options& o, const ranks& all)
      : store_(std::move(s)), creates_(o.creates()), keep_(o.keeps()), ranks_(all) {}
  ~store_files();
  store_files(const store_files&) = delete;
  store_files& operator=(const store_files&) = delete;

  /// Notes the file and returns its path; what an earlier run left there is removed.
  const char* fresh(const char* path);
  /// Notes the file and returns its path, whether or not there is one.
  const char* note(const char* path);
  /// A number that an earlier run has left with the file (as an attribute); `otherwise` where there is
  /// none.  On every rank.
  std::uint64_t number(const char* path, const char* key, std::uint64_t otherwise) const;
  /// Leaves one for later runs; rank 0 does.
  void leave(const char* path, const char* key, std::uint64_t value);
  /// An array that is made, or the one that an earlier run has left (--stage compute).
  template <class T, std::size_t N>
  ooc::ooc_array<T, N> array(ooc::runtime& rt, const char* path, const std::array<std::size_t, N>& extents,
                             const ooc::array_options<T>& options) {
    if (creates_) return {rt, store_, fresh(path), ooc::create, extents, options};
    return {rt, store_, note(path), ooc::open, extents, options};
  }

 private:
  void remove(const char* path) noexcept;

  ooc::store store_;
  bool creates_;
  bool keep_;
  const ranks& ranks_;
  std::vector<const char*> paths_;
};

}  // namespace examples
