#include "storage/wire/handshake.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "storage/wire/handshake.pb.h"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::wire;

namespace {

hello_info someone() {
  hello_info h;
  h.client = random_client_id();
  h.connection = 7;
  h.who = {1000, 100};
  h.name = "jacobi 4711";
  return h;
}

server_info metadata_server() {
  return {server_role::metadata, 0x1234567890abcdef, "11111111-2222-4333-8444-555555555555", 0, encryption::on, 77};
}

bool names(const failure& f, const std::string& what) {
  INFO(f.what);
  return f && f.what.find(what) != std::string::npos;
}

/// A frame as its receiver sees it.
struct received {
  explicit received(const std::string& frame) {
    REQUIRE(frame.size() >= sizeof header);
    std::memcpy(&header, frame.data(), sizeof header);
    body = frame.substr(sizeof header);
    CHECK(header_fault(header, handshake_limits).empty());
    CHECK(body_fault(header, body).empty());
  }
  frame_header header;
  std::string body;
};

handshake_step welcome(server_handshake& s, const std::string& frame) {
  const received r(frame);
  return s.welcome(r.header, r.body);
}

/// Nobody has a key, and both are on one machine.
const peer_proof here{.same_machine = true};

peer_proof proven(const key_ptr& key) { return {.wanted = true, .given = key->holder()}; }

/// Runs both sides against each other and returns what the client and the server think of it.
struct outcome {
  failure client, server;
};
outcome meet(client_handshake& c, server_handshake& s) {
  outcome o;
  const handshake_step hello = c.hello();
  o.client = hello.refused;
  if (hello.send.empty()) return o;
  const handshake_step last = welcome(s, hello.send);
  o.server = last.refused;
  const received r(last.send);
  o.client = c.finish(r.header, r.body);
  return o;
}

/// The client and the server with keys that they have proven to each other.
outcome meet(const hello_info& h, const key_ptr& key, const server_info& me = metadata_server()) {
  client_handshake c(h, proven(key));
  server_handshake s(me, proven(key));
  return meet(c, s);
}

}  // namespace

TEST_CASE("two holders of one key believe each other") {
  const key_ptr key = access_key::random();
  const hello_info me = someone();
  client_handshake c(me, proven(key));
  server_handshake s(metadata_server(), proven(key));
  const outcome o = meet(c, s);
  CHECK_FALSE(o.client);
  CHECK_FALSE(o.server);
  CHECK(c.server().incarnation == metadata_server().incarnation);
  CHECK(c.server().store_uuid == metadata_server().store_uuid);
  CHECK(c.server().epoch == 77);
  CHECK(s.peer().client == me.client);
  CHECK(s.peer().connection == 7);
  CHECK(s.peer().who.uid == 1000);
  CHECK(s.peer().who.gid == 100);
  CHECK(s.peer().name == "jacobi 4711");
  CHECK(s.identity() == key->holder().identity);
}

TEST_CASE("the holder of a user's key acts for that user, in the groups of the key, and for nobody else") {
  const key_ptr cluster = access_key::random();
  const key_ptr alice = cluster->for_user({"alice", 1000, {100, 27}});
  hello_info h = someone();
  CHECK_FALSE(meet(h, alice).server);
  h.who.gid = 27;
  CHECK_FALSE(meet(h, alice).server);
  h.who.gid = 0;
  CHECK(names(meet(h, alice).client, "does not name group 0"));
  for (const std::uint32_t uid : {0U, 1001U}) {
    h.who = {uid, 100};
    const outcome o = meet(h, alice);
    CHECK(names(o.client, "the key of user alice (uid 1000) is not one of user " + std::to_string(uid)));
    CHECK(o.server);
    CHECK_FALSE(meet(h, cluster).server);  // the cluster's may act for anybody
  }
}

TEST_CASE("a user's key registers no I/O server, the cluster's does") {
  const key_ptr cluster = access_key::random();
  hello_info h = someone();
  h.role = peer_role::io_server;
  CHECK(names(meet(h, cluster->for_user({"alice", 1000, {100}})).client, "takes the cluster key"));
  CHECK_FALSE(meet(h, cluster).client);
}

TEST_CASE("a client without a key is refused by a server that has one") {
  client_handshake c(someone(), here);
  server_handshake s(metadata_server(), {.wanted = true, .same_machine = true});
  const outcome o = meet(c, s);
  CHECK(names(o.client, "OOC_KEY"));
  CHECK(o.server);
}

TEST_CASE("without a key a server serves its own machine only") {
  client_handshake near(someone(), here);
  server_handshake for_near(metadata_server(), here);
  CHECK_FALSE(meet(near, for_near).server);
  server_handshake for_far(metadata_server(), {});
  CHECK(names(meet(near, for_far).client, "ooc keygen"));
}

TEST_CASE("without a key a client says nothing to a server on another machine") {
  client_handshake c(someone(), {});
  server_handshake s(metadata_server(), here);
  CHECK(names(meet(c, s).client, "cannot be trusted"));
}

TEST_CASE("both sides must be told the same of encryption") {
  const key_ptr key = access_key::random();
  hello_info h = someone();
  server_info me = metadata_server();
  h.frames = encryption::off;
  CHECK(names(meet(h, key, me).client, "leave ?encrypt=off out"));
  me.frames = encryption::off;
  CHECK_FALSE(meet(h, key, me).client);
  h.frames = encryption::on;
  CHECK(names(meet(h, key, me).client, "put ?encrypt=off into"));

  // A server that agrees to one and goes on with the other
  client_handshake c(h, proven(key));
  pb::Welcome w;
  w.set_incarnation(1);
  w.set_unencrypted(true);
  frame_header header;
  header.kind = frame_kind::welcome;
  CHECK(names(c.finish(header, w.SerializeAsString()), "has not agreed"));
}

TEST_CASE("a server of a release that knows no epochs has none") {
  client_handshake c(someone(), here);
  pb::Welcome w;
  w.set_incarnation(1);
  frame_header header;
  header.kind = frame_kind::welcome;
  CHECK_FALSE(c.finish(header, w.SerializeAsString()));
  CHECK(c.server().epoch == 0);
}

TEST_CASE("another kind of server and another store are told apart") {
  const key_ptr key = access_key::random();
  const auto refused = [&](const hello_info& h) {
    const outcome o = meet(h, key);
    CHECK(static_cast<bool>(o.client) == static_cast<bool>(o.server));
    return o.client;
  };
  hello_info h = someone();
  h.wanted = server_role::io;
  CHECK(names(refused(h), "not an I/O server"));
  h = someone();
  h.store_uuid = "another";
  CHECK(names(refused(h), "not store another"));
  h.store_uuid = metadata_server().store_uuid;
  CHECK_FALSE(refused(h));
}

TEST_CASE("a client that wants one store is not welcome at another") {
  hello_info h = someone();
  h.store_uuid = metadata_server().store_uuid;
  client_handshake c(h, here);
  server_info unregistered = metadata_server();
  unregistered.store_uuid.clear();
  server_handshake s(unregistered, here);
  CHECK(names(meet(c, s).client, "not store"));
}

TEST_CASE("malformed messages are refused at every step") {
  std::mt19937_64 random(ooc::testing::random_seed("handshake"));
  const key_ptr key = access_key::random();
  client_handshake good(someone(), proven(key));
  const received hello(good.hello().send);
  const auto broken = [&](std::string s) {
    const auto n = ooc::testing::between(random, 1, 4);
    for (std::uint64_t i = 0; i < n; ++i)
      s[ooc::testing::between(random, 0, s.size() - 1)] ^= static_cast<char>(ooc::testing::between(random, 1, 255));
    if (random() % 4 == 0) s.resize(ooc::testing::between(random, 0, s.size()));
    return s;
  };
  const key_ptr alice = key->for_user({"alice", 1000, {100}});
  for (int i = 0; i < 10'000; ++i) {
    // May be a good hello of somebody else, but never of another user than the key's.
    server_handshake s(metadata_server(), proven(alice));
    if (!s.welcome(hello.header, broken(hello.body)).refused) CHECK(s.peer().who.uid == 1000);
    server_handshake unproven(metadata_server(), {.wanted = true, .same_machine = true});
    CHECK(unproven.welcome(hello.header, broken(hello.body)).refused);
  }
  server_handshake s(metadata_server(), proven(key));
  CHECK(s.welcome(hello.header, std::string(handshake_limits.body + 1, 'x')).refused);
  CHECK(s.welcome(hello.header, "").refused);
  frame_header other = hello.header;
  other.kind = frame_kind::welcome;
  CHECK(s.welcome(other, hello.body).refused);
  CHECK(good.finish(hello.header, hello.body));
}
