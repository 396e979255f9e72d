// sync() and sync_halo(): every rank writes back, tells the others which blocks it wrote (the write
// notices), and forgets what they wrote.  In the checking mode it also tells which elements it
// accessed, and all look for conflicts.
//
// Each block has a mark, which its first write sets and only a sync clears: it outlives the eviction of the block.
// The exchange of the notices is the barrier, too.  When it ends, the data of all ranks are in the store, and
// whatever is loaded from then on is current.  There is no second barrier: a rank that is ahead may write already,
// but only elements that the others may not read before the next sync.  Notices of up to 256 bytes travel in the
// header that says which call a rank has made (call_header).
//
// sync(durable): after the exchange rank 0 asks the I/O nodes, which make durable what anybody has written, and at
// the same time the last rank asks the metadata service.  Each rank has told, with its notices, in which epochs of the
// servers it has written what is not durable yet; where a server is in another one now, its machine has lost its power
// meanwhile, and the sync fails.  A second exchange tells all ranks the outcome.
//
// sync_halo() is a sync of those blocks alone that hold rows near a border between parts.  The marks of the others
// stay, and these are written only to make room.  Each rank then begins to load the rows before its part, where the
// next sweep begins.
//
// Where a block cannot be dropped, as another thread has pinned or written it during the call, the sync throws
// errc::busy, and the next one of any kind drops it.  A plain sync() and a sync_halo() throw that on this rank alone:
// the exchange has ended, the others need nothing of this rank and go on, and a second exchange would cost every sync
// as much again.  This rank has done its part; if it repeats the call alone, it meets the others in their next one. The
// other kinds, which meet once more, throw on all ranks.
//
// In the checking mode both drop all blocks, so that the first read of every epoch is seen.  Writes that a
// sync_halo() has not shown to others stay in the log, apart from new ones: two accesses are not compared twice.
//
// Owner: made for one call, and refers to the array.  Collective: what one rank throws, all throw, but for errc::busy
// as above.
// Threads: one, with no other use of the array meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

class write_exchange {
 public:
  explicit write_exchange(shared_array& array) noexcept : array_(array) {}

  /// As in array_ranks.
  void sync(durability d);
  void sync_halo(std::size_t rows);
  /// A sync whose end all ranks wait for: what it could not forget on one of them, all throw, and nobody goes on to
  /// change the file ("commit of 'a'").
  void sync_before(const std::string& change);
  /// The rest of sync() for an array that closes, in the checking mode: nobody looks at it any
  /// more.
  void check_last();

 private:
  using notices = std::vector<process_group::bytes>;  ///< one from each rank

  std::vector<block_range> halo_blocks(std::size_t rows) const;
  notices exchange_writes(const std::string& call, std::span<const block_range> which, bool durable = false);
  void make_durable(const notices& told) const;
  void take_in(const std::string& call, const notices& told);
  void take_in_alone(const std::string& call, const notices& told);
  void forget_others_writes(const std::string& call, const notices& told);
  void report_conflicts(const notices& told) const;

  shared_array& array_;
  std::uint64_t written_back_ = 0;  // the moment after which this rank has told what is unsynced
};

}  // namespace ooc::detail
