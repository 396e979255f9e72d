// One connection of a client to the I/O server.
//
// Frames are read one after another by a coroutine; what they ask for is put into the fair queue
// and answered from whatever thread it ends on.  A session is *over* when its connection has ended
// and nothing that it began is still being done.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

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

  virtual wire::server_info who_am_i() const = 0;
  virtual wire::key_ptr key() const = 0;
  /// Why the ticket does not grant `rights` on the file; no failure if it does.
  virtual failure check_ticket(const std::string& ticket, storage::file_id file,
                               std::uint32_t rights) = 0;
  /// Closes these connections of the client and calls `done` when they are over.
  virtual void fence(const wire::client_id& client, const std::vector<std::uint64_t>& connections,
                     std::function<void()> done) = 0;
  virtual wire::node_statistics statistics() = 0;
};

class session : public std::enable_shared_from_this<session> {
 public:
  session(session_host& host, std::shared_ptr<wire::stream_socket> socket);

  /// Serves the connection until it ends.  Returns why it did, empty for an orderly end.
  boost::asio::awaitable<std::string> run();
  /// From any thread.
  void close() { sender_->close(); }
  /// Calls `done` when the session is over; at once if it is.
  void when_over(std::function<void()> done);
  /// Drops the connection if the peer does not take what it asked for, or does not say who it is.
  /// Tells the client about requests that take long.  Returns why it was dropped.
  std::string look_after(std::chrono::steady_clock::time_point now);

  const std::string& peer() const noexcept { return peer_; }
  const wire::hello_info& client() const noexcept { return client_; }
  bool welcomed() const noexcept { return welcomed_; }

 private:
  struct read_job;
  struct write_job;
  using clock = std::chrono::steady_clock;

  boost::asio::awaitable<void> shake_hands();
  boost::asio::awaitable<void> serve(const wire::frame_header& h);
  boost::asio::awaitable<void> receive_part(const wire::frame_header& h,
                                            std::shared_ptr<write_job> w);
  boost::asio::awaitable<std::shared_ptr<buffer_pool::buffer>> take_buffer(std::size_t bytes);
  template <class Condition>
  boost::asio::awaitable<void> wait_for(Condition condition);
  void wake();

  void start_read(const wire::frame_header& h);
  bool send_quickly(read_job& r);
  void continue_read(std::shared_ptr<read_job> r);
  void queue_read(std::shared_ptr<read_job> r);
  void send_part(std::shared_ptr<read_job> r, const failure& f);
  std::shared_ptr<write_job> start_write(const wire::frame_header& h);
  void write_part(const std::shared_ptr<write_job>& w, const storage::io_part& part,
                  std::shared_ptr<buffer_pool::buffer> bytes,
                  std::shared_ptr<std::vector<std::uint32_t>> sums);
  void end_write(const std::shared_ptr<write_job>& w);
  void start_other(const wire::frame_header& h);

  failure check(const wire::io_request& r, std::uint32_t rights) const;
  wire::frame_header reply_header(std::uint64_t id) const;
  void reply(std::uint64_t id, const failure& f, const std::string& body = {});
  void begin(std::uint64_t id, bool coming = false);
  void touch(std::uint64_t id);
  void end(std::uint64_t id);

  session_host& host_;
  const std::shared_ptr<wire::stream_socket> socket_;
  const std::shared_ptr<wire::frame_sender> sender_;
  wire::frame_reader reader_;
  std::string peer_;
  wire::hello_info client_;
  std::string queue_name_;  // the client, for the fair queue
  std::atomic<bool> welcomed_{false};
  const clock::time_point accepted_ = clock::now();
  std::atomic<bool> waiting_{false};  // for a buffer
  boost::asio::steady_timer room_;  // cancelled when bytes of this session have been written
  std::map<std::uint64_t, std::shared_ptr<write_job>> writes_;  // whose parts are still coming

  std::mutex mutex_;
  struct active_request {
    clock::time_point spoken;  // of it, last
    bool coming = false;       // a write of which parts are missing
  };
  std::map<std::uint64_t, active_request> active_;
  std::uint64_t received_ = 0;  // by the reader, at the last look
  clock::time_point receiving_ = clock::now();  // when that was last more than before
  std::uint64_t holding_ = 0;                          // bytes received that are not written yet
  bool ended_ = false;
  std::vector<std::function<void()>> over_;
};

}  // namespace ooc::iod
