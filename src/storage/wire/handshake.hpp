// The introduction of both ends of a connection: hello, welcome.
//
// Pure functions of what was received: no I/O, no clock.  Each step takes the body of the frame
// that came and returns the body of the frame to send; after a step with `refused` set, `send`
// (where not empty) is sent and the connection closed.  Until the last step has succeeded nothing
// else may be read from the peer, and no body longer than `max_handshake_body`.
//
// Where there are keys both sides have proven theirs before, and these frames travel under TLS
// (tls_session.hpp); without one only peers on this machine are served.  Holders of the cluster key are
// believed about the user they act for; a user's key names its user.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "oocarray/error.hpp"
#include "storage/service/metadata_service.hpp"
#include "storage/wire/access_key.hpp"
#include "storage/wire/frame.hpp"

namespace ooc::wire {

inline constexpr frame_limits handshake_limits{.body = 1024, .payload = 0};

using client_id = std::array<std::uint8_t, 16>;

client_id random_client_id();
/// Of a server: new at every start, never 0.
std::uint64_t random_incarnation();

enum class peer_role : std::uint8_t { client = 1, io_server = 2 };
enum class server_role : std::uint8_t { metadata = 1, io = 2 };

/// Encryption of frames after the handshake, where there are keys.  Both sides must be told the same.
enum class encryption : std::uint8_t { on, off };

/// The introduction of the connecting side.
struct hello_info {
  client_id client{};
  std::uint32_t connection = 0;  ///< counts up; a server closes this client's older ones
  peer_role role = peer_role::client;
  server_role wanted = server_role::metadata;
  storage::credentials who;
  std::string store_uuid;  ///< empty: not known yet
  std::string name;        ///< program and process, for logs
  encryption frames = encryption::on;
};

/// The introduction of a server.
struct server_info {
  server_role role = server_role::metadata;
  std::uint64_t incarnation = 0;
  std::string store_uuid;  ///< empty: an I/O server that has not registered yet
  std::uint32_t node = 0;  ///< index of an I/O server
  encryption frames = encryption::on;
  std::uint64_t epoch = 0;  ///< 0: it loses nothing with the power, or does not say
};

/// The facts about the other side that are known before it says anything.
struct peer_proof {
  bool wanted = false;                ///< this side has a key
  std::optional<key_holder> given{};  ///< whose key the other side has proven; of a server: the cluster's
  bool same_machine = false;          ///< reached by a Unix socket or loopback
  bool revoked = false;               ///< this side knows that the key of the other one is refused
};

struct handshake_step {
  std::string send;  ///< header and body
  failure refused;   ///< what to tell the caller, and the log
};

/// The connecting side: hello(), finish().
class client_handshake {
 public:
  client_handshake(hello_info me, peer_proof proof);

  /// The first frame to send; refused where nobody may be spoken to in this way.
  handshake_step hello() const;
  /// From the welcome; then server() is valid.
  failure finish(const frame_header& h, std::string_view body);
  const server_info& server() const noexcept { return server_; }

 private:
  hello_info me_;
  peer_proof proof_;
  server_info server_;
};

/// The accepting side: welcome().
class server_handshake {
 public:
  server_handshake(server_info me, peer_proof proof);

  /// From the hello to the welcome; if it is not refused peer() may be believed.
  handshake_step welcome(const frame_header& h, std::string_view body);
  const hello_info& peer() const noexcept { return peer_; }
  /// The identity that the peer has proven; empty where there are no keys.
  std::string identity() const { return proof_.given ? proof_.given->identity : std::string(); }

 private:
  failure fault_of(const frame_header& h, std::string_view body);
  failure user_fault() const;

  server_info me_;
  peer_proof proof_;
  hello_info peer_;
};

/// The refusal of a peer whose hello could be read, by a system error.
handshake_step not_welcome(const failure& why);
/// The answer of a server without a key to a peer that begins with TLS: it cannot prove anything.
handshake_step no_key_here();

}  // namespace ooc::wire
