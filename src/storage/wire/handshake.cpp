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

constexpr std::size_t max_peer_name = 128;  // bytes
constexpr std::size_t max_uuid = 64;

failure failed(int error, std::string what) { return {{error, std::generic_category()}, std::move(what)}; }

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

/// The failure that the other side sent when it gave up.
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

client_handshake::client_handshake(hello_info me, peer_proof proof) : me_(std::move(me)), proof_(std::move(proof)) {}

handshake_step client_handshake::hello() const {
  if (!proof_.given && !proof_.same_machine)
    return {{},
            failed(EACCES,
                   "the server is not on this machine and this program has no key: whoever answers there "
                   "cannot be trusted; name the key's file by the option `key` or OOC_KEY, or copy it to "
                   "~/.config/oocarray/key (mode 600)")};
  pb::Hello h;
  h.set_client_id(as_string(me_.client));
  h.set_connection(me_.connection);
  h.set_role(static_cast<pb::PeerRole>(me_.role));
  h.set_wanted(static_cast<pb::ServerRole>(me_.wanted));
  h.set_uid(me_.who.uid);
  h.set_gid(me_.who.gid);
  h.set_store_uuid(me_.store_uuid);
  h.set_name(me_.name.substr(0, max_peer_name));
  h.set_unencrypted(me_.frames == encryption::off);
  return {frame(frame_kind::hello, h), {}};
}

failure client_handshake::finish(const frame_header& h, std::string_view body) {
  if (h.has(frame_header::failed)) return refusal(body, "refused by the server: ");
  pb::Welcome w;
  if (!parse(w, frame_kind::welcome, h, body))
    return failed(EPROTO, "the server's welcome is malformed; is it a server of oocarray?");
  server_ = {me_.wanted, w.incarnation(), w.store_uuid(), w.node(), w.unencrypted() ? encryption::off : encryption::on,
             w.epoch()};
  if (proof_.given && server_.frames != me_.frames)
    return failed(EPROTO, "the server has not agreed to how frames are to be encrypted");
  if (!me_.store_uuid.empty() && server_.store_uuid != me_.store_uuid)
    return failed(ESTALE, "the server serves store " + server_.store_uuid + ", not store " + me_.store_uuid);
  return {};
}

server_handshake::server_handshake(server_info me, peer_proof proof) : me_(std::move(me)), proof_(std::move(proof)) {}

handshake_step server_handshake::welcome(const frame_header& h, std::string_view body) {
  if (failure f = fault_of(h, body)) return refuse(frame_kind::welcome, f.code.value(), f.what);
  pb::Welcome w;
  w.set_incarnation(me_.incarnation);
  w.set_store_uuid(me_.store_uuid);
  w.set_node(me_.node);
  w.set_unencrypted(me_.frames == encryption::off);
  w.set_epoch(me_.epoch);
  return {frame(frame_kind::welcome, w), {}};
}

/// Why the hello is not welcome; else peer_ has what it says.
failure server_handshake::fault_of(const frame_header& header, std::string_view body) {
  pb::Hello h;
  if (!parse(h, frame_kind::hello, header, body)) return failed(EPROTO, "the hello cannot be read");
  if (!copy_exactly(h.client_id(), peer_.client) || h.name().size() > max_peer_name ||
      h.store_uuid().size() > max_uuid || (h.role() != pb::PEER_CLIENT && h.role() != pb::PEER_IO_SERVER))
    return failed(EPROTO, "the hello is malformed");
  if (proof_.wanted && !proof_.given)
    return failed(EACCES,
                  "the server wants a key of its cluster and this program has none: name its file by "
                  "the option `key` or OOC_KEY, or copy it to ~/.config/oocarray/key (mode 600)");
  if (!proof_.wanted && !proof_.same_machine)
    return failed(EACCES,
                  "this server has no cluster key and serves its own machine only; make one with "
                  "`ooc keygen` and start the server with --key");
  if (static_cast<server_role>(h.wanted()) != me_.role)
    return failed(EINVAL, me_.role == server_role::metadata
                              ? "this is a metadata server, not an I/O server: the address is wrong"
                              : "this is an I/O server; give the address of the metadata server");
  if (!h.store_uuid().empty() && !me_.store_uuid.empty() && h.store_uuid() != me_.store_uuid)
    return failed(ESTALE, "this server serves store " + me_.store_uuid + ", not store " + h.store_uuid());
  peer_.connection = h.connection();
  peer_.role = static_cast<peer_role>(h.role());
  peer_.wanted = me_.role;
  peer_.who = {h.uid(), h.gid()};
  peer_.store_uuid = h.store_uuid();
  peer_.name = h.name();
  peer_.frames = h.unencrypted() ? encryption::off : encryption::on;
  if (failure f = user_fault()) return f;
  if (!proof_.wanted || peer_.frames == me_.frames) return {};
  return failed(EACCES, me_.frames == encryption::on
                            ? "the server encrypts (it was not started with --encrypt off), and this program "
                              "wants it not to: leave ?encrypt=off out of the store's URL"
                            : "the server does not encrypt (--encrypt off), and this program wants it to: where "
                              "the network is trusted, put ?encrypt=off into the store's URL");
}

/// Why the peer may not be who it says it is.
failure server_handshake::user_fault() const {
  if (!proof_.given || !proof_.given->user) return {};
  const key_user& u = *proof_.given->user;
  const std::string key = "the key of user " + u.name + " (uid " + std::to_string(u.uid) + ") ";
  if (proof_.revoked) return failed(EACCES, key + "has been revoked: ask who administers the store for a new one");
  if (peer_.role == peer_role::io_server)
    return failed(EACCES, key + "registers no I/O servers: that takes the cluster key");
  if (peer_.who.uid != u.uid)
    return failed(EACCES,
                  key + "is not one of user " + std::to_string(peer_.who.uid) + ", for whom the program wants to act");
  if (!u.in_group(peer_.who.gid))
    return failed(EACCES,
                  key + "does not name group " + std::to_string(peer_.who.gid) + ", in which the program wants to act");
  return {};
}

handshake_step not_welcome(const failure& why) { return refuse(frame_kind::welcome, why.code.value(), why.what); }

handshake_step no_key_here() {
  return not_welcome(failed(EACCES, "this server has no cluster key, and the client wants one proven"));
}

}  // namespace ooc::wire
