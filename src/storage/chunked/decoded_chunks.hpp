// Chunks that have been decoded, as many as there is room for; those used last stay.  A walk that comes back to more
// chunks than there is room for would find none of those.  So where the chunk that comes has gone only lately, one of
// the last used goes for it, and the others stay until the walk is back.
//
// Who needs a chunk either has it, or is to decode it, or is told when another thread has:
//
//     not here ── need(): decode ──> being decoded ── arrived(): bytes ──> here ── room for others ──> not here
//                                          └──────── arrived(): failure ──> not here
//
// Any thread may call; nothing waits.  Only need() allocates, and where it throws, nobody waits for anything: no
// chunk is left that nobody decodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
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
  using bytes = std::shared_ptr<std::byte[]>;
  /// Does not throw.  `chunk` lives as long as somebody uses it.
  using user = std::function<void(const failure&, const bytes& chunk)>;

  explicit decoded_chunks(std::size_t most) : room_(static_cast<std::ptrdiff_t>(most)) {}

  /// True: the caller is to decode the chunk, and to call arrived().  `use` is called once, here, by who calls
  /// arrived(), or, where the chunk is here, now.
  bool need(std::uint64_t chunk, user use);
  void arrived(std::uint64_t chunk, const failure& f, bytes decoded);

  // For who changes chunks, while nobody else needs this one:

  bool has(std::uint64_t chunk);
  /// Takes the chunk out, with the room for it.  Null: it is not here, and there is less room for others all the same.
  bytes take(std::uint64_t chunk);
  /// The chunk, taken before, is here again, and is this.  Where there is no memory for that, only its room is.
  void put(std::uint64_t chunk, bytes decoded);
  /// It does not come back, but the room for it does.
  void give_room();

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

  bool is_full() const OOC_REQUIRES(mutex_) { return std::ssize(order_) > std::max<std::ptrdiff_t>(room_, 1); }
  /// For the first of order_.
  bytes make_room(bool comes_back) OOC_REQUIRES(mutex_);

  mutex mutex_;
  std::ptrdiff_t room_ OOC_GUARDED_BY(mutex_);  ///< the most that are here; one may always be
  std::minstd_rand random_ OOC_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, slot> slots_ OOC_GUARDED_BY(mutex_);
  numbers order_ OOC_GUARDED_BY(mutex_);  ///< of those that are here, the last used first
  numbers gone_ OOC_GUARDED_BY(mutex_);   ///< as many, that went last, the oldest first
};

}  // namespace ooc::storage
