#include "storage/wire/tls_session.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "storage/base/mutex.hpp"

namespace ooc::wire {

namespace {

constexpr std::size_t record_bytes = 16 << 10;       // of plain text, the most that TLS allows
constexpr std::size_t gathered_bytes = 64 << 10;     // go to the socket in one call
constexpr std::size_t received_bytes = 64 << 10;     // come from the socket in one call
constexpr std::uint64_t records_of_a_key = 1 << 22;  // RFC 8446, 5.5 allows AES-GCM 2^24.5

[[noreturn]] void fail(const std::string& doing) {
  throw io_error::in_full({ENOSYS, std::generic_category()}, "OpenSSL: " + doing + " failed");
}

failure loss_by(int error) {
  const std::error_code code(error, std::generic_category());
  return {code, "the connection was lost: " + code.message()};
}

/// OpenSSL's reason for the error that it met last.
std::string openssl_reason() {
  const unsigned long code = ::ERR_peek_last_error();
  const char* text = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return text == nullptr ? "no reason given" : text;
}

}  // namespace

struct tls_session::state {
  state(int s, side w, key_ptr k) : socket(s), which(w), key(std::move(k)) {}
  ~state() { ::SSL_free(ssl); }

  // With the mutex held.
  bool flush() OOC_REQUIRES(mutex);
  void keep(failure f) {
    if (!fault) fault = std::move(f);
  }
  failure what_failed(int result);
  progress handshake() OOC_REQUIRES(mutex);
  ssize_t receive(std::span<const iovec> to) OOC_REQUIRES(mutex);
  ssize_t send(std::span<const iovec> from) OOC_REQUIRES(mutex);
  bool make_records(std::span<const iovec> from) OOC_REQUIRES(mutex);
  bool write_record(const char* p, std::size_t n) OOC_REQUIRES(mutex);

  const int socket;
  const side which;
  const key_ptr key;
  SSL* ssl = nullptr;
  key_holder peer;
  failure fault;         // of the handshake
  std::string told;      // about the key of the other side
  bool proven = false;   // the handshake has ended well
  bool broken = false;   // nothing that comes can be believed
  bool foreign = false;  // what came first was no TLS
  bool began = false;    // something has come
  bool ended = false;    // the peer has ended the connection
  int socket_error = 0;

  mutable ooc::mutex mutex;
  // Records that wait for the socket, and bytes of the sender's that they hold.
  std::vector<char> out OOC_GUARDED_BY(mutex);
  std::size_t out_begin OOC_GUARDED_BY(mutex) = 0;
  std::size_t out_plain OOC_GUARDED_BY(mutex) = 0;
  std::uint64_t records OOC_GUARDED_BY(mutex) = 0;  // made with the present key
};

namespace {

// The ends of OpenSSL towards the socket.

template <class State>
State& owner(BIO* b) {
  return *static_cast<State*>(::BIO_get_data(b));
}

}  // namespace

/// Everything that OpenSSL needs to be told once in a process.
struct tls_context {
  using state = tls_session::state;

  // Called by OpenSSL, and that by who holds the mutex of the session.
  static int put(BIO* b, const char* data, std::size_t n, std::size_t* written) OOC_NO_THREAD_SAFETY_ANALYSIS {
    state& s = owner<state>(b);
    s.out.insert(s.out.end(), data, data + n);
    *written = n;
    return 1;
  }

  static int get(BIO* b, char* data, std::size_t n, std::size_t* read) {
    state& s = owner<state>(b);
    ::BIO_clear_retry_flags(b);
    ssize_t got = 0;
    do got = ::recv(s.socket, data, n, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
      if (!std::exchange(s.began, true)) s.foreign = data[0] != tls_begin && data[0] != 0x15;
      *read = static_cast<std::size_t>(got);
      return 1;
    }
    if (got == 0)
      s.ended = true;
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      ::BIO_set_retry_read(b);
    else
      s.socket_error = errno;
    return 0;
  }

  static long control(BIO* b, int what, long, void*) {
    if (what == BIO_CTRL_EOF) return owner<state>(b).ended ? 1 : 0;
    return what == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* socket_end() {
    static const BIO_METHOD* const method = [] {
      BIO_METHOD* m = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection");
      if (m == nullptr) fail("BIO_meth_new");
      ::BIO_meth_set_write_ex(m, put);
      ::BIO_meth_set_read_ex(m, get);
      ::BIO_meth_set_ctrl(m, control);
      return m;
    }();
    return method;
  }

  static SSL_SESSION* session_of(SSL* ssl, access_key::secret secret) {
    SSL_SESSION* s = ::SSL_SESSION_new();
    const unsigned char suite[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256: the key's hash is SHA-256
    const bool made = s != nullptr && ::SSL_SESSION_set1_master_key(s, secret.data(), secret.size()) == 1 &&
                      ::SSL_SESSION_set_cipher(s, ::SSL_CIPHER_find(ssl, suite)) == 1 &&
                      ::SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1;
    ::sodium_memzero(secret.data(), secret.size());
    if (made) return s;
    ::SSL_SESSION_free(s);
    return nullptr;
  }

  // Which key a client has.
  static int use_key(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* length, SSL_SESSION** session) {
    const state& s = *static_cast<state*>(SSL_get_app_data(ssl));
    const std::string& identity = s.key->holder().identity;
    *id = reinterpret_cast<const unsigned char*>(identity.data());
    *length = identity.size();
    *session = session_of(ssl, s.key->own_secret());
    return *session != nullptr;
  }

  // The key of who names itself to a server.  Without a session the handshake goes on to fail, as there
  // is no certificate.
  static int find_key(SSL* ssl, const unsigned char* id, std::size_t length, SSL_SESSION** session) {
    state& s = *static_cast<state*>(SSL_get_app_data(ssl));
    *session = nullptr;
    auto holder = parse_identity({reinterpret_cast<const char*>(id), length});
    if (!holder) {
      s.told = "the client's key is of no kind that is known";
      return 1;
    }
    if (holder->cluster != s.key->holder().cluster) {
      s.told =
          "the client's key is of cluster " + holder->cluster + ", the server's of cluster " + s.key->holder().cluster;
      return 1;
    }
    *session = session_of(ssl, s.key->secret_of(*holder));
    s.peer = std::move(*holder);
    return *session != nullptr;
  }

  /// Lives as long as the process: threads may write back arrays while it ends.
  static SSL_CTX* of(tls_session::side which) {
    static SSL_CTX* const client = make(tls_session::side::client);
    static SSL_CTX* const server = make(tls_session::side::server);
    return which == tls_session::side::client ? client : server;
  }

  static SSL_CTX* make(tls_session::side which) {
    ::OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
    const bool client = which == tls_session::side::client;
    SSL_CTX* c = ::SSL_CTX_new(client ? ::TLS_client_method() : ::TLS_server_method());
    if (c == nullptr) fail("SSL_CTX_new");
    if (::SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
        ::SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") != 1 ||
        ::SSL_CTX_set1_groups_list(c, "X25519:P-256") != 1)
      fail("choosing TLS 1.3");
    ::SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    ::SSL_CTX_set_num_tickets(c, 0);
    ::SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    ::SSL_CTX_set_mode(c,
                       SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_ENABLE_PARTIAL_WRITE);
    ::SSL_CTX_set_read_ahead(c, 1);
    ::SSL_CTX_set_default_read_buffer_len(c, received_bytes);
    if (client) {
      // No certificate is trusted, so that a server without the key cannot get through with one.
      ::SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
      ::SSL_CTX_set_psk_use_session_callback(c, use_key);
    } else {
      ::SSL_CTX_set_psk_find_session_callback(c, find_key);
    }
    return c;
  }
};

tls_session::tls_session(int socket, side which, key_ptr key)
    : state_(std::make_unique<state>(socket, which, std::move(key))) {
  state_->ssl = ::SSL_new(tls_context::of(which));
  BIO* const end = ::BIO_new(tls_context::socket_end());
  if (state_->ssl == nullptr || end == nullptr) {
    ::BIO_free(end);
    throw std::bad_alloc();
  }
  ::BIO_set_data(end, state_.get());
  ::BIO_set_init(end, 1);
  ::SSL_set_bio(state_->ssl, end, end);
  SSL_set_app_data(state_->ssl, state_.get());
  if (which == side::client)
    ::SSL_set_connect_state(state_->ssl);
  else
    ::SSL_set_accept_state(state_->ssl);
}

tls_session::~tls_session() = default;

tls_session::progress tls_session::handshake() {
  const lock_guard lock(state_->mutex);
  return state_->handshake();
}

const failure& tls_session::fault() const noexcept { return state_->fault; }

const key_holder& tls_session::peer() const noexcept { return state_->peer; }

ssize_t tls_session::receive(std::span<const iovec> to) {
  const lock_guard lock(state_->mutex);
  return state_->receive(to);
}

ssize_t tls_session::send(std::span<const iovec> from) {
  const lock_guard lock(state_->mutex);
  return state_->send(from);
}

bool tls_session::holds_bytes() const {
  const lock_guard lock(state_->mutex);
  return ::SSL_has_pending(state_->ssl) == 1 || state_->out_begin != state_->out.size();
}

/// False with errno where the socket does not take all that waits.
bool tls_session::state::flush() {
  while (out_begin != out.size()) {
    const ssize_t n = ::send(socket, out.data() + out_begin, out.size() - out_begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    out_begin += static_cast<std::size_t>(n);
  }
  out_begin = 0;
  out.clear();
  return true;
}

/// Why the handshake has failed.
failure tls_session::state::what_failed(int result) {
  const auto because = [](int error, std::string what) {
    return failure{{error, std::generic_category()}, std::move(what)};
  };
  const std::string reason = openssl_reason();
  const int ssl_reason = ERR_GET_REASON(::ERR_peek_last_error());
  if (foreign && which == side::client)
    return because(EACCES,
                   "the server does not prove that it holds a key of this cluster, as it has none: it is "
                   "another one, or was started without --key; where servers are to have no key, "
                   "set OOC_KEY=none");
  if (socket_error != 0) return loss_by(socket_error);
  if (ended) return because(ECONNRESET, "the connection was lost before both sides had proven their keys");
  (void)::SSL_get_error(ssl, result);
  if (which == side::server)
    return because(EACCES,
                   "wrong cluster key: the client does not prove that it holds a key of this "
                   "cluster (" +
                       (told.empty() ? "TLS: " + reason : told) + ")");
  // An alert, or a proof that is wrong: both say that the other side has another key.
  if (ssl_reason >= SSL_AD_REASON_OFFSET || ssl_reason == SSL_R_CERTIFICATE_VERIFY_FAILED ||
      ssl_reason == SSL_R_DIGEST_CHECK_FAILED || ssl_reason == SSL_R_BINDER_DOES_NOT_VERIFY)
    return because(EACCES,
                   "wrong cluster key: the server does not prove that it holds a key of this "
                   "program's cluster, or does not accept this program's (TLS: " +
                       reason + "); give both keys of the same cluster");
  return because(EPROTO, "the proof of the keys was changed on its way, or is no TLS 1.3 (TLS: " + reason + ")");
}

tls_session::progress tls_session::state::handshake() {
  if (fault) return progress::failed;
  if (!proven) {
    ::ERR_clear_error();
    const int result = ::SSL_do_handshake(ssl);
    if (result != 1) {
      const bool waits = ::SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ;
      if (!waits) keep(what_failed(result));
      // Bytes that wait to be sent go out first: the alert of a failure, too.
      const bool flushed = flush();
      if (fault) return progress::failed;
      return flushed ? progress::wants_read : progress::wants_write;
    }
    if (::SSL_session_reused(ssl) != 1 || ::SSL_version(ssl) != TLS1_3_VERSION) {
      keep({{EACCES, std::generic_category()}, "the other side has not proven a key"});
      return progress::failed;
    }
    proven = true;
  }
  if (flush()) return progress::done;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return progress::wants_write;
  keep(loss_by(errno));
  return progress::failed;
}

ssize_t tls_session::state::receive(std::span<const iovec> to) {
  if (broken) {
    errno = EBADMSG;
    return -1;
  }
  std::size_t total = 0;
  for (const iovec& part : to)
    for (std::size_t at = 0; at < part.iov_len;) {
      // More than has been read from the socket already is left to the next call.
      if (total != 0 && (total >= received_bytes || ::SSL_has_pending(ssl) != 1)) return static_cast<ssize_t>(total);
      ::ERR_clear_error();
      std::size_t n = 0;
      const int result = ::SSL_read_ex(ssl, static_cast<char*>(part.iov_base) + at, part.iov_len - at, &n);
      if (result == 1) {
        at += n;
        total += n;
        continue;
      }
      if (total != 0) return static_cast<ssize_t>(total);  // the next call meets the error again
      const int error = ::SSL_get_error(ssl, result);
      if (error == SSL_ERROR_WANT_READ) {
        errno = EAGAIN;
        return -1;
      }
      if (socket_error != 0) {
        errno = socket_error;
        return -1;
      }
      if (error == SSL_ERROR_ZERO_RETURN || ended) return 0;
      broken = true;
      (void)flush();  // the alert; the connection ends in any case
      errno = EBADMSG;
      return -1;
    }
  return static_cast<ssize_t>(total);
}

bool tls_session::state::write_record(const char* p, std::size_t n) {
  if (++records == records_of_a_key) {
    records = 0;
    if (::SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return false;
  }
  ::ERR_clear_error();
  std::size_t written = 0;
  if (::SSL_write_ex(ssl, p, n, &written) != 1 || written != n) return false;
  out_plain += n;
  return true;
}

/// Of whole records' worth in the sender's memory records are made where it lies; what is shorter is put
/// together first.
bool tls_session::state::make_records(std::span<const iovec> from) {
  std::vector<char> together;
  for (const iovec& part : from) {
    const char* p = static_cast<const char*>(part.iov_base);
    for (std::size_t left = part.iov_len; left != 0;) {
      if (out_plain >= gathered_bytes) return true;
      std::size_t n = std::min(left, record_bytes - together.size());
      if (n == record_bytes) {
        if (!write_record(p, n)) return false;
      } else {
        together.insert(together.end(), p, p + n);
        if (together.size() == record_bytes) {
          if (!write_record(together.data(), together.size())) return false;
          together.clear();
        }
      }
      p += n;
      left -= n;
    }
  }
  return together.empty() || write_record(together.data(), together.size());
}

ssize_t tls_session::state::send(std::span<const iovec> from) {
  for (;;) {
    if (!flush()) return -1;
    if (out_plain != 0) return static_cast<ssize_t>(std::exchange(out_plain, 0));
    if (broken || !make_records(from)) {
      broken = true;
      errno = EPIPE;
      return -1;
    }
    if (out_plain == 0) return 0;  // there was nothing to send
  }
}

}  // namespace ooc::wire
