// One connection of a client to the I/O server.
//
// Frames are read one after another by a coroutine, which lets those of others go first after each.
// Before the body of a request is read there must be memory for its description in the client's share;
// what it asks for is done by the node, in the client's turns, and answered from whatever thread it ends
// on.  A session is *over* when its connection has ended and nothing that it began is still being done.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/transfer_watch.hpp"
#include "iod/incoming_writes.hpp"
#include "iod/request_context.hpp"
#include "storage/wire/node_calls.hpp"

namespace ooc::iod {

class session : public std::enable_shared_from_this<session> {
 public:
  /// `window`: how long a transfer may be slower than transfer_watch::least_rate.
  session(session_host& host, std::shared_ptr<wire::stream_socket> socket,
          std::chrono::milliseconds window = servers::transfer_watch::window);

  /// Serves the connection until it ends.  Returns why it did, empty for an orderly end.
  boost::asio::awaitable<std::string> run();
  /// From any thread.
  void close() { with_->sender().close(); }
  /// True from the end of the connection on.  From any thread.
  bool closed() const { return with_->sender().closed(); }
  /// Calls `done` when the session is over; at once if it is.
  void when_over(std::function<void()> done) { with_->active().when_over(std::move(done)); }
  /// Drops the connection if a transfer is too slow, or the peer does not say who it is.  `hurry`: others
  /// wait for the memory that transfers hold.  Tells the client about requests that take long.  Returns
  /// why it was dropped.  One caller at a time.
  std::string look_after(std::chrono::steady_clock::time_point now, bool hurry);

  const std::string& peer() const noexcept { return peer_; }
  /// Once it is welcomed.
  const wire::hello_info& client() const noexcept { return with_->who(); }
  const std::string& identity() const noexcept { return with_->identity(); }
  bool welcomed() const noexcept { return welcomed_; }
  storage::client_number number_in_shares() const noexcept { return with_->number(); }
  /// When the client last asked something.
  std::chrono::steady_clock::time_point heard() const noexcept { return heard_.load(); }
  /// True where nothing is lost with the connection.
  bool may_give_way() const { return with_->active().none() && !reader_.inside(); }

 private:
  using clock = std::chrono::steady_clock;

  boost::asio::awaitable<void> shake_hands();
  boost::asio::awaitable<fair_share::claim> take_memory(std::uint64_t bytes);
  void say_busy(std::uint64_t id);
  boost::asio::awaitable<void> serve(const wire::frame_header& h);
  boost::asio::awaitable<void> start_transfer(const wire::frame_header& h, fair_share::claim memory);
  void start_other(const wire::frame_header& h);
  void start_fence(std::uint64_t id, const std::vector<std::uint64_t>& connections);
  void start_call(std::uint64_t id, const wire::served_call& c);

  const std::shared_ptr<wire::stream_socket> socket_;
  const request_context_ptr with_;
  wire::frame_reader reader_;
  const std::shared_ptr<incoming_writes> writes_;
  const std::string peer_;
  fair_share::claim place_;  // among the connections
  std::atomic<bool> welcomed_{false};
  std::atomic<bool> waiting_{false};  // for memory
  const clock::time_point accepted_ = clock::now();
  std::atomic<clock::time_point> heard_{clock::now()};
  const clock::duration window_;
  // Of look_after().
  servers::transfer_watch coming_, going_;
  std::uint64_t received_ = 0;                  // by the reader, at the last look
  clock::time_point receiving_ = clock::now();  // when that was last more than before
  clock::time_point spoken_ = clock::now();     // of the connection being full, last
};

}  // namespace ooc::iod
