// Chunks that have been decoded, as many as there is room for; those used last stay.  A walk that comes back to more
// chunks than there is room for would find none of those.  So where the chunk that comes has gone only lately, one of
// the last used goes for it, and the others stay until the walk is back.
//
// Who needs a chunk either has it, or is to decode it, or is told when another thread has:
//
//     not here ── need(): decode ──> being decoded ── arrived(): bytes ──> here ── room for others ──> not here
//                                          └──────── arrived(): failure ──> not here
//
// Any thread may call; nothing waits.  Only need() allocates, and where it throws, nobody waits for anything: no chunk
// is left that nobody decodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::storage {

class decoded_chunks {
 public:
  using bytes = std::shared_ptr<const std::byte[]>;
  /// Does not throw.  `chunk` lives as long as somebody uses it.
  using user = std::function<void(const failure&, const bytes& chunk)>;

  explicit decoded_chunks(std::size_t most) : most_(most) {}

  /// True: the caller is to decode the chunk, and to call arrived().  `use` is called once, here, by who calls
  /// arrived(), or, where the chunk is here, now.
  bool need(std::uint64_t chunk, user use);
  void arrived(std::uint64_t chunk, const failure& f, bytes decoded);

 private:
  using numbers = std::list<std::uint64_t>;
  struct slot {
    bytes decoded;              ///< null: not here
    std::vector<user> waiting;  ///< not empty: it is being decoded
    numbers own;                ///< the chunk's number, where no list below has it
    numbers::iterator at;       ///< where one has it
    bool gone = false;          ///< that is gone_
    bool comes_back = false;    ///< it was, when somebody needed it
  };

  /// For the first of order_.
  bytes make_room(bool comes_back) OOC_REQUIRES(mutex_);

  const std::size_t most_;
  mutex mutex_;
  std::minstd_rand random_ OOC_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, slot> slots_ OOC_GUARDED_BY(mutex_);
  numbers order_ OOC_GUARDED_BY(mutex_);  ///< of those that are here, the last used first
  numbers gone_ OOC_GUARDED_BY(mutex_);   ///< as many, that went last, the oldest first
};

}  // namespace ooc::storage
