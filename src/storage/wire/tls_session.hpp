// TLS 1.3 between two holders of keys of one cluster, over a connected non-blocking socket.
//
// Both sides prove their keys as external pre-shared keys (RFC 8446, "psk_dhe_ke": with an ephemeral
// Diffie-Hellman exchange, so that a key that is lost later opens no recorded connection).  There are no
// certificates, tickets, resumption or early data.  What follows goes through receive() and send(), which
// are to bytes what recvmsg() and sendmsg() are: readers and senders of frames use one or the other.
//
// OpenSSL does the protocol; this class moves its bytes, because Asio's stream writes one record a call,
// and has no scattered buffers.  Records are made of the caller's memory and gathered up to 64 KiB before
// they go to the socket.
//
// One thread may receive while another sends: a mutex guards the state that both share.  The socket
// belongs to the caller and must outlive the last call.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "oocarray/error.hpp"
#include "storage/wire/access_key.hpp"

namespace ooc::wire {

class tls_session {
 public:
  enum class side { client, server };

  /// Of a server, `key` is the cluster's.
  tls_session(int socket, side which, key_ptr key);
  ~tls_session();
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;

  enum class progress { done, wants_read, wants_write, failed };
  /// Goes on with the handshake as far as the socket lets it; to be called again when that can be read or
  /// written.
  progress handshake();
  /// Why the handshake failed: EACCES where a side does not prove its key, ECONNRESET where the connection
  /// ended, EPROTO where what came is no TLS or was changed on its way.
  const failure& fault() const noexcept;
  /// After the handshake, of a server: who has proven to be there.
  const key_holder& peer() const noexcept;

  /// Bytes put to the front of `to`; 0 at the end of the connection; -1 with errno: EAGAIN, EBADMSG (what
  /// came was changed on its way, or repeated: nothing more will be received), or that of the socket.
  ssize_t receive(std::span<const iovec> to);
  /// Bytes from the front of `from` that the socket has taken; -1 with errno.  After EAGAIN the next call must
  /// begin with the same bytes, at any address.
  ssize_t send(std::span<const iovec> from);
  /// True where something has come that nobody has received, or waits to be sent.
  bool holds_bytes() const;

  /// A reader that waits for plain bytes need not be woken up for so many fewer of the socket's: part of a
  /// record may have been read already.
  static constexpr std::size_t largest_record = (16 << 10) + 512;

 private:
  struct state;
  friend struct tls_context;
  const std::unique_ptr<state> state_;
};

using tls_ptr = std::shared_ptr<tls_session>;

/// Where errno is EBADMSG: what the user is told.
inline constexpr const char* altered_record =
    "what came was changed, repeated or left out on its way (a TLS record does not fit its key)";

/// The first byte of a TLS handshake.  (Of a frame: 'O'.)
inline constexpr char tls_begin = 0x16;

}  // namespace ooc::wire
