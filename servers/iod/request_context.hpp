// One client's connection as its requests see it: who asks, what the server has to offer, and the
// way back for answers.
//
// Lives as long as a request of the connection does.  Thread-safe, but for who(), which is set
// before the first request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/fair_share.hpp"
#include "iod/buffer_pool.hpp"
#include "iod/capability_check.hpp"
#include "iod/requests_in_flight.hpp"
#include "storage/service/served_node.hpp"
#include "storage/wire/frame_stream.hpp"
#include "storage/wire/greeting.hpp"
#include "storage/wire/messages.hpp"

namespace ooc::iod {

using servers::fair_share;

/// The parts of a server that all its sessions share.
class session_host {
 public:
  virtual ~session_host() = default;

  virtual storage::served_node& node() = 0;
  /// Memory for transfers.
  virtual const std::shared_ptr<buffer_pool>& buffers() = 0;
  /// Memory for descriptions of requests, apart: what they wait for may be buffers.
  virtual const std::shared_ptr<fair_share>& descriptions() = 0;
  /// Connections of clients that have said who they are.
  virtual const std::shared_ptr<fair_share>& places() = 0;

  virtual wire::server_info who_am_i() const = 0;
  virtual wire::key_ptr key() const = 0;
  /// Keys that are refused.
  virtual wire::revocations_ptr revoked() const = 0;
  /// Why the capability does not grant `who` these `rights` on the file; no failure if it does, and `file` is
  /// then what was signed.
  virtual failure check_capability(const std::string& capability, storage::shape_ptr& file, std::uint32_t rights,
                                   const connected_user& who) = 0;
  virtual std::size_t connections() const = 0;
  /// Closes these connections of the client and calls `done` when they are over.
  virtual void fence(const wire::client_id& client, const std::vector<std::uint64_t>& connections,
                     std::function<void()> done) = 0;
  virtual wire::node_statistics statistics() = 0;
};

/// A read or write that may be served.
struct described_request {
  wire::io_request what;
  std::vector<storage::region> regions;
};

class request_context : public std::enable_shared_from_this<request_context> {
 public:
  request_context(session_host& host, std::shared_ptr<wire::stream_socket> socket);

  session_host& host() noexcept { return host_; }
  wire::frame_sender& sender() noexcept { return *sender_; }
  requests_in_flight& active() noexcept { return active_; }
  /// The node, for this client and as long as the connection lasts.
  std::shared_ptr<storage::served_node> node() { return host_.node().on_behalf_of({number_, gone_.get_token()}); }
  /// The connection has ended: what has not begun is not to begin.
  void end() { gone_.request_stop(); }

  const wire::hello_info& who() const noexcept { return client_; }
  storage::client_number number() const noexcept { return number_; }
  /// As whom capabilities must name it.
  const connected_user& user() const noexcept { return user_; }
  /// In the key that it has proven; empty where there are no keys.
  const std::string& identity() const noexcept { return identity_; }
  void set_who(const wire::greeted_peer& peer, storage::client_number number);
  /// The answer to a client whose work has thrown; logged.
  failure unexpected(const std::exception& e) const;

  /// Why the request cannot be served; no failure if it can.  Its file is then what was signed.
  failure check(wire::io_request& r, std::uint32_t rights) const;
  /// The same of the file that gets bytes of another one, which the caller may write.
  failure check_into(wire::io_request& r) const;

  /// Memory that the frame of a request is to have before its body is read.
  static std::uint64_t memory_for(const wire::frame_header& h) noexcept;
  /// More than any description takes.
  static std::uint64_t most_memory(const wire::frame_header& h) noexcept;
  /// The read or write in `body`, described within `memory`, of which what it does not need goes back.
  /// Nothing where that is not enough, and most_memory() would be.  Throws `error` where it may not be
  /// served.
  std::optional<described_request> describe(std::string_view body, std::uint32_t rights, fair_share::claim& memory,
                                            std::uint64_t most) const;
  /// Of a reply that is not the last one.
  wire::frame_header reply_header(std::uint64_t id) const;
  /// Answers the request, which ends when the answer has been taken.
  void reply(std::uint64_t id, const failure& f, const std::string& body = {});

 private:
  session_host& host_;
  const std::shared_ptr<wire::frame_sender> sender_;
  requests_in_flight active_;
  std::stop_source gone_;
  wire::hello_info client_;
  connected_user user_;
  std::string identity_;
  storage::client_number number_;
};

using request_context_ptr = std::shared_ptr<request_context>;

/// The answer to a client whose request has more regions than there is memory for a list of them.
failure too_many_regions();

}  // namespace ooc::iod
