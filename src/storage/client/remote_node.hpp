// An I/O node behind a server: the client of ooc-iod.
//
// One connection per address of the server; requests go to the one with the least to do, or by a
// Unix socket as long as there is one: nothing is nearer.  A request is answered or fails within
// the deadline, which counts from when the server was last heard of or first missed; after that later
// requests fail at once, until it answers again.  Lost connections are made again, with growing pauses, and what they
// left unanswered is sent again after the server has fenced the lost connection (it will do nothing more for it), so
// that a repetition is harmless.  While no address answers, the metadata server is asked for others: a server may come
// late, or come back elsewhere; where it knows that the server there may not be the node, requests fail at once.  The
// memory of a request is out of use when its completion is called: its connection has answered, or has been torn down.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/service/io_service.hpp"
#include "storage/service/metadata_service.hpp"
#include "storage/wire/handshake.hpp"

namespace ooc::storage {

/// The process as the servers know it.
struct client_identity {
  wire::client_id id{};  ///< random, of this client
  credentials who;
  wire::key_ptr key;                               ///< empty: none
  wire::encryption frames = wire::encryption::on;  ///< where there is a key
  std::string name;                                ///< program and process, for the servers' logs
};

/// The server that tries to be the node may not: it has another folder.  Says why, and the remedy.
struct server_refused : usage_error {
  using usage_error::usage_error;
};

/// The addresses of a node's server as they are now; none while it is not there.  Throws server_refused where requests
/// are to fail at once, and any other ooc::error where nobody can say.
using address_lookup = std::function<std::vector<std::string>()>;

class io_threads;

struct remote_node_options {
  std::uint32_t index = 0;  ///< among the nodes of the store, for messages
  /// "host:port", "[v6]:port" or "unix:/path"; none where the server has not come yet.
  std::vector<std::string> addresses;
  /// Asked while requests wait and no address answers, for one node after the other: should return
  /// within a second or so.  Empty: the addresses stay what they are.
  address_lookup lookup;
  std::string store_uuid;  ///< a server of another store is refused
  client_identity client;
  std::chrono::milliseconds deadline{30'000};
  std::shared_ptr<io_threads> threads;  ///< of all nodes of a client; empty: of this one
};

/// Throws usage_error where there are neither addresses nor a way to find them.
std::shared_ptr<io_service> open_remote_node(remote_node_options options);

}  // namespace ooc::storage
