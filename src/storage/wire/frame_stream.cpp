#include "storage/wire/frame_stream.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

namespace ooc::wire {

namespace asio = boost::asio;

namespace {

constexpr std::size_t buffer_bytes = 16 << 10;  // headers, bodies and small payloads in one call
constexpr std::size_t max_parts = 1024;         // IOV_MAX
constexpr std::size_t much = 16 << 10;          // from here on a wait says how fast bytes come

[[noreturn]] void lost(int error) {
  const std::error_code code(error, std::generic_category());
  throw connection_error(code, "the connection was lost: " + code.message());
}

[[noreturn]] void unreadable(const std::string& why) { throw connection_error({EPROTO, std::generic_category()}, why); }

}  // namespace

void drop_front(std::span<iovec>& parts, std::size_t bytes) noexcept {
  while (!parts.empty() && bytes >= parts.front().iov_len) {
    bytes -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (bytes == 0) return;
  parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + bytes;
  parts.front().iov_len -= bytes;
}

// Reading.

/// When the socket wakes up its reader: as soon as there are `low_water` bytes, or what there is
/// after a quarter of a second, so that what comes slowly is seen to come.  The executor's own.
struct frame_reader::waking : std::enable_shared_from_this<waking> {
  using clock = std::chrono::steady_clock;
  static constexpr auto longest = std::chrono::milliseconds(250);

  explicit waking(std::shared_ptr<stream_socket> s) : socket(std::move(s)), timer(socket->get_executor()) {}

  void set(std::size_t bytes) {
    if (bytes == low_water) return;
    low_water = bytes;
    const auto value = static_cast<int>(bytes);
    ::setsockopt(socket->native_handle(), SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value);
  }

  void wait_begins(std::size_t bytes) {
    set(bytes);
    since = clock::now();
    if (bytes > 1 && !armed) arm(longest);
  }
  clock::duration wait_ended() { return clock::now() - std::exchange(since, clock::time_point::max()); }

  /// One timer for many waits: it looks how long the present one has been going on.
  void arm(clock::duration time) {
    armed = true;
    timer.expires_after(time);
    timer.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
      if (const auto self = weak.lock(); self && !ec) self->look();
    });
  }
  void look() {
    armed = false;
    if (since == clock::time_point::max() || low_water == 1) return;
    const auto waited = clock::now() - since;
    if (waited < longest)
      arm(longest - waited);
    else
      set(1);
  }

  const std::shared_ptr<stream_socket> socket;
  asio::steady_timer timer;
  std::size_t low_water = 1;                           // what the socket was told
  clock::time_point since = clock::time_point::max();  // the reader waits
  bool armed = false;
};

frame_reader::frame_reader(std::shared_ptr<stream_socket> s, frame_limits limits)
    : socket_(std::move(s)), limits_(limits), buffer_(buffer_bytes), waking_(std::make_shared<waking>(socket_)) {}

frame_reader::~frame_reader() = default;

// Until `wanted` bytes have come, or as many as are worth waking up for: where much comes, waking
// up for every bit of it costs as much as copying it.
asio::awaitable<std::chrono::steady_clock::duration> frame_reader::wait_for(std::size_t wanted) {
  using namespace std::chrono_literals;
  constexpr std::size_t most = 512 << 10;
  std::size_t bytes = std::min(wanted, at_once_);
  if (tls_) bytes -= std::min(bytes - 1, tls_session::largest_record);
  waking_->wait_begins(bytes);
  boost::system::error_code ec;
  co_await socket_->async_wait(stream_socket::wait_read, asio::redirect_error(asio::use_awaitable, ec));
  const auto waited = waking_->wait_ended();
  if (ec) lost(ECONNRESET);
  if (wanted < much) co_return waited;
  if (waited < 50ms)
    at_once_ = std::clamp(2 * at_once_, much, most);
  else if (waited > 200ms)
    at_once_ = at_once_ > much ? at_once_ / 4 : 1;
  co_return waited;
}

asio::awaitable<std::size_t> frame_reader::receive(std::span<iovec> to, std::size_t wanted) {
  std::optional<std::chrono::steady_clock::duration> waited;
  for (;;) {
    ssize_t n = 0;
    if (tls_) {
      n = tls_->receive(to);
    } else {
      msghdr m{};
      m.msg_iov = to.data();
      m.msg_iovlen = std::min(to.size(), max_parts);
      n = ::recvmsg(socket_->native_handle(), &m, MSG_DONTWAIT);
    }
    if (n > 0) {
      received_ += static_cast<std::uint64_t>(n);
      if (window_ && waited && wanted >= much)
        window_->follow(socket_->native_handle(), static_cast<std::size_t>(n), *waited);
      co_return static_cast<std::size_t>(n);
    }
    if (n == 0) lost(ECONNRESET);
    if (errno == EINTR) continue;
    if (errno == EBADMSG) throw connection_error({EBADMSG, std::generic_category()}, altered_record);
    if (errno != EAGAIN && errno != EWOULDBLOCK) lost(errno);
    waited = co_await wait_for(wanted);
  }
}

void frame_reader::use(tls_ptr session) {
  if (begin_ != end_ || (tls_ && tls_->holds_bytes())) unreadable("more came than the handshake has");
  tls_ = std::move(session);
}

asio::awaitable<void> frame_reader::fill(std::size_t wanted) {
  if (end_ - begin_ >= wanted) co_return;
  if (begin_ == end_) begin_ = end_ = 0;
  if (buffer_.size() - begin_ < wanted) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < wanted) {
    iovec space{buffer_.data() + end_, buffer_.size() - end_};
    end_ += co_await receive({&space, 1}, wanted - (end_ - begin_));
  }
}

asio::awaitable<frame_header> frame_reader::next() {
  const frame_header h = co_await next_header();
  co_await receive_body(h);
  co_return h;
}

asio::awaitable<frame_header> frame_reader::next_header() {
  inside_ = begin_ != end_;
  co_await fill(1);
  inside_ = true;
  co_await fill(sizeof(frame_header));
  frame_header h;
  std::memcpy(&h, buffer_.data() + begin_, sizeof h);
  begin_ += sizeof h;
  if (const std::string fault = header_fault(h, limits_); !fault.empty()) unreadable(fault);
  co_return h;
}

asio::awaitable<void> frame_reader::receive_body(const frame_header& h) {
  body_.resize(h.body_bytes);
  iovec whole{body_.data(), body_.size()};
  co_await fill({&whole, 1}, body_.size());
  if (const std::string fault = body_fault(h, body_); !fault.empty()) unreadable(fault);
  payload_left_ = h.payload_bytes;
  consumed(0);
}

asio::awaitable<void> frame_reader::payload(std::span<iovec> to) {
  std::size_t wanted = 0;
  for (const iovec& part : to) wanted += part.iov_len;
  if (wanted > payload_left_) unreadable("a payload that is too short");
  co_await fill(to, wanted);
  consumed(wanted);
}

asio::awaitable<void> frame_reader::skip(std::uint64_t bytes) {
  if (bytes > payload_left_) unreadable("a payload that is too short");
  for (std::uint64_t left = bytes; left != 0;) {
    co_await fill(1);
    const std::uint64_t n = std::min<std::uint64_t>(left, end_ - begin_);
    begin_ += n;
    left -= n;
  }
  consumed(bytes);
}

void frame_reader::consumed(std::uint64_t payload_bytes) {
  payload_left_ -= payload_bytes;
  inside_ = payload_left_ != 0;
}

// `wanted` bytes, straight to their places.
asio::awaitable<void> frame_reader::fill(std::span<iovec> to, std::size_t wanted) {
  while (!to.empty() && begin_ != end_) {
    const std::size_t n = std::min(to.front().iov_len, end_ - begin_);
    std::memcpy(to.front().iov_base, buffer_.data() + begin_, n);
    begin_ += n;
    wanted -= n;
    drop_front(to, n);
  }
  while (wanted != 0) {
    const std::size_t n = co_await receive(to, wanted);
    wanted -= n;
    drop_front(to, n);
  }
}

// Sending.

void frame_sender::send(std::span<message> all) {
  unique_lock lock(mutex_);
  if (closed_) {
    lock.unlock();
    for (message& m : all)
      if (m.released) m.released(false);
    return;
  }
  if (queue_.empty()) progress_ = std::chrono::steady_clock::now();
  for (message& m : all) {
    queued_ += m.head.size();
    for (const iovec& part : m.payload) queued_ += part.iov_len;
    queue_.push_back(std::move(m));
  }
  if (!writing_) flush(lock);
}

void frame_sender::flush(unique_lock& lock) {
  writing_ = true;
  std::vector<iovec> now;
  std::vector<message> finished;
  for (;;) {
    now.clear();
    for (const message& m : queue_) {
      const bool first = &m == &queue_.front();
      const std::size_t head = first ? head_sent_ : 0;
      if (head < m.head.size()) now.push_back({const_cast<char*>(m.head.data()) + head, m.head.size() - head});
      for (std::size_t i = first ? payload_done_ : 0; i < m.payload.size(); ++i) {
        if (now.size() >= max_parts) break;
        now.push_back(m.payload[i]);
      }
      if (now.size() + 1 >= max_parts) break;
    }
    if (now.empty()) break;
    msghdr h{};
    h.msg_iov = now.data();
    h.msg_iovlen = std::min(now.size(), max_parts);
    const tls_ptr tls = tls_;
    // The bytes that are looked at belong to messages that only flush() takes out.
    ssize_t n = 0;
    int error = 0;
    {
      const unlocked gap(lock, mutex_);
      do n = tls ? tls->send(now) : ::sendmsg(socket_->native_handle(), &h, MSG_DONTWAIT | MSG_NOSIGNAL);
      while (n < 0 && errno == EINTR);
      if (n < 0) error = errno;
    }
    if (closed_ || (error != 0 && error != EAGAIN && error != EWOULDBLOCK)) return fail(lock);
    if (error != 0) {
      // The rest when the kernel has room.
      asio::post(socket_->get_executor(), [self = shared_from_this()] {
        self->socket_->async_wait(stream_socket::wait_write, [self](const boost::system::error_code& ec) {
          unique_lock again(self->mutex_);
          if (ec) self->closed_ = true;
          self->flush(again);
        });
      });
      return;
    }
    progress_ = std::chrono::steady_clock::now();
    auto sent = static_cast<std::size_t>(n);
    queued_ -= sent;
    sent_ += sent;
    while (!queue_.empty()) {
      message& m = queue_.front();
      const std::size_t head = std::min(sent, m.head.size() - head_sent_);
      head_sent_ += head;
      sent -= head;
      while (payload_done_ < m.payload.size() && sent >= m.payload[payload_done_].iov_len)
        sent -= m.payload[payload_done_++].iov_len;
      if (head_sent_ < m.head.size() || payload_done_ < m.payload.size()) {
        if (sent != 0) {
          iovec& part = m.payload[payload_done_];
          part.iov_base = static_cast<char*>(part.iov_base) + sent;
          part.iov_len -= sent;
        }
        break;
      }
      if (m.released) finished.push_back(std::move(m));
      queue_.pop_front();
      head_sent_ = payload_done_ = 0;
    }
    if (!finished.empty()) {
      {
        const unlocked gap(lock, mutex_);
        for (message& m : finished) m.released(true);
        finished.clear();
      }
      if (closed_) return fail(lock);
    }
  }
  if (closed_) return fail(lock);
  writing_ = false;
}

void frame_sender::fail(unique_lock& lock) {
  closed_ = true;
  ::shutdown(socket_->native_handle(), SHUT_RDWR);
  std::deque<message> left = std::move(queue_);
  queue_.clear();
  queued_ = 0;
  writing_ = false;
  const unlocked gap(lock, mutex_);
  for (message& m : left)
    if (m.released) m.released(false);
  left.clear();  // what they own may take other locks
}

void frame_sender::use(tls_ptr session) {
  const lock_guard lock(mutex_);
  if (!queue_.empty()) throw std::logic_error("a connection changes while frames wait to be sent");
  tls_ = std::move(session);
}

void frame_sender::close() {
  unique_lock lock(mutex_);
  if (closed_) return;
  closed_ = true;
  // A writer sees it, also where it waits for room: both ends of the stream are shut.
  if (writing_)
    ::shutdown(socket_->native_handle(), SHUT_RDWR);
  else
    fail(lock);
}

bool frame_sender::closed() const {
  const lock_guard lock(mutex_);
  return closed_;
}

std::uint64_t frame_sender::taken() const {
  const lock_guard lock(mutex_);
  int waiting = 0;
  // On a socket that does not say, what the kernel took counts.
  if (closed_ || ::ioctl(socket_->native_handle(), SIOCOUTQ, &waiting) != 0 || waiting < 0) waiting = 0;
  return sent_ - std::min<std::uint64_t>(sent_, static_cast<std::uint64_t>(waiting));
}

std::uint64_t frame_sender::queued_bytes() const {
  const lock_guard lock(mutex_);
  return queued_;
}

std::chrono::steady_clock::time_point frame_sender::stuck_since() const {
  const lock_guard lock(mutex_);
  return queue_.empty() ? std::chrono::steady_clock::time_point::max() : progress_;
}

}  // namespace ooc::wire
