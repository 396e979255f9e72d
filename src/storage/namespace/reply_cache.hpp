// The last call that a metadata server carried out for each of its clients, in the database beside its effect.
//
// A client has one changing call under way at a time and numbers them.  The number is recorded in
// the transaction of the change, so a call whose reply was lost, by a cut connection or with the
// server, is answered when it is made again and never run twice.  Nor is one of a client that was lost for longer than
// its leases live: its last call is kept for `kept_calls`, longer than any client goes on trying.
//
// All functions are called with the connection's mutex held.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/process_identity.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/metadata_call.hpp"

namespace ooc::storage {

using client_key = std::array<std::uint8_t, 16>;

/// A call that a client of a metadata server makes.
struct client_call {
  client_key client{};
  std::uint64_t sequence = 0;  ///< of this client's changing calls, from 1; 0: it only looks
  /// The reply that says this, which is kept.
  std::function<std::string(const metadata_answer&)> reply{};
};

/// Of lost clients: the longest deadline of a client is 24 h.
constexpr std::chrono::seconds kept_calls = std::chrono::hours(25);
/// Of so many of them; the last calls of those that were lost first are forgotten before.
constexpr std::int64_t most_lost_clients = 1 << 16;

/// Makes the tables where there are none.
void make_reply_cache(sqlite::connection& c);

/// Inside the transaction of the change: it was done, and this was the reply.
void keep_reply(sqlite::connection& c, const client_call& call, const std::string& reply);

/// The reply, if this very call was done.
std::optional<std::string> kept_reply(sqlite::connection& c, const client_call& call);

/// The client asks nothing more.
void forget_calls(sqlite::connection& c, const client_key& client);
/// The client is lost, at `now` (since 1970).  Forgets the calls of those that were lost long before, but for clients
/// that are `alive`: they have come back.
void lose_client(sqlite::connection& c, const client_key& client, std::chrono::seconds now,
                 const std::function<bool(const client_key&)>& alive);
/// Those with a call that have not been lost.
std::vector<client_key> logged_clients(sqlite::connection& c);

/// The maker of a file (table `making`) that is a client of a server: no process of this machine,
/// so whoever opens the database without the server finds it dead.
process_identity maker_identity(const client_key& client);
std::optional<client_key> client_of(const process_identity& maker);

}  // namespace ooc::storage
