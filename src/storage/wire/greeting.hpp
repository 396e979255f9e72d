// The handshake over a connection: who is there, on both sides.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "storage/wire/frame_stream.hpp"
#include "storage/wire/handshake.hpp"

namespace ooc::wire {

/// Runs the connecting side of `hands`.  Throws connection_error with the reason of a refusal.
boost::asio::awaitable<void> greet(client_handshake& hands, frame_reader& reader,
                                   frame_sender& sender);
/// Runs the accepting side.
boost::asio::awaitable<void> greet(server_handshake& hands, frame_reader& reader,
                                   frame_sender& sender);

}  // namespace ooc::wire
