// One client's connection as its requests see it: who asks, what the server has to offer, and the
// way back for answers.
//
// Lives as long as a request of the connection does.  Thread-safe, but for who(), which is set
// before the first request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "iod/active_requests.hpp"
#include "iod/allowance.hpp"
#include "iod/buffer_pool.hpp"
#include "iod/fair_queue.hpp"
#include "storage/local_node.hpp"
#include "storage/wire/frame_stream.hpp"
#include "storage/wire/handshake.hpp"
#include "storage/wire/messages.hpp"

namespace ooc::iod {

/// What all sessions of a server share.
class session_host {
 public:
  virtual ~session_host() = default;

  virtual storage::local_node& node() = 0;
  virtual fair_queue& queue() = 0;
  virtual const std::shared_ptr<buffer_pool>& buffers() = 0;
  /// Memory of writes, apart: a read keeps its turn while it waits for a buffer, and the buffers it
  /// waits for must not be those of writes that wait for their turn.
  virtual const std::shared_ptr<buffer_pool>& write_buffers() = 0;

  virtual wire::server_info who_am_i() const = 0;
  virtual wire::key_ptr key() const = 0;
  /// Why the ticket does not grant `rights` on the file; no failure if it does.
  virtual failure check_ticket(const std::string& ticket, storage::shape_ptr& file,
                               std::uint32_t rights) = 0;
  virtual std::size_t connections() const = 0;
  /// Closes these connections of the client and calls `done` when they are over.
  virtual void fence(const wire::client_id& client, const std::vector<std::uint64_t>& connections,
                     std::function<void()> done) = 0;
  virtual wire::node_statistics statistics() = 0;
};

class conversation {
 public:
  conversation(session_host& host, std::shared_ptr<wire::stream_socket> socket);

  session_host& host() noexcept { return host_; }
  wire::frame_sender& sender() noexcept { return *sender_; }
  active_requests& active() noexcept { return active_; }
  /// What this connection's reads may take of the buffers, from before their turn until their bytes
  /// have been sent: a client that takes them slowly holds neither all buffers nor all turns.
  allowance& reading() noexcept { return *reading_; }

  const wire::hello_info& who() const noexcept { return client_; }
  void set_who(const wire::hello_info& client);
  /// Puts work of the client into the server's fair queue; where it throws, `failed` hears why.
  void queue(fair_queue::place where, std::uint64_t cost, fair_queue::job j,
             std::function<void(const failure&)> failed);
  /// What a client is told whose work has thrown; logged.
  failure unexpected(const std::exception& e) const;

  /// Why the request cannot be served; no failure if it can.  Its file is then what was signed.
  failure check(wire::io_request& r, std::uint32_t rights) const;
  /// The pieces of the request `id`, which takes their memory until it ends.  Throws usage_error
  /// where there are too many of them, or there is no memory for its description.
  std::vector<storage::piece> pieces_of(std::uint64_t id, const wire::io_request& r);
  /// True where requests that are under way take so much memory that others are to wait: the
  /// connection is read on when some have ended.  Only parts that are to come must be read at once.
  bool full() const { return active_.memory() > max_memory && !active_.coming(); }
  /// True where even those that came between the parts of a write are too many.
  bool overfull() const { return active_.memory() > 2 * max_memory; }
  /// Of a reply that is not the last one.
  wire::frame_header reply_header(std::uint64_t id) const;
  /// Answers and ends the request.
  void reply(std::uint64_t id, const failure& f, const std::string& body = {});

 private:
  /// Bytes for descriptions of requests.
  static constexpr std::uint64_t max_memory = 64 << 20;

  session_host& host_;
  const std::shared_ptr<wire::frame_sender> sender_;
  active_requests active_;
  const std::shared_ptr<allowance> reading_;
  wire::hello_info client_;
  std::string queue_name_;
};

using conversation_ptr = std::shared_ptr<conversation>;

/// What a client is told whose request has more pieces than there is memory for a list of them.
failure too_many_pieces();

}  // namespace ooc::iod
