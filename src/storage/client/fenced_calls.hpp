// Calls whose connection has ended.  They wait until the server has confirmed, on another
// connection, that it will do nothing more for them: that is a fence.
//
// A call that is given up meanwhile leaves its connection behind where it changes something.  The server may still do
// it, and must not after anything that is asked later: everything else waits for that fence too (owes_fence).
//
// One fence at a time, for all connections that were lost until then.  Guarded by the mutex of the
// io_client it belongs to.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "storage/client/remote_call.hpp"

namespace ooc::storage {

class fenced_calls {
 public:
  using connections = std::vector<std::uint64_t>;

  void add(call_ptr c, std::uint64_t connection) { waiting_.emplace_back(std::move(c), connection); }
  /// The connections that a fence must name now; it counts as under way until end_fence().  Empty: none is needed, or
  /// one is under way.
  connections begin_fence();
  /// The fence has ended.  If it was `confirmed`, returns the calls that may be sent again.
  std::vector<call_ptr> end_fence(const connections& fenced, bool confirmed);
  /// Forgets the calls that have been answered, because their time was up.
  void forget_answered();
  /// True where the server may still change something that nobody waits for any more.
  bool owes_fence() const noexcept { return !given_up_.empty(); }

 private:
  std::vector<std::pair<call_ptr, std::uint64_t>> waiting_;
  std::set<std::uint64_t> given_up_;  // connections
  bool fencing_ = false;
};

}  // namespace ooc::storage
