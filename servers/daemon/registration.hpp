// How an I/O server makes itself known to the metadata server: it connects, registers, sends a sign
// of life every 2 s, and connects again, with growing pauses, whenever that fails.
//
// A thread of its own does this.  Nothing here stops the I/O server from serving while the metadata
// server is away.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/ticker.hpp"
#include "storage/client/metadata_connection.hpp"
#include "storage/wire/access_key.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/revocations.hpp"

namespace ooc::servers {

struct registration_options {
  std::string metadata_server;  ///< its address
  wire::key_ptr key;            ///< empty: none
  wire::encryption frames = wire::encryption::on;
  std::uint32_t node = 0;              ///< index in the store
  std::string node_uuid;               ///< of the folder with the stripe objects
  std::string store_uuid;              ///< that the folder belongs to; empty: to none yet
  std::vector<std::string> addresses;  ///< where clients find the server
  std::uint64_t incarnation = 0;
  std::string name;  ///< program and process, for the log over there
};

/// The store, as the metadata server describes it at registration.
struct registered_store {
  std::string uuid;
  wire::capability_public_key capability_key{};
  std::uint32_t nodes = 0;
};

struct disk_space {
  std::uint64_t bytes = 0;
  std::uint64_t free = 0;
};

/// All are called on the registration's thread.
struct registration_events {
  std::function<void(const registered_store&)> registered;  ///< at first, and after each reconnection
  std::function<void(bool)> reachable;                      ///< whether the metadata server answers; at each change
  std::function<void(const std::string& why)> refused;      ///< it does not want this server; tried again
  std::function<disk_space()> space;                        ///< of the disk with the stripe objects
  /// Keys that are refused, all of them: at first (before `registered`) and whenever they are others.
  std::function<void(const wire::revocations&)> revoked = [](const wire::revocations&) {};
};

class registration {
 public:
  registration(registration_options options, registration_events events);
  registration(const registration&) = delete;
  registration& operator=(const registration&) = delete;

  void start() { ticker_.wake(); }
  /// Returns when the thread has ended.
  void stop() { ticker_.stop(); }

 private:
  ticker::clock::time_point step();
  void connect();
  void send_sign_of_life();
  void set_reachable(bool yes);

  const registration_options options_;
  const registration_events events_;
  storage::metadata_connection connection_;
  std::uint32_t connections_ = 0;
  std::string store_uuid_;
  std::optional<wire::revocations> revoked_;  // as last told
  bool connected_ = false;
  bool reachable_ = false;
  std::chrono::milliseconds wait_;            // after the next failure
  std::string last_;                          // failure that was said
  ticker ticker_{[this] { return step(); }};  // last: ends first; all of the above is its own
};

}  // namespace ooc::servers
