// The handshake over a connection: who is there, on both sides, and what the frames that follow travel in.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>

#include "storage/wire/frame_stream.hpp"
#include "storage/wire/handshake.hpp"
#include "storage/wire/revocations.hpp"

namespace ooc::wire {

/// The parts of a connection that a handshake needs.  References only: gcc 12 destroys members of such a temporary in
/// a co_await twice.
struct greeted_connection {
  stream_socket& socket;
  frame_reader& reader;
  frame_sender& sender;
};

/// Runs the connecting side and returns what the server says of itself.  With a key both sides prove
/// theirs first.  Throws connection_refused with the reason of a refusal, else connection_error.
boost::asio::awaitable<server_info> greet(greeted_connection c, const hello_info& me, const key_ptr& key);

/// Whom a server has let in.
struct greeted_peer {
  hello_info says;
  std::string identity;  ///< of the key that it has proven; empty where the server has none
};
/// Keys that a server refuses; empty: none.
using revocations_ptr = std::shared_ptr<const revocations>;
/// Runs the accepting side.  `let_in` is called before the peer learns that it is let in: who sees the welcome can
/// count on what that has noted.  The peer is told of a connection_refused that it throws.
boost::asio::awaitable<void> greet(greeted_connection c, const server_info& me, const key_ptr& key,
                                   revocations_ptr revoked, std::function<void(const greeted_peer&)> let_in);

}  // namespace ooc::wire
