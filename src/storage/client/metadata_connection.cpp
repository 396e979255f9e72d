#include "storage/client/metadata_connection.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "storage/wire/address.hpp"

namespace ooc::storage {

using wire::frame_header;
using wire::frame_kind;

namespace {

constexpr wire::frame_limits answer_limits{.body = 16 << 20, .payload = 0};

void tune(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

metadata_connection::metadata_connection(std::string address) : address_(std::move(address)) {}

void metadata_connection::close() noexcept {
  tls_ = nullptr;
  socket_ = file_descriptor();
  begin_ = end_ = 0;
}

void metadata_connection::lose(int error, const std::string& why) {
  close();
  throw connection_lost({error, std::generic_category()}, why);
}

/// Waits until the socket can be read or written; false where the deadline has passed.
bool metadata_connection::wait_for(short events, deadline_point deadline) {
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= tell_at_) {
      tell_at_ = deadline_point::max();
      tell_();
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min(deadline, tell_at_) - now);
    if (deadline <= now) return false;
    pollfd p{socket_.get(), events, 0};
    const int n = ::poll(&p, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;  // the call that follows tells
  }
}

/// 0, or the errno that connecting ended with.
int metadata_connection::connect_until(const sockaddr* to, unsigned size, deadline_point deadline) {
  const int fd = socket_.get();
  if (::connect(fd, to, size) == 0) return 0;
  if (errno != EINPROGRESS && errno != EAGAIN) return errno;
  if (!wait_for(POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

void metadata_connection::connect_socket(deadline_point deadline) {
  const wire::server_address a = wire::parse_address(address_);
  constexpr int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  if (a.host.empty()) {
    sockaddr_un un{};
    un.sun_family = AF_UNIX;
    std::memcpy(un.sun_path, a.path.c_str(), a.path.size() + 1);
    socket_ = file_descriptor(::socket(AF_UNIX, type, 0));
    const int error = socket_ ? connect_until(reinterpret_cast<sockaddr*>(&un),
                                              sizeof un, deadline)
                              : errno;
    if (error != 0) lose(error, "connecting");
    return;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int rc = ::getaddrinfo(a.host.c_str(), a.port.c_str(), &hints, &found); rc != 0) {
    const bool later = rc == EAI_AGAIN;
    const std::string why = "the host's name cannot be found (" + std::string(gai_strerror(rc)) +
                            "); check the name in the URL";
    if (later) lose(EHOSTUNREACH, why);
    throw connection_refused({EHOSTUNREACH, std::generic_category()}, why);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  int error = EHOSTUNREACH;
  for (const addrinfo* i = all.get(); i != nullptr; i = i->ai_next) {
    socket_ = file_descriptor(::socket(i->ai_family, type, 0));
    error = socket_ ? connect_until(i->ai_addr, i->ai_addrlen, deadline) : errno;
    if (error != 0) continue;
    tune(socket_.get());
    return;
  }
  lose(error, "connecting");
}

bool metadata_connection::same_machine() const noexcept {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return ::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
         wire::is_loopback(reinterpret_cast<const sockaddr*>(&peer));
}

/// Both sides prove their keys; from then on everything travels in the session.
void metadata_connection::prove(const wire::key_ptr& key, deadline_point deadline) {
  using progress = wire::tls_session::progress;
  tls_ = std::make_shared<wire::tls_session>(socket_.get(), wire::tls_session::side::client, key);
  for (progress p = tls_->handshake(); p != progress::done; p = tls_->handshake()) {
    if (p == progress::failed) {
      const failure f = tls_->fault();
      if (f.code != std::errc::permission_denied) lose(f.code.value(), f.what);
      close();
      throw connection_refused(f.code, f.what);
    }
    if (!wait_for(p == progress::wants_read ? POLLIN : POLLOUT, deadline))
      lose(ETIMEDOUT, "the server does not prove its key in time");
  }
}

void metadata_connection::connect(const wire::hello_info& me, const wire::key_ptr& key,
                                deadline_point deadline) {
  close();
  connect_socket(deadline);
  wire::peer_proof proof{key != nullptr, {}, same_machine()};
  if (key) {
    prove(key, deadline);
    proof.given = key->holder();
  }
  wire::client_handshake hands(me, std::move(proof));
  const auto refuse_if = [&](const failure& f) {
    if (!f) return;
    close();
    throw connection_refused(f.code, f.what);
  };
  const wire::handshake_step hello = hands.hello();
  refuse_if(hello.refused);
  send(hello.send, deadline);
  const frame_header h = receive(wire::handshake_limits, deadline);
  refuse_if(hands.finish(h, body_));
  server_ = hands.server();
  if (tls_ == nullptr || server_.frames == wire::encryption::on) return;
  if (begin_ != end_ || tls_->holds_bytes()) lose(EPROTO, "more came than the handshake has");
  tls_ = nullptr;
}

metadata_connection::answer metadata_connection::ask(frame_kind kind, std::string_view body,
                                                 deadline_point deadline) {
  frame_header question;
  question.kind = kind;
  question.flags = frame_header::last;
  question.id = ++last_id_;
  send(wire::encode_frame(question, body), deadline);
  const frame_header h = receive(answer_limits, deadline);
  if (h.kind != frame_kind::reply || h.id != question.id)
    lose(EPROTO, "the server sent a " + wire::kind_name(h.kind) + " that was not asked for");
  if (h.incarnation != server_.incarnation)
    lose(EPROTO, "the answer comes from another incarnation of the server");
  return {h, body_};
}

void metadata_connection::send(std::string_view bytes, deadline_point deadline) {
  while (!bytes.empty()) {
    const iovec whole{const_cast<char*>(bytes.data()), bytes.size()};
    const ssize_t n = tls_ ? tls_->send({&whole, 1})
                           : ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(n));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(POLLOUT, deadline))
        lose(ETIMEDOUT, "the server does not take what it is sent");
    } else if (errno != EINTR) {
      lose(errno, "sending");
    }
  }
}

void metadata_connection::fill(std::size_t wanted, deadline_point deadline) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ + wanted > buffer_.size()) {
    buffer_.erase(0, begin_);
    end_ -= begin_;
    begin_ = 0;
    buffer_.resize(std::max<std::size_t>({wanted, buffer_.size(), 8192}));
  }
  while (end_ - begin_ < wanted) {
    const iovec space{buffer_.data() + end_, buffer_.size() - end_};
    const ssize_t n = tls_ ? tls_->receive({&space, 1})
                           : ::recv(socket_.get(), space.iov_base, space.iov_len, 0);
    if (n > 0)
      end_ += static_cast<std::size_t>(n);
    else if (n == 0)
      lose(ECONNRESET, "the server closed the connection");
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(POLLIN, deadline)) lose(ETIMEDOUT, "waiting for the answer");
    } else if (errno == EBADMSG) {
      lose(EBADMSG, wire::altered_record);
    } else if (errno != EINTR) {
      lose(errno, "receiving");
    }
  }
}

frame_header metadata_connection::receive(const wire::frame_limits& limits, deadline_point deadline) {
  frame_header h;
  fill(sizeof h, deadline);
  std::memcpy(&h, buffer_.data() + begin_, sizeof h);
  if (const std::string fault = header_fault(h, limits); !fault.empty()) lose(EPROTO, fault);
  fill(sizeof h + h.body_bytes, deadline);
  body_ = std::string_view(buffer_).substr(begin_ + sizeof h, h.body_bytes);
  begin_ += sizeof h + h.body_bytes;
  if (const std::string fault = body_fault(h, body_); !fault.empty()) lose(EPROTO, fault);
  return h;
}

}  // namespace ooc::storage
