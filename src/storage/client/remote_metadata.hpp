// The metadata service of a served store: the client of ooc-metad.
//
// One connection, one call at a time: threads take turns.  A lost connection is made again, with
// growing pauses, and the call under way sent again; the server knows a changing call by its number
// and never runs one twice, not even after it was killed and started again.  Every call ends within
// the deadline; where it is not known then whether a change was made, the text says so.
//
// A refusal of the server is thrown as the local implementation would (kind, code and text); an obstacle that keeps a
// call from being answered is thrown as an io_error that names server, call, cause and remedy.
//
// Locks and claims (lock_size, claim_writer) are leases of this client: they survive a lost
// connection and a restart of the server, if the client is back within the server's grace period
// (30 s unless set otherwise).  Capabilities are renewed while they are held (capability_renewal.hpp).
//
// Must not be used in the child of a fork().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/client/capability_renewal.hpp"
#include "storage/client/remote_node.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::wire {
struct call_reply;
}

namespace ooc::storage {

struct remote_metadata_options {
  std::string address;  ///< of the metadata server
  /// Where another server may take its place: the address of who serves now, asked before each connection.  May throw
  /// io_error where that cannot be known now.
  std::function<std::string()> lookup;
  /// Called on each connection, when the server knows of it and before it is asked for anything: for what others must
  /// know of a client that may hold something.  May throw io_error where that cannot be done now.
  std::function<void()> introduce;
  /// metadata_service::join(); empty: nodes compare claims.
  std::function<std::shared_ptr<void>(const std::string& claimant, file_id, const write_claim&)> join;
  std::string store_uuid;  ///< empty: whatever store it serves
  client_identity client;
  std::chrono::milliseconds deadline{30'000};  ///< of every call
};

/// An I/O server as the metadata server knows it.
struct node_info {
  std::vector<std::string> addresses;  ///< empty: has never registered
  std::string uuid;                    ///< of its folder
  std::uint64_t incarnation = 0;
  bool up = false;
  bool retired = false;  ///< it was emptied, and is not to come any more
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_free = 0;
  std::string refused;  ///< why the server that tries to be this node may not; empty: none tries
};

struct cluster_info {
  std::string store_uuid;
  std::vector<node_info> nodes;  ///< all of the store, in order
  std::uint64_t asker = 0;       ///< the number of the connection that asked: no other one has it
  bool gateways = false;         ///< the nodes are gateways of a store in RADOS (gateways.hpp)
};

/// Statistics of a metadata server, in its own words.
struct metadata_statistics {
  std::string version;
  std::uint64_t started_ns = 0;  ///< since 1970, UTC
  std::uint64_t calls = 0;       ///< answered, failures included
  std::uint64_t failures = 0;
  std::uint64_t connections = 0;  ///< open now
  std::uint64_t clients = 0;      ///< with a connection, a lease or a file being made
  std::uint64_t leases = 0;
  std::map<std::string, std::uint64_t> operations;  ///< calls of each kind: "create", ...
};

class metadata_client;

class remote_metadata final : public metadata_service {
 public:
  /// Connects.  Throws usage_error where the server refuses, io_error where it does not answer.
  explicit remote_metadata(remote_metadata_options options);
  /// Says goodbye: leases end, files that were not committed are abandoned.
  ~remote_metadata() override;

  /// `within`: the time for an answer, where that is not the deadline of every call.
  cluster_info cluster(std::optional<std::chrono::milliseconds> within = {});
  metadata_statistics statistics();

  metadata_answer answer(const metadata_call& call) override;
  size_lock_ptr lock_size(file_id id) override;
  std::shared_ptr<void> claim_writer(file_id id, bool together, claim_holder* in_the_way = nullptr) override;
  bool has_lost_claim(file_id id) override;
  known_epoch epoch_of(const entry& file) const override;
  void synced_elsewhere(std::uint64_t before) override;
  std::string claimant() const override { return claimant_; }
  std::shared_ptr<void> join(const std::string& claimant, file_id id, const write_claim& claim) override {
    return join_ ? join_(claimant, id, claim) : nullptr;
  }

 private:
  failure untold_loss() override;
  entry created(calls::create q);
  entry found(calls::find q);
  entry with_capability(wire::call_reply reply);

  const std::chrono::milliseconds deadline_;
  const std::function<std::shared_ptr<void>(const std::string&, file_id, const write_claim&)> join_;
  const std::string claimant_;
  std::shared_ptr<metadata_client> link_;    // shared with the guards of leases
  std::atomic<std::uint64_t> told_loss_{0};  // unsynced_files::last_loss()
  capability_renewal capabilities_;
};

}  // namespace ooc::storage
