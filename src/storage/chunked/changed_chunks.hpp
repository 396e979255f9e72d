// Chunks that have been written to and not been packed since: what they hold is here, and nowhere else.
//
//     in its file ── add() ──> changed ── packed and written, remove() ──> in its file
//
// Who looks at a chunk, changes it or writes its file holds mutex_of() of it meanwhile; chunks may share one, so nobody
// holds two.  Any thread may call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "storage/base/mutex.hpp"

namespace ooc::storage {

class changed_chunks {
 public:
  using bytes = std::shared_ptr<std::byte[]>;

  /// `most`: from how many on oldest_of_many() names one.
  explicit changed_chunks(std::size_t most) : most_(most) {}

  mutex& mutex_of(std::uint64_t chunk) noexcept { return held_[chunk % held_.size()]; }

  // For who holds mutex_of(chunk):

  /// Null: it has not been changed.
  bytes find(std::uint64_t chunk) const;
  void add(std::uint64_t chunk, bytes holds);
  /// So many bytes have been written to it.  Returns how many have been in all.
  std::uint64_t note(std::uint64_t chunk, std::uint64_t written);
  void remove(std::uint64_t chunk);

  // For anybody:

  /// Where there are as many as there may be, and `chunk` is none of them: the one that was changed first.
  std::optional<std::uint64_t> oldest_of_many(std::uint64_t chunk) const;
  std::vector<std::uint64_t> all() const;

 private:
  struct slot {
    bytes holds;
    std::uint64_t written = 0;
    std::list<std::uint64_t>::iterator at;
  };

  const std::size_t most_;
  std::array<mutex, 64> held_;
  mutable mutex mutex_;  ///< behind those
  std::unordered_map<std::uint64_t, slot> slots_ OOC_GUARDED_BY(mutex_);
  std::list<std::uint64_t> order_ OOC_GUARDED_BY(mutex_);  ///< the one that was changed first first
};

}  // namespace ooc::storage
