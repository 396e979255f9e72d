// Whether a request may be served: the capabilities that clients show, verified once and
// remembered.
//
// A capability works on connections of the user and the key that it was made for.  One that was good when
// this server first saw it stays good, past its expiry, while the metadata server is out of reach, on
// connections that are older than its expiry: a run that was admitted outlives it, and nobody new comes in.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "storage/base/mutex.hpp"
#include "storage/wire/capability.hpp"

namespace ooc::iod {

/// The user of a connection.
struct connected_user {
  std::uint32_t uid = 0;
  wire::holder_mark holder{};  ///< of the key
  std::int64_t since = 0;      ///< seconds since 1970
};

class capability_check {
 public:
  /// The store that capabilities must be for, and the key that they must be signed with.
  void set_store(const std::string& uuid, const wire::capability_public_key& key);
  /// Says whether the metadata server can be reached (renewals are possible then).
  void set_metadata_reachable(bool yes) noexcept { reachable_ = yes; }

  /// Why `capability` does not grant `who` these `rights` on the file that a client describes; no failure if
  /// it does.  The description must be what was signed, but for the size: that of a request to resize
  /// may be smaller than the signed one, and that of any other becomes so, as the file may have
  /// shrunk since the client opened it.
  failure check(const std::string& capability, storage::shape_ptr& file, std::uint32_t rights,
                const connected_user& who);

 private:
  std::atomic<bool> reachable_{false};
  mutex mutex_;
  std::string uuid_ OOC_GUARDED_BY(mutex_);
  std::optional<wire::capability_public_key> key_ OOC_GUARDED_BY(mutex_);
  std::unordered_map<std::string, wire::capability> known_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::iod
