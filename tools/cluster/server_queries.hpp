// Questions to the servers of a store, each asked by a connection of its own: they are answered, or
// not, whatever the others do.
//
// Failures throw ooc::error; the functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/client/remote_metadata.hpp"
#include "storage/wire/messages.hpp"

namespace ooc::cluster {

/// The client that asks, and how long it waits for an answer.
struct asker {
  storage::client_identity client;
  std::chrono::milliseconds patience{3'000};

  /// This process, with the key that find_key(`key_file`) finds.
  static asker with_key(const std::string& key_file, bool encrypt = true);
  /// The same for the store at `url`, which may say encrypt=off.
  static asker of(const std::string& url, const std::string& key_file);
};

/// "ooc://head:7420/" -> "head:7420"; of a store in RADOS, which says it, that of its metadata server.  Throws
/// usage_error where there are no servers, io_error where RADOS does not answer.
std::string metadata_address(const std::string& url);

/// A server that was asked for a sign of life.
struct pulse {
  std::string name;     ///< "metad", "iod 3"
  std::string address;  ///< "host:port"
  bool up = false;
  double round_trip_us = 0;  ///< of a ping, the best of three
  std::uint64_t incarnation = 0;
  std::string version;
  std::string why;       ///< where it is not up
  bool refused = false;  ///< the metadata server does not take it as this node
};

/// The metadata server's view of the store.
storage::cluster_info ask_cluster(const std::string& metadata, const asker& who);
pulse ping_metadata(const std::string& metadata, const asker& who);
/// I/O server `node` at one of its addresses.
pulse ping_node(std::uint32_t node, const std::string& address, const std::string& store_uuid, const asker& who);
/// Every server at every one of its addresses, all at once.  One that has never registered is down.
/// A Unix socket of another host is left out where its server answers at another address.
/// Of one that the metadata server refuses `why` says what it says.  Retired ones are left out.
/// Without the metadata server nothing is known of the others: it is the only one listed.
std::vector<pulse> ping_all(const std::string& metadata, const asker& who);

/// Statistics of a server, in its own words, and how long one question to it took.
struct node_answer {
  wire::node_statistics said;
  double round_trip_us = 0;
};
struct metadata_answer {
  storage::metadata_statistics said;
  storage::cluster_info cluster;
  double round_trip_us = 0;
};

/// I/O server `index`, asked at the first of its addresses that answers.
node_answer ask_node(std::uint32_t index, const storage::node_info& node, const std::string& store_uuid,
                     const asker& who);
/// The statistics of the same.
wire::node_statistics ask_statistics(std::uint32_t index, const storage::node_info& node, const std::string& store_uuid,
                                     const asker& who);
metadata_answer ask_metadata(const std::string& metadata, const asker& who);

}  // namespace ooc::cluster
