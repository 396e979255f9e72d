// The connection of a client to its metadata server, the calls on it and the leases tied to it.
//
// Thread-safe: calls take turns.  See remote_metadata.hpp for what is promised.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/client/contact_keeper.hpp"
#include "storage/client/metadata_connection.hpp"
#include "storage/client/outage.hpp"
#include "storage/client/remote_metadata.hpp"
#include "storage/client/unsynced_files.hpp"
#include "storage/wire/metadata_calls.hpp"

namespace ooc::storage {

class metadata_client : public std::enable_shared_from_this<metadata_client> {
 public:
  explicit metadata_client(remote_metadata_options options);

  /// Connects; waits as long as for any call.
  void connect();
  /// A call of the metadata service; numbers it if it changes something.
  wire::call_reply call(const wire::any_call& c, std::optional<std::chrono::milliseconds> within = {});
  /// Another question, which may be asked twice; returns the body of the answer.
  std::string ask(wire::frame_kind kind, const std::string& doing, std::chrono::milliseconds within);

  /// A lease for as long as the guard lives; empty where another is in the way, which is told.
  std::shared_ptr<void> take(file_id file, wire::lease_kind kind, claim_holder* in_the_way = nullptr);
  /// That of the size likewise; empty also where another thread has it.
  size_lock_ptr take_size(file_id file);
  /// See metadata_service.
  bool has_lost_claim(file_id file);
  /// What the server has acknowledged and not synced; names are file 0.
  unsynced_files& changes() noexcept { return changes_; }
  std::string name() const { return "metadata server " + options_.address; }
  /// Ends everything that the server keeps for this client, if it can be reached at once.
  void goodbye() noexcept;

 private:
  struct question;

  std::string exchange(question& q);
  void heard() OOC_REQUIRES(mutex_);
  void connect_once(deadline_point deadline) OOC_REQUIRES(mutex_);
  wire::call_reply ask_now(const wire::sent_call& c, deadline_point deadline) OOC_REQUIRES(mutex_);
  void restore_leases(deadline_point deadline) OOC_REQUIRES(mutex_);
  void tell_dropped(deadline_point deadline) OOC_REQUIRES(mutex_);
  wire::call_reply ask_for(file_id file, wire::lease_kind kind, std::uint64_t& number);
  void drop(const wire::drop_lease& l) noexcept;
  bool all_told();
  bool
  keep_in_touch() noexcept;  // false where there are leases to restore, or given back, and the server does not know it

  const remote_metadata_options options_;
  unsynced_files changes_;

  // Held through a call; taken before leases_mutex_.
  timed_mutex mutex_;
  metadata_connection connection_ OOC_GUARDED_BY(mutex_);
  outage outage_ OOC_GUARDED_BY(mutex_);
  std::atomic<unsigned> waiting_{0};                                         // callers of exchange()
  std::chrono::steady_clock::time_point last_try_ OOC_GUARDED_BY(mutex_){};  // that failed
  std::string store_uuid_ OOC_GUARDED_BY(mutex_);
  bool restored_ OOC_GUARDED_BY(mutex_) = true;  // on this connection, the leases
  std::uint32_t connections_ OOC_GUARDED_BY(mutex_) = 0;
  std::uint64_t sequence_ OOC_GUARDED_BY(mutex_) = 0;

  mutex leases_mutex_;
  std::map<std::uint64_t, wire::take_lease> leases_ OOC_GUARDED_BY(leases_mutex_);
  std::map<std::uint64_t, file_id> lost_claims_ OOC_GUARDED_BY(leases_mutex_);  // whose guards live
  std::vector<wire::drop_lease> dropped_ OOC_GUARDED_BY(leases_mutex_);         // the server has not been told yet
  std::set<file_id> sized_ OOC_GUARDED_BY(leases_mutex_);  // files whose size is locked here, or about to be
  std::uint64_t last_lease_ OOC_GUARDED_BY(leases_mutex_) = 0;

  // From the first thing on that the server keeps for this client; last: it uses the others.
  contact_keeper contact_{[this] { return keep_in_touch(); }};
};

}  // namespace ooc::storage
