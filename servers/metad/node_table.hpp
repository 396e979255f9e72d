// The I/O servers of the store: where they are, and which of them are up.
//
// Their registrations are kept in the database, so that a restarted server knows whose folder is node 2 even before
// node 2 is back.  Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/namespace/sqlite.hpp"

namespace ooc::metad {

struct node_registration {
  std::uint32_t node = 0;
  std::string uuid;                    ///< of the folder with the stripe objects
  std::vector<std::string> addresses;  ///< at least one
  std::uint64_t incarnation = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_free = 0;
};

class node_table {
 public:
  /// An I/O server that has not been heard for so long is down; it sends a sign of life every 2 s.
  static constexpr std::chrono::seconds silence_limit{10};
  using clock = std::chrono::steady_clock;

  /// Has a table of its own in the database of the name space.  `gateways`: the nodes are those of a store in RADOS.
  node_table(storage::sqlite::connection& database, std::uint32_t nodes, bool gateways = false);

  /// Registers, or hears again, an I/O server whose connection is `connection` (any number that no
  /// other connection has).  True where it is news.  Throws usage_error for an index that the store
  /// does not have, for a folder that is not the one which the node had before, and for a folder
  /// that is another node.
  bool enlist(const node_registration& r, std::uint64_t connection);
  /// The connection has ended.
  void lost(std::uint64_t connection);
  /// The node's folder is not there, as who starts the servers has seen, so nobody waits for a node that was there
  /// before until it registers.
  void set_missing(std::uint32_t node);
  /// Forgets which folder the node had; another may take its place.
  void forget(std::uint32_t node);

  struct state {
    node_registration known;  ///< without uuid: has never registered
    bool up = false;
    std::string refused;  ///< why the server that tries to register as this node may not, or there is none; else empty
  };
  std::vector<state> states() const;

 private:
  struct row {
    node_registration known;
    std::uint64_t connection = 0;
    clock::time_point heard{};
    std::string refused;  // the last registration, why, until:
    clock::time_point refused_until{};
  };
  void require_right(const node_registration& r) const;
  void keep(const node_registration& r);

  storage::sqlite::connection& connection_;
  const bool gateways_;
  std::vector<row> rows_;
};

}  // namespace ooc::metad
