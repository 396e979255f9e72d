// The elements of an array that this process has written and read since the last sync(), for the checking mode.
//
// Elements are told as bytes of the array's memory image (block b begins at b * block_bytes), which is the same on
// all ranks; blocks that were read are told as blocks.  A block that is loaded for a read counts as read; at() logs
// the element itself.  All blocks have twins then, so what a store sends is exactly what the rank has written.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/geometry/array_geometry.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

/// Runs of bytes, ascending and merged.
class run_set {
 public:
  void add(byte_run r);
  void add(const run_set& more);
  const std::vector<byte_run>& runs() const;
  /// The bytes that lie in none of these blocks, which ascend.
  run_set outside(std::span<const block_range> blocks, std::uint64_t block_bytes) const;

 private:
  void compact() const;

  mutable std::vector<byte_run> runs_;
  mutable std::size_t sorted_ = 0;  ///< so many of the first ones are ascending and merged
};

/// One rank's accesses in one epoch.
struct accesses {
  run_set written;  ///< elements that were changed
  /// Elements that were changed before the last sync_halo(), which told of them and did not show them to others: to
  /// be compared with what the others do from then on.
  run_set shown_to_nobody;
  run_set read;                          ///< elements that were read through at()
  std::vector<block_range> read_blocks;  ///< blocks that were read in another way; ascending

  void add(const accesses& more);
  void add(const std::vector<block_range>& blocks_read);
  /// The accesses that stay on record after these have been told, where writes to `shown` were shown to others.
  accesses left_by(std::span<const block_range> shown, std::uint64_t block_bytes) const;

  std::vector<std::byte> packed() const;
  static accesses unpacked(std::span<const std::byte> bytes);
};

class access_log {
 public:
  void note_written(byte_run r) {
    const lock_guard lock(mutex_);
    now_.written.add(r);
  }
  void note_read(byte_run r) {
    const lock_guard lock(mutex_);
    now_.read.add(r);
  }
  /// The accesses that were noted since the last call.
  accesses take() {
    const lock_guard lock(mutex_);
    return std::exchange(now_, {});
  }
  /// Notes them again.
  void put_back(const accesses& a) {
    const lock_guard lock(mutex_);
    now_.add(a);
  }

 private:
  mutex mutex_;
  accesses now_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::detail
