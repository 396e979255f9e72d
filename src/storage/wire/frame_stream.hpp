// The two halves of a connection: a reader, for one coroutine, and a sender, for any thread.
//
// A connection has one socket (TCP or Unix), non-blocking, whose executor runs one handler at a
// time (a strand, or an io_context with one thread).  Where there are keys, what travels goes through a
// TLS session that both halves share (use()).
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"
#include "storage/wire/frame.hpp"
#include "storage/wire/receive_window.hpp"
#include "storage/wire/tls_session.hpp"

namespace ooc::wire {

using stream_socket = boost::asio::generic::stream_protocol::socket;

/// Thrown where a connection can no longer be used: it ended, or the received bytes cannot be read.
class connection_error : public error {
  using error::error;
};

/// The other side does not want this connection, or its address stands for nothing: trying again is of no use.
class connection_refused : public connection_error {
  using connection_error::connection_error;
};

class frame_reader {
 public:
  frame_reader(std::shared_ptr<stream_socket> s, frame_limits limits);
  ~frame_reader();

  /// The next header and its body, both checked.  Throws connection_error; an orderly end of the
  /// stream between two frames has the code `connection_reset`.
  boost::asio::awaitable<frame_header> next();
  /// The same in two steps, for those who want to have memory for the body first: the header, and
  /// then, once, the body.
  boost::asio::awaitable<frame_header> next_header();
  boost::asio::awaitable<void> receive_body(const frame_header& h);
  /// Gives back the memory of a large body.
  void drop_body() {
    if (body_.capacity() > 4096) std::string().swap(body_);
  }
  std::string_view body() const noexcept { return body_; }
  /// The payload of the last header, or the next part of it, straight to its places.  Throws
  /// connection_error where it is not that long.
  boost::asio::awaitable<void> payload(std::span<iovec> to);
  /// Reads `bytes` of payload that nobody wants.
  boost::asio::awaitable<void> skip(std::uint64_t bytes);

  void set_limits(const frame_limits& l) noexcept { limits_ = l; }
  /// From now on what comes is what the session makes of it; with none, what the socket gives.  Throws
  /// connection_error where more has come already.
  void use(tls_ptr session);
  /// From now on the receive window is small where payloads come slowly, or no longer so: for those
  /// to whom many send at the same time.
  void limit_window(bool small = true) noexcept {
    if (!window_) window_.emplace();
    window_->allow_small(small);
  }
  /// Grows with every byte received.  From any thread.
  std::uint64_t received() const noexcept { return received_; }
  /// True while a frame has begun to come and is not complete.  From any thread.
  bool inside() const noexcept { return inside_; }

 private:
  struct waking;

  boost::asio::awaitable<void> fill(std::size_t wanted);
  boost::asio::awaitable<void> fill(std::span<iovec> to, std::size_t wanted);
  boost::asio::awaitable<std::size_t> receive(std::span<iovec> to, std::size_t wanted);
  boost::asio::awaitable<std::chrono::steady_clock::duration> wait_for(std::size_t wanted);
  void consumed(std::uint64_t payload_bytes);

  const std::shared_ptr<stream_socket> socket_;
  tls_ptr tls_;  // often none
  frame_limits limits_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of the bytes in the buffer that are not consumed
  std::string body_;
  std::uint64_t payload_left_ = 0;  // of the last header, not read yet
  std::size_t at_once_ = 1;         // bytes that are worth waking up for: what comes in 50 to 200 ms
  std::optional<receive_window> window_;
  const std::shared_ptr<waking> waking_;
  std::atomic<std::uint64_t> received_{0};
  std::atomic<bool> inside_{false};
};

class frame_sender : public std::enable_shared_from_this<frame_sender> {
 public:
  struct message {
    std::string head;            ///< header and body
    std::vector<iovec> payload;  ///< must stay as it is until `released`
    /// Called once, on any thread, when the payload's memory is no longer looked at: it has been
    /// handed to the kernel (true), or the connection has ended (false).  Must not block.
    std::function<void(bool sent)> released;
  };

  explicit frame_sender(std::shared_ptr<stream_socket> s) : socket_(std::move(s)) {}

  /// Sends after what was given before, as far as possible in the calling thread.
  void send(message m) { send({&m, 1}); }
  /// The same with several, which nobody else's come between; they are taken from `all`.
  void send(std::span<message> all);
  /// From now on what is sent goes through the session; with none, straight to the socket.  Nothing must
  /// wait to be sent.
  void use(tls_ptr session);
  /// Ends the connection in both directions: what waits is released, the reader sees the end.
  void close();
  bool closed() const;

  /// Bytes that the peer has taken, as far as the kernel knows.
  std::uint64_t taken() const;
  /// Bytes given and not yet taken by the kernel.
  std::uint64_t queued_bytes() const;
  /// Since when bytes wait that the peer does not take; the maximum if none wait.
  std::chrono::steady_clock::time_point stuck_since() const;

 private:
  /// Sends until nothing is left or the kernel takes no more.
  void flush(unique_lock& lock) OOC_REQUIRES(mutex_);
  /// By the one that writes, or where nobody does.
  void fail(unique_lock& lock) OOC_REQUIRES(mutex_);

  const std::shared_ptr<stream_socket> socket_;
  mutable mutex mutex_;
  tls_ptr tls_ OOC_GUARDED_BY(mutex_);  // often none
  std::deque<message> queue_ OOC_GUARDED_BY(mutex_);
  std::size_t head_sent_ OOC_GUARDED_BY(mutex_) = 0;     // of the first message: bytes of its head
  std::size_t payload_done_ OOC_GUARDED_BY(mutex_) = 0;  // of the first: whole elements of its payload
  std::uint64_t queued_ OOC_GUARDED_BY(mutex_) = 0;
  std::uint64_t sent_ OOC_GUARDED_BY(mutex_) = 0;  // to the kernel
  bool writing_ OOC_GUARDED_BY(mutex_) = false;
  bool closed_ OOC_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point progress_ OOC_GUARDED_BY(mutex_);
};

/// Copies of `parts` without their first `bytes` bytes removed in place; used by both halves.
void drop_front(std::span<iovec>& parts, std::size_t bytes) noexcept;

}  // namespace ooc::wire
