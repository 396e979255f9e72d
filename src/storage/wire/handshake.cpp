#include "storage/wire/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/wire/handshake.pb.h"
#include "storage/wire/messages.hpp"
#include "storage/wire/sodium.hpp"

namespace ooc::wire {

namespace {

constexpr std::size_t max_name = 128;  // bytes
constexpr std::size_t max_uuid = 64;

failure failed(int error, std::string what) {
  return {{error, std::generic_category()}, std::move(what)};
}

template <class Message>
bool parse(Message& m, frame_kind wanted, const frame_header& h, std::string_view body) {
  return h.kind == wanted && body.size() <= handshake_limits.body &&
         m.ParseFromArray(body.data(), static_cast<int>(body.size()));
}

template <class Message>
std::string frame(frame_kind kind, const Message& m) {
  frame_header h;
  h.kind = kind;
  h.flags = frame_header::last;
  return encode_frame(h, m.SerializeAsString());
}

handshake_step refuse(frame_kind kind, int error, std::string why) {
  frame_header h;
  h.kind = kind;
  h.flags = frame_header::last | frame_header::failed;
  failure f = failed(error, std::move(why));
  return {encode_frame(h, encode(f)), f};
}

/// What the other side said when it gave up.
failure refusal(std::string_view body, const char* who) {
  try {
    failure f = decode_failure(body);
    f.what = who + f.what;
    return f;
  } catch (const error& e) {
    return {e.code(), e.what()};
  }
}

template <std::size_t N>
bool copy_exactly(const std::string& from, std::array<std::uint8_t, N>& to) {
  if (from.size() != N) return false;
  std::copy(from.begin(), from.end(), to.begin());
  return true;
}

template <std::size_t N>
std::string as_string(const std::array<std::uint8_t, N>& a) {
  return {a.begin(), a.end()};
}

bool same_mac(const std::string& given, const handshake_mac& expected) {
  return given.size() == expected.size() &&
         ::sodium_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

}  // namespace

client_id random_client_id() {
  ready_sodium();
  client_id id{};
  ::randombytes_buf(id.data(), id.size());
  return id;
}

std::uint64_t random_incarnation() {
  ready_sodium();
  std::uint64_t n = 0;
  while (n == 0) ::randombytes_buf(&n, sizeof n);
  return n;
}

handshake_mac handshake_proof(const cluster_key& key, std::string_view label,
                              const handshake_nonce& client, const handshake_nonce& server,
                              std::string_view hello) {
  const auto bytes = [](std::string_view s) {
    return reinterpret_cast<const unsigned char*>(s.data());
  };
  std::array<std::uint8_t, crypto_hash_sha256_BYTES> digest{};
  ::crypto_hash_sha256(digest.data(), bytes(hello), hello.size());
  crypto_auth_hmacsha256_state state;
  ::crypto_auth_hmacsha256_init(&state, key.bytes().data(), key.bytes().size());
  ::crypto_auth_hmacsha256_update(&state, bytes(label), label.size());
  ::crypto_auth_hmacsha256_update(&state, client.data(), client.size());
  ::crypto_auth_hmacsha256_update(&state, server.data(), server.size());
  ::crypto_auth_hmacsha256_update(&state, digest.data(), digest.size());
  handshake_mac mac{};
  ::crypto_auth_hmacsha256_final(&state, mac.data());
  return mac;
}

client_handshake::client_handshake(hello_info me, key_ptr key, bool same_machine)
    : me_(std::move(me)), key_(std::move(key)), same_machine_(same_machine) {
  ready_sodium();
  ::randombytes_buf(nonce_.data(), nonce_.size());
  pb::Hello h;
  h.set_client_id(as_string(me_.client));
  h.set_connection(me_.connection);
  h.set_role(static_cast<pb::PeerRole>(me_.role));
  h.set_wanted(static_cast<pb::ServerRole>(me_.wanted));
  h.set_uid(me_.who.uid);
  h.set_gid(me_.who.gid);
  h.set_nonce(as_string(nonce_));
  h.set_store_uuid(me_.store_uuid);
  h.set_name(me_.name.substr(0, max_name));
  hello_ = h.SerializeAsString();
}

std::string client_handshake::hello() const {
  frame_header h;
  h.kind = frame_kind::hello;
  h.flags = frame_header::last;
  return encode_frame(h, hello_);
}

handshake_step client_handshake::answer(const frame_header& h, std::string_view body) {
  if (h.has(frame_header::failed)) return {{}, refusal(body, "refused by the server: ")};
  pb::Challenge c;
  handshake_nonce server{};
  if (!parse(c, frame_kind::challenge, h, body) || !copy_exactly(c.nonce(), server))
    return refuse(frame_kind::proof, EPROTO,
                  "the server's challenge is malformed; is it a server of oocarray?");
  if (!c.keyed()) {
    if (!same_machine_)
      return refuse(frame_kind::proof, EACCES,
                    "the server has no cluster key and is not on this machine: whoever answers "
                    "there cannot be trusted; start it with --key");
    return {frame(frame_kind::proof, pb::Proof()), {}};
  }
  if (!key_)
    return refuse(frame_kind::proof, EACCES,
                  "the server wants the cluster key and this program has none: name its file by "
                  "the option `key` or OOC_KEY, or copy it to ~/.config/oocarray/key (mode 600)");
  if (!same_mac(c.proof(), handshake_proof(*key_, server_label, nonce_, server, hello_)))
    return refuse(frame_kind::proof, EACCES,
                  "wrong cluster key: the server's and this program's are not the same; copy the "
                  "key file of the server");
  pb::Proof p;
  p.set_proof(as_string(handshake_proof(*key_, client_label, nonce_, server, hello_)));
  return {frame(frame_kind::proof, p), {}};
}

failure client_handshake::finish(const frame_header& h, std::string_view body) {
  if (h.has(frame_header::failed)) return refusal(body, "refused by the server: ");
  pb::Welcome w;
  if (!parse(w, frame_kind::welcome, h, body))
    return failed(EPROTO, "the server's welcome is malformed");
  server_ = {me_.wanted, w.incarnation(), w.store_uuid(), w.node()};
  if (!me_.store_uuid.empty() && server_.store_uuid != me_.store_uuid)
    return failed(
        ESTALE, "the server serves store " + server_.store_uuid + ", not store " + me_.store_uuid);
  return {};
}

server_handshake::server_handshake(server_info me, key_ptr key, bool same_machine)
    : me_(std::move(me)), key_(std::move(key)), same_machine_(same_machine) {}

handshake_step server_handshake::challenge(const frame_header& header, std::string_view body) {
  const auto refuse_hello = [](int error, std::string why) {
    return refuse(frame_kind::challenge, error, std::move(why));
  };
  pb::Hello h;
  if (!parse(h, frame_kind::hello, header, body))
    return refuse_hello(EPROTO, "the hello cannot be read");
  handshake_nonce nonce{};
  if (!copy_exactly(h.client_id(), peer_.client) || !copy_exactly(h.nonce(), nonce) ||
      h.name().size() > max_name || h.store_uuid().size() > max_uuid ||
      (h.role() != pb::PEER_CLIENT && h.role() != pb::PEER_IO_SERVER))
    return refuse_hello(EPROTO, "the hello is malformed");
  if (static_cast<server_role>(h.wanted()) != me_.role)
    return refuse_hello(EINVAL,
                        me_.role == server_role::metadata
                            ? "this is a metadata server, not an I/O server: the address is wrong"
                            : "this is an I/O server; give the address of the metadata server");
  if (!h.store_uuid().empty() && !me_.store_uuid.empty() && h.store_uuid() != me_.store_uuid)
    return refuse_hello(
        ESTALE, "this server serves store " + me_.store_uuid + ", not store " + h.store_uuid());
  if (!key_ && !same_machine_)
    return refuse_hello(
        EACCES,
        "this server has no cluster key and serves its own machine only; make one with "
        "`ooc keygen` and start the server with --key");
  peer_.connection = h.connection();
  peer_.role = static_cast<peer_role>(h.role());
  peer_.wanted = me_.role;
  peer_.who = {h.uid(), h.gid()};
  peer_.store_uuid = h.store_uuid();
  peer_.name = h.name();

  ready_sodium();
  handshake_nonce mine{};
  ::randombytes_buf(mine.data(), mine.size());
  pb::Challenge c;
  c.set_nonce(as_string(mine));
  c.set_keyed(key_ != nullptr);
  if (key_) {
    c.set_proof(as_string(handshake_proof(*key_, server_label, nonce, mine, body)));
    expected_ = handshake_proof(*key_, client_label, nonce, mine, body);
  }
  return {frame(frame_kind::challenge, c), {}};
}

handshake_step server_handshake::welcome(const frame_header& h, std::string_view body) {
  if (h.kind == frame_kind::proof && h.has(frame_header::failed))
    return {{}, refusal(body, "the client gave up: ")};
  pb::Proof p;
  if (!parse(p, frame_kind::proof, h, body))
    return refuse(frame_kind::welcome, EPROTO, "the proof cannot be read");
  if (key_ && !same_mac(p.proof(), expected_))
    return refuse(frame_kind::welcome, EACCES,
                  "wrong cluster key, or a proof made for another connection");
  pb::Welcome w;
  w.set_incarnation(me_.incarnation);
  w.set_store_uuid(me_.store_uuid);
  w.set_node(me_.node);
  return {frame(frame_kind::welcome, w), {}};
}

}  // namespace ooc::wire
