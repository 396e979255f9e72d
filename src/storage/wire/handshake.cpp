#include "storage/wire/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/wire/handshake.pb.h"
#include "storage/wire/sodium.hpp"

namespace ooc::storage::wire {

namespace {

constexpr std::size_t max_name = 128;  // bytes
constexpr std::size_t max_uuid = 64;

failure failed(int error, std::string what) {
  return {{error, std::generic_category()}, std::move(what)};
}

template <class Message>
bool parse(Message& m, std::string_view body) {
  return body.size() <= max_handshake_body &&
         m.ParseFromArray(body.data(), static_cast<int>(body.size()));
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

failure failure_of(const proto::Refusal& r) {
  return failed(r.error() > 0 ? r.error() : EPROTO, "refused by the server: " + r.reason());
}

std::string refusal_body(const failure& f) {
  proto::FromClient m;
  m.mutable_refusal()->set_error(f.code.value());
  m.mutable_refusal()->set_reason(f.what);
  return m.SerializeAsString();
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
  proto::FromClient m;
  proto::Hello& h = *m.mutable_hello();
  h.set_version(protocol_version);
  h.set_client_id(as_string(me_.client));
  h.set_connection(me_.connection);
  h.set_role(static_cast<proto::PeerRole>(me_.role));
  h.set_wanted(static_cast<proto::ServerRole>(me_.wanted));
  h.set_uid(me_.who.uid);
  h.set_gid(me_.who.gid);
  h.set_nonce(as_string(nonce_));
  h.set_store_uuid(me_.store_uuid);
  h.set_name(me_.name.substr(0, max_name));
  hello_ = m.SerializeAsString();
}

handshake_step client_handshake::answer(std::string_view challenge) {
  const auto refuse = [](int error, std::string why) {
    failure f = failed(error, std::move(why));
    return handshake_step{refusal_body(f), f};
  };
  proto::FromServer m;
  if (!parse(m, challenge))
    return refuse(EPROTO, "the server's challenge cannot be read; is it a server of oocarray?");
  if (m.has_refusal()) return {{}, failure_of(m.refusal())};
  handshake_nonce server{};
  if (!m.has_challenge() || !copy_exactly(m.challenge().nonce(), server))
    return refuse(EPROTO, "the server's challenge is malformed; is it a server of oocarray?");
  proto::FromClient reply;
  if (!m.challenge().keyed()) {
    if (!same_machine_)
      return refuse(EACCES,
                    "the server has no cluster key and is not on this machine: whoever answers "
                    "there cannot be trusted; start it with --key");
    reply.mutable_proof();
    return {reply.SerializeAsString(), {}};
  }
  if (!key_)
    return refuse(EACCES,
                  "the server wants the cluster key and this program has none: name its file by "
                  "the option `key` or OOC_KEY, or copy it to ~/.config/oocarray/key (mode 600)");
  if (!same_mac(m.challenge().proof(),
                handshake_proof(*key_, server_label, nonce_, server, hello_)))
    return refuse(EACCES,
                  "wrong cluster key: the server's and this program's are not the same; copy the "
                  "key file of the server");
  reply.mutable_proof()->set_proof(
      as_string(handshake_proof(*key_, client_label, nonce_, server, hello_)));
  return {reply.SerializeAsString(), {}};
}

failure client_handshake::finish(std::string_view welcome) {
  proto::FromServer m;
  if (!parse(m, welcome)) return failed(EPROTO, "the server's welcome cannot be read");
  if (m.has_refusal()) return failure_of(m.refusal());
  if (!m.has_welcome()) return failed(EPROTO, "the server's welcome is malformed");
  server_ = {me_.wanted, m.welcome().incarnation(), m.welcome().store_uuid(), m.welcome().node()};
  if (!me_.store_uuid.empty() && server_.store_uuid != me_.store_uuid)
    return failed(
        ESTALE, "the server serves store " + server_.store_uuid + ", not store " + me_.store_uuid);
  return {};
}

server_handshake::server_handshake(server_info me, key_ptr key, bool same_machine)
    : me_(std::move(me)), key_(std::move(key)), same_machine_(same_machine) {}

handshake_step server_handshake::refuse(int error, const std::string& why) const {
  proto::FromServer m;
  m.mutable_refusal()->set_error(error);
  m.mutable_refusal()->set_reason(why);
  return {m.SerializeAsString(), failed(error, why)};
}

handshake_step server_handshake::challenge(std::string_view hello) {
  proto::FromClient m;
  if (!parse(m, hello) || !m.has_hello()) return refuse(EPROTO, "the hello cannot be read");
  const proto::Hello& h = m.hello();
  if (h.version() != protocol_version)
    return refuse(EPROTONOSUPPORT, "protocol version " + std::to_string(h.version()) +
                                       ": this server speaks version " +
                                       std::to_string(protocol_version) +
                                       "; use the same release of oocarray on both sides");
  handshake_nonce nonce{};
  if (!copy_exactly(h.client_id(), peer_.client) || !copy_exactly(h.nonce(), nonce) ||
      h.name().size() > max_name || h.store_uuid().size() > max_uuid ||
      (h.role() != proto::PEER_CLIENT && h.role() != proto::PEER_IO_SERVER))
    return refuse(EPROTO, "the hello is malformed");
  if (static_cast<server_role>(h.wanted()) != me_.role)
    return refuse(EINVAL, me_.role == server_role::metadata
                              ? "this is a metadata server, not an I/O server: the address is wrong"
                              : "this is an I/O server; give the address of the metadata server");
  if (!h.store_uuid().empty() && !me_.store_uuid.empty() && h.store_uuid() != me_.store_uuid)
    return refuse(ESTALE,
                  "this server serves store " + me_.store_uuid + ", not store " + h.store_uuid());
  if (!key_ && !same_machine_)
    return refuse(EACCES,
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
  proto::FromServer reply;
  proto::Challenge& c = *reply.mutable_challenge();
  c.set_nonce(as_string(mine));
  c.set_keyed(key_ != nullptr);
  if (key_) {
    c.set_proof(as_string(handshake_proof(*key_, server_label, nonce, mine, hello)));
    expected_ = handshake_proof(*key_, client_label, nonce, mine, hello);
  }
  return {reply.SerializeAsString(), {}};
}

handshake_step server_handshake::welcome(std::string_view proof) {
  proto::FromClient m;
  if (!parse(m, proof)) return refuse(EPROTO, "the proof cannot be read");
  if (m.has_refusal()) {
    handshake_step s = refuse(EACCES, "the client gave up: " + m.refusal().reason());
    s.send.clear();
    return s;
  }
  if (!m.has_proof()) return refuse(EPROTO, "the proof is malformed");
  if (key_ && !same_mac(m.proof().proof(), expected_))
    return refuse(EACCES, "wrong cluster key, or a proof made for another connection");
  proto::FromServer reply;
  proto::Welcome& w = *reply.mutable_welcome();
  w.set_incarnation(me_.incarnation);
  w.set_store_uuid(me_.store_uuid);
  w.set_node(me_.node);
  return {reply.SerializeAsString(), {}};
}

}  // namespace ooc::storage::wire
