// Who is at the other end of a connection: hello, challenge, proof, welcome.
//
// Pure functions of what was received: no I/O, no clock.  Each step takes the body of the frame
// that came and returns the body of the frame to send; after a step with `refused` set, `send`
// (where not empty) is sent and the connection closed.  Until the last step has succeeded nothing
// else may be read from the peer, and no body longer than `max_handshake_body`.
//
// With a cluster key both sides prove that they hold it, by a MAC over both nonces and the whole
// hello; without one only peers on this machine are served.  What follows on the connection is not
// signed: the network between the machines of a cluster is trusted not to change packets.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "oocarray/error.hpp"
#include "storage/service/metadata_service.hpp"
#include "storage/wire/cluster_key.hpp"
#include "storage/wire/frame.hpp"

namespace ooc::wire {

inline constexpr frame_limits handshake_limits{.body = 1024, .payload = 0};

using client_id = std::array<std::uint8_t, 16>;
using handshake_nonce = std::array<std::uint8_t, 32>;
using handshake_mac = std::array<std::uint8_t, 32>;

client_id random_client_id();
/// Of a server: new at every start, never 0.
std::uint64_t random_incarnation();

enum class peer_role : std::uint8_t { client = 1, io_server = 2 };
enum class server_role : std::uint8_t { metadata = 1, io = 2 };

/// What the connecting side says of itself.
struct hello_info {
  client_id client{};
  std::uint32_t connection = 0;  ///< counts up; a server closes this client's older ones
  peer_role role = peer_role::client;
  server_role wanted = server_role::metadata;
  storage::credentials who;
  std::string store_uuid;  ///< empty: not known yet
  std::string name;        ///< program and process, for logs
};

/// What a server says of itself.
struct server_info {
  server_role role = server_role::metadata;
  std::uint64_t incarnation = 0;
  std::string store_uuid;  ///< empty: an I/O server that has not registered yet
  std::uint32_t node = 0;  ///< index of an I/O server
};

struct handshake_step {
  std::string send;  ///< header and body
  failure refused;   ///< what to tell the caller, and the log
};

/// The connecting side: hello(), answer(), finish().
class client_handshake {
 public:
  /// `key` may be empty.  `same_machine`: the server is reached by a Unix socket or loopback.
  client_handshake(hello_info me, key_ptr key, bool same_machine);

  /// The first frame to send.
  std::string hello() const;
  /// From the challenge to the proof.
  handshake_step answer(const frame_header& h, std::string_view body);
  /// From the welcome; then server() is valid.
  failure finish(const frame_header& h, std::string_view body);
  const server_info& server() const noexcept { return server_; }

 private:
  hello_info me_;
  key_ptr key_;
  bool same_machine_;
  handshake_nonce nonce_{};
  std::string hello_;  // body
  server_info server_;
};

/// The accepting side: challenge(), welcome().
class server_handshake {
 public:
  server_handshake(server_info me, key_ptr key, bool same_machine);

  /// From the hello to the challenge.
  handshake_step challenge(const frame_header& h, std::string_view body);
  /// From the proof to the welcome; if it is not refused peer() may be believed.
  handshake_step welcome(const frame_header& h, std::string_view body);
  const hello_info& peer() const noexcept { return peer_; }

 private:
  server_info me_;
  key_ptr key_;
  bool same_machine_;
  hello_info peer_;
  handshake_mac expected_{};
};

/// The MAC of one side: HMAC-SHA-256(key, label | client nonce | server nonce | SHA-256(hello)).
handshake_mac handshake_proof(const cluster_key& key, std::string_view label,
                              const handshake_nonce& client, const handshake_nonce& server,
                              std::string_view hello);
inline constexpr std::string_view server_label = "oocarray server 1";
inline constexpr std::string_view client_label = "oocarray client 1";

}  // namespace ooc::wire
