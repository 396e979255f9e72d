// The capabilities that a client holds, renewed at half their lives while anybody uses them.
//
// A thread of its own does the renewing.  Where the metadata server cannot be reached the old
// capability stays, the I/O servers go on accepting it while they cannot reach the metadata server
// either, and renewing is tried again every few seconds.  Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/base/ticker.hpp"
#include "storage/service/io_service.hpp"

namespace ooc::storage {

/// A capability as it came from the metadata server.
struct granted_capability {
  std::string bytes;
  std::chrono::seconds life{0};  ///< until it expires
  std::uint64_t size = 0;        ///< of the file, in bytes: it is good for no more of it
};

class capability_renewal {
 public:
  /// Asks for a new capability; throws ooc::error.
  using renewal = std::function<granted_capability(file_id file, std::uint32_t rights)>;

  explicit capability_renewal(renewal renew);
  capability_renewal(const capability_renewal&) = delete;
  capability_renewal& operator=(const capability_renewal&) = delete;

  /// The capability for these rights, holding what was granted now; one object for all who hold it.
  capability_ptr keep(file_id file, std::uint32_t rights, granted_capability granted);
  /// The capability of who has these rights and needs nothing yet: it is asked for when the file has bytes.
  capability_ptr keep_for_later(file_id file, std::uint32_t rights);
  /// The one in use for these rights or more; empty where there is none.
  capability_ptr in_use(file_id file, std::uint32_t rights) const;
  /// The same, good for `size` bytes of the file: renewed where the file was smaller when it was
  /// granted.  Throws as the renewal does.
  capability_ptr in_use(file_id file, std::uint32_t rights, std::uint64_t size);
  /// No renewing any more; before what renew() needs goes.
  void stop() { ticker_.stop(); }

 private:
  class capability;
  /// The rights that the one in use was granted for, and itself.
  std::pair<std::uint32_t, std::shared_ptr<capability>> find(file_id file, std::uint32_t rights) const;
  using clock = ticker::clock;

  ticker::clock::time_point renew_due();

  const renewal renew_;
  mutable mutex mutex_;
  std::map<std::pair<file_id, std::uint32_t>, std::weak_ptr<capability>> capabilities_ OOC_GUARDED_BY(mutex_);
  // So many, and those that nobody holds are taken out.
  std::size_t prune_at_ OOC_GUARDED_BY(mutex_) = 64;
  // When the first is due.
  clock::time_point next_ OOC_GUARDED_BY(mutex_) = ticker::when_woken;
  ticker ticker_{[this] { return renew_due(); }};  // last: ends first
};

}  // namespace ooc::storage
