// gather(), scatter() and accumulate(): elements by their indices, past the blocks where that is less
// to move.
//
// The indices are taken in batches, as many as the memory that the budget lends has room for, sorted,
// and cut at the borders of blocks into *groups*.  Of each group one look at its block decides:
//
//   - the block is in memory, in whatever state: it is pinned, and the elements are copied;
//   - it is on its way in or out, or somebody changes it: it is waited for, and looked at again;
//   - it is out, and the group touches half of its 4 KiB chunks or more (*dense*): it is loaded as a
//     sweep would load it, and the elements are copied;
//   - it is out: the elements are *listed*.  What is listed travels in requests of up to 2048 runs, in
//     the order of the file, several in flight, one message for each node and request.
//
// Why the outcome is that of element accesses, by the state of the block:
//
//   out                 A block is out only after every write to it in this process was acknowledged, so a gather
//                       finds in the store all that happened before.  A scatter takes the block
//                       (segment::keep_out(), busy) until the nodes have answered: nobody can load it meanwhile,
//                       change it, and later write the whole of it with the old elements.
//   out, promised       A gather leaves the promise.  A scatter ends it: else the first write would take what was
//                       scattered for not written, and store zeros.
//   queued, loading     Waits, then as ready.  Where the load fails, the list does too, as an exception.
//   ready, ro, rw,      The pin keeps the block, and what a promise left out of it is loaded.  For a scatter the pin is
//   inactive            for writing: the block is dirty, with a twin where it must have one, and on the record of
//                       sync().
//   flush, writing      The pin waits for the end of the store; a scatter's write is a later one.
//   busy                Waits and looks again.
//
// While a scatter keeps blocks out it waits for no block and touches no memory but its own: values are copied
// beforehand, what is in memory is served before or after, and signals are blocked.  So two scatters never wait for
// each other, nor the pager for one that waits for the pager.
//
// Memory: a quarter of the budget, at most 64 MiB, and at most half of what is spare.  Where not even one element
// has room, a call waits for the loans of other threads, unless its own thread has one.  Where a pin has no room,
// elements are touched instead, and a failed load then ends the process, as any touch.
//
// Ranks: a scatter sends exactly the elements that it was given, so ranks may scatter to different elements of a
// block.  The block is on the record of sync() before the request is sent, as one that fails may have arrived in
// part.  With owner_computes, indices outside the rank's part are refused before anything is sent.
//
// An accumulate is a gather, the operation on the copies, and a scatter, batch by batch, under the array's mutex of
// accumulations.  After a failure each element of a scatter is old or new, and later batches were not begun.
//
// Owner: the call, one object for each.  The memory is taken off the budget from construction to
// destruction.  Invariant: when a function returns or throws, no transfer is in flight and no block
// is kept out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oocarray/request.hpp"
#include "runtime/array/local_array.hpp"
#include "runtime/geometry/element_batch.hpp"
#include "runtime/pager/memory_budget.hpp"
#include "storage/base/in_flight.hpp"

namespace ooc::detail {

class element_transfer {
 public:
  /// For `count` indices.  `call` names the call, for messages; `log` may be null.  Throws usage_error
  /// (errc::budget_too_small) where the budget has no room for a single element.
  element_transfer(local_array& array, std::size_t count, access_log* log, std::string call);
  ~element_transfer();

  // The indices are within the extents.  What cannot be transferred is thrown, with array, node and
  // cause; see ooc_array for what it leaves.
  void gather(const element_indices& from, std::byte* to);
  void scatter(const element_indices& to, const std::byte* from);
  void accumulate(const element_indices& to, const std::byte* from, const element_operation& op);

 private:
  /// The places of one block, or of a grain: first <= i < last.
  struct group {
    segment_unit unit;
    std::size_t first, last;
    bool dense;
  };
  /// A run of bytes that travels by a list.
  struct piece {
    std::uint64_t in_file, in_staging, length;
  };
  class kept_out;

  void for_batches(const element_indices& list, const std::function<void()>& each);
  void transfer(access_kind kind);
  std::size_t end_of_group(std::size_t first, const segment_unit& u) const;
  bool is_dense(std::size_t first, std::size_t last, const segment_unit& u) const;
  bool list(const group& g, access_kind kind, kept_out& held);
  void send(access_kind kind);
  void settle(access_kind kind, kept_out& held);
  void serve(access_kind kind);
  void copy(const group& g, access_kind kind) const;
  template <class F>
  void for_each_run(const group& g, F&& f) const;
  void note_reads() const;
  [[noreturn]] void fail(const failure& f) const;

  local_array& array_;
  const array_source::state_ptr now_;
  access_log* const log_;
  const std::string call_;
  memory_budget::reservation memory_;
  std::size_t indices_ = 0;  ///< in a batch
  std::size_t pieces_in_request_ = 0;
  std::size_t requests_in_flight_ = 0;
  element_batch batch_;
  std::unique_ptr<std::byte[], void (*)(void*)> staging_;  ///< the elements at the batch's places
  std::vector<piece> pieces_;                              ///< to be sent
  std::vector<group> by_block_;                            ///< to be served from memory
  std::size_t listed_ = 0;                                 ///< pieces since the last settle()
  std::shared_ptr<in_flight> transfers_;
};

}  // namespace ooc::detail
