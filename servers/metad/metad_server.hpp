// The metadata server: accepts connections, keeps their sessions, and answers them.
//
// Everything runs on the one thread of its io_context: a call is a few reads and writes of a local
// database, and handing it to another thread would cost more than the call.  There are no locks but
// those of the fair_shares.  Clients take turns, a call at a time (request_scheduler).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/listener_group.hpp"
#include "metad/call_handler.hpp"
#include "metad/client_table.hpp"
#include "metad/metadata_folder.hpp"
#include "metad/node_table.hpp"
#include "metad/revocation_watch.hpp"
#include "metad/session.hpp"
#include "storage/wire/metadata.pb.h"

namespace ooc::metad {

struct metad_options {
  std::filesystem::path folder;
  std::optional<database_elsewhere> elsewhere;  ///< of a store in RADOS
  /// Called when clients have left, or (true) are taken for lost with something that they hold, which others get next:
  /// they must not reach the store's bytes any more then.
  std::function<void(const std::vector<client_key>&, bool)> clients_end;
  /// Whether this is still the server of the store, as far as it can know; empty: it always is.
  std::function<bool()> in_place;
  std::uint32_t nodes = 0;                         ///< 0: the folder must hold a store already
  std::optional<std::uint32_t> gateways;           ///< of a store in RADOS; nothing: as many as it has
  storage::credentials owner;                      ///< of the root folder of a new store
  std::vector<std::string> listen;                 ///< addresses
  wire::key_ptr key;                               ///< the cluster's; empty: loopback and Unix sockets only
  std::filesystem::path revoked;                   ///< the list of revoked keys; it need not be there
  wire::encryption frames = wire::encryption::on;  ///< of those who have proven their keys
  unsigned max_connections = 1024;
  std::uint64_t memory = 64 << 20;  ///< bytes, for calls and answers that are large
  std::chrono::seconds grace{30};   ///< for clients to come back
  std::chrono::seconds capability_life{3600};
  std::optional<std::uint32_t> forget_node;  ///< another folder may take its place
  std::vector<std::uint32_t> missing_nodes;  ///< whose folders are not there
};

class metad_server final : public session_host {
 public:
  /// Opens the store.  Throws as metadata_folder does.
  metad_server(boost::asio::io_context& context, metad_options options);

  /// Listens on every address; throws io_error where one cannot be had.
  void start();
  void stop();
  /// The addresses that it listens on, with the ports that the system gave for port 0.
  std::vector<std::string> addresses() const { return listeners_.addresses(); }
  const std::string& store_uuid() const noexcept { return folder_.store_uuid(); }
  /// Its metrics, for Prometheus; on the thread of the io_context.
  std::string metrics() const;

  wire::server_info who_am_i() const override;
  const wire::key_ptr& key() const override { return options_.key; }
  const wire::revocations_ptr& revoked() const override { return revoked_.current(); }
  servers::fair_share::claim welcome(session& s) override;
  const std::shared_ptr<servers::fair_share>& memory() override { return memory_; }
  void take_turn(storage::client_number who, std::function<void(bool)> go) override;
  bool holds_something(const session& s) const override;
  std::string answer(session& s, const waiting_frame& f) override;

 private:
  void accepted(std::shared_ptr<wire::stream_socket> socket);
  boost::asio::awaitable<void> serve(std::shared_ptr<session> s);
  boost::asio::awaitable<void> watch();
  void drop_revoked();
  void next_turn();
  std::string call(session& s, const waiting_frame& f);
  std::string enlist(session& s, std::string_view body);
  std::string cluster(const session& asker) const;
  wire::pb::MetadataStatistics statistics() const;

  boost::asio::io_context& context_;
  const metad_options options_;
  const std::uint64_t incarnation_;
  const std::uint64_t started_ns_;
  metadata_folder folder_;
  revocation_watch revoked_;
  client_table clients_;
  call_handler calls_;
  node_table nodes_;
  boost::asio::steady_timer ticks_;
  servers::listener_group listeners_;
  const std::shared_ptr<servers::fair_share> places_;
  const std::shared_ptr<servers::fair_share> memory_;
  storage::request_scheduler<std::function<void(bool)>> turns_{1, 1};  // a call is a turn
  bool turning_ = false;                                               // somebody has the turn
  bool posted_ = false;                                                // next_turn() will be called
  std::vector<std::shared_ptr<session>> sessions_;
  std::uint64_t last_session_ = 0;
  std::uint64_t failures_ = 0;
  bool stopping_ = false;
};

}  // namespace ooc::metad
