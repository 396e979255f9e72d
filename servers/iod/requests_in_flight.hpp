// The requests of one connection that have not been answered yet, and what memory their descriptions
// hold.
//
// One mutex; nothing of others is called under it.  Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/fair_share.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::iod {

/// Throws wire::connection_error: the peer has broken the protocol.
[[noreturn]] void broken(const std::string& why);

class requests_in_flight {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr auto still_busy = std::chrono::seconds(1);  ///< a client is told this often

  /// `memory` is held until it ends.  `coming`: parts of it are still to come.  Throws
  /// wire::connection_error where there is one of this id.
  void begin(std::uint64_t id, servers::fair_share::claim memory, bool coming = false);
  /// All its parts have come.
  void all_came(std::uint64_t id);
  /// The client hears of the request some other way than by busy().
  void touch(std::uint64_t id);
  /// Its last frame is about to be sent: the client is not told of it any more.
  void answered(std::uint64_t id);
  void end(std::uint64_t id) OOC_EXCLUDES(mutex_);
  /// It only waits for other connections to be over, which may wait for this one.
  void only_waits(std::uint64_t id);

  /// No request begins any more: the connection is over with the last of them that does not only wait.
  void no_more() OOC_EXCLUDES(mutex_);
  /// Calls `done` when the connection is over; at once if it is.
  void when_over(std::function<void()> done) OOC_EXCLUDES(mutex_);

  /// Those that the client has not heard of for a while, and is to be told now.  A request of which
  /// parts are to come is not among them where nothing has been received since `receiving`.
  std::vector<std::uint64_t> busy(clock::time_point now, clock::time_point receiving);
  /// True while parts of a request are to come.
  bool coming() const;
  /// True where there are none.
  bool none() const;

 private:
  struct request {
    clock::time_point spoken;  // of it, last
    bool coming = false;
    bool answered = false;
    bool only_waits = false;
    servers::fair_share::claim memory;
  };

  mutable mutex mutex_;
  std::map<std::uint64_t, request> active_ OOC_GUARDED_BY(mutex_);
  bool ended_ OOC_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> over_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::iod
