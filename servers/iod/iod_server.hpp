// The I/O server: accepts connections, keeps their sessions, and fences those that a client lost.
//
// Clients share, each up to its share (fair_share): memory for descriptions of requests, memory for transfers, places
// for connections; and the threads of the node, in turns (request_scheduler).
//
// One mutex, for the list of sessions; docs/architecture.md says which others are taken under it, and in
// which order those of the server are.  Callbacks are called under none of them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/listener_group.hpp"
#include "iod/capability_check.hpp"
#include "iod/session.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::iod {

struct iod_options {
  std::filesystem::path folder;                    ///< holds the stripe objects; empty: they are in RADOS
  std::vector<std::string> listen;                 ///< addresses
  wire::key_ptr key;                               ///< the cluster's; empty: loopback and Unix sockets only
  wire::encryption frames = wire::encryption::on;  ///< of those who have proven their keys
  std::uint32_t node = 0;                          ///< index in the store
  std::uint64_t memory = 64 << 20;                 ///< bytes, for transfers and descriptions of requests
  unsigned workers = 4;                            ///< requests served at a time
  unsigned max_connections = 1024;
  bool direct_io = false;   ///< bypass the page cache
  std::uint64_t epoch = 0;  ///< as iod_home::epoch()
  /// How long a transfer may be slower than servers::transfer_watch::least_rate.
  std::chrono::milliseconds transfer_window = servers::transfer_watch::window;
};

class iod_server final : public session_host {
 public:
  /// `node`: null: that of the folder.
  iod_server(boost::asio::io_context& context, iod_options options, std::shared_ptr<storage::served_node> node = {});
  /// After stop(), when the context has run out of work: waits for what is still being done.
  ~iod_server() override;

  /// Listens on every address; throws io_error where one cannot be had.
  void start();
  /// No new connections; those that there are end when what they have begun is done.
  void stop();
  /// The addresses that it listens on, with the ports that the system gave for port 0.
  std::vector<std::string> addresses() const { return listeners_.addresses(); }

  /// Takes the UUID of the store and its public key, which the metadata server sends at registration.
  void set_store(const std::string& uuid, const wire::capability_public_key& key);

  /// Takes its list of revoked keys: they are refused from now on, and clients that are connected by one are dropped.
  void set_revoked(const wire::revocations& revoked);

  std::uint64_t incarnation() const noexcept { return incarnation_; }

  storage::served_node& node() override { return *node_; }
  const std::shared_ptr<buffer_pool>& buffers() override { return buffers_; }
  const std::shared_ptr<fair_share>& descriptions() override { return descriptions_; }
  const std::shared_ptr<fair_share>& places() override { return places_; }
  wire::server_info who_am_i() const override;
  wire::key_ptr key() const override { return options_.key; }
  wire::revocations_ptr revoked() const override;
  failure check_capability(const std::string& capability, storage::shape_ptr& file, std::uint32_t rights,
                           const connected_user& who) override {
    return capabilities_.check(capability, file, rights, who);
  }
  std::size_t connections() const override;
  void fence(const wire::client_id& client, const std::vector<std::uint64_t>& connections,
             std::function<void()> done) override;
  wire::node_statistics statistics() override;

  capability_check& capabilities() noexcept { return capabilities_; }

 private:
  void accepted(std::shared_ptr<wire::stream_socket> socket);
  boost::asio::awaitable<void> serve(std::shared_ptr<session> s);
  boost::asio::awaitable<void> watch();
  void drop_revoked();

  boost::asio::io_context& context_;
  const iod_options options_;
  const std::uint64_t incarnation_;
  const std::uint64_t started_ns_;
  std::shared_ptr<storage::served_node> node_;
  const std::shared_ptr<fair_share> descriptions_;
  const std::shared_ptr<buffer_pool> buffers_;
  const std::shared_ptr<fair_share> places_;
  capability_check capabilities_;
  boost::asio::steady_timer ticks_;
  servers::listener_group listeners_;

  mutable mutex mutex_;
  condition_variable over_;  // a session is
  std::vector<std::shared_ptr<session>> sessions_ OOC_GUARDED_BY(mutex_);
  std::string store_uuid_ OOC_GUARDED_BY(mutex_);
  wire::revocations_ptr revoked_ OOC_GUARDED_BY(mutex_);
  bool stopping_ OOC_GUARDED_BY(mutex_) = false;
};

}  // namespace ooc::iod
