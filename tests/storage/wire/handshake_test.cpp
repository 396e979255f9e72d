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
  return {server_role::metadata, 0x1234567890abcdef, "11111111-2222-4333-8444-555555555555", 0};
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

handshake_step challenge(server_handshake& s, const std::string& frame) {
  const received r(frame);
  return s.challenge(r.header, r.body);
}
handshake_step answer(client_handshake& c, const std::string& frame) {
  const received r(frame);
  return c.answer(r.header, r.body);
}
handshake_step welcome(server_handshake& s, const std::string& frame) {
  const received r(frame);
  return s.welcome(r.header, r.body);
}

template <class Message>
Message parsed(const std::string& frame) {
  Message m;
  REQUIRE(m.ParseFromString(received(frame).body));
  return m;
}
template <class Message>
std::string framed(frame_kind kind, const Message& m) {
  frame_header h;
  h.kind = kind;
  return encode_frame(h, m.SerializeAsString());
}

/// Bytes that differ may still mean the same: fields that are not known are passed over.
bool same_challenge(const std::string& a, const std::string& b) {
  pb::Challenge x, y;
  return x.ParseFromString(a) && y.ParseFromString(b) && x.nonce() == y.nonce() &&
         x.proof() == y.proof();
}

/// Runs both sides against each other and returns what the client and the server think of it.
struct outcome {
  failure client, server;
};
outcome meet(client_handshake& c, server_handshake& s) {
  outcome o;
  const handshake_step first = challenge(s, c.hello());
  o.server = first.refused;
  const handshake_step proof = answer(c, first.send);
  o.client = proof.refused;
  if (proof.send.empty() || o.server) return o;
  const handshake_step last = welcome(s, proof.send);
  o.server = last.refused;
  if (o.client || last.send.empty()) return o;
  const received r(last.send);
  o.client = c.finish(r.header, r.body);
  return o;
}

}  // namespace

TEST_CASE("two holders of one key believe each other") {
  const key_ptr key = cluster_key::random();
  const hello_info me = someone();
  client_handshake c(me, key, false);
  server_handshake s(metadata_server(), key, false);
  const outcome o = meet(c, s);
  CHECK_FALSE(o.client);
  CHECK_FALSE(o.server);
  CHECK(c.server().incarnation == metadata_server().incarnation);
  CHECK(c.server().store_uuid == metadata_server().store_uuid);
  CHECK(s.peer().client == me.client);
  CHECK(s.peer().connection == 7);
  CHECK(s.peer().who.uid == 1000);
  CHECK(s.peer().who.gid == 100);
  CHECK(s.peer().name == "jacobi 4711");
}

TEST_CASE("a wrong key is refused on both sides, with the reason") {
  client_handshake c(someone(), cluster_key::random(), true);
  server_handshake s(metadata_server(), cluster_key::random(), true);
  const outcome o = meet(c, s);
  CHECK(names(o.client, "wrong cluster key"));
  CHECK(names(o.server, "wrong cluster key"));
}

TEST_CASE("a client without the key is refused by a server that has one") {
  client_handshake c(someone(), nullptr, true);
  server_handshake s(metadata_server(), cluster_key::random(), true);
  const outcome o = meet(c, s);
  CHECK(names(o.client, "OOC_KEY"));
  CHECK(names(o.server, "gave up"));
  // ... also one that does not give up by itself.
  CHECK(names(welcome(s, framed(frame_kind::proof, pb::Proof())).refused, "wrong cluster key"));
}

TEST_CASE("without a key a server serves its own machine only") {
  client_handshake near(someone(), nullptr, true), far(someone(), nullptr, false);
  server_handshake for_near(metadata_server(), nullptr, true);
  CHECK_FALSE(meet(near, for_near).server);
  server_handshake for_far(metadata_server(), nullptr, false);
  CHECK(names(meet(far, for_far).client, "ooc keygen"));
}

TEST_CASE("a server on another machine that shows no key is not believed") {
  client_handshake c(someone(), cluster_key::random(), false);
  server_handshake s(metadata_server(), nullptr, true);
  const outcome o = meet(c, s);
  CHECK(names(o.client, "cannot be trusted"));
  CHECK(o.server);
}

TEST_CASE("a recorded proof opens no second connection") {
  const key_ptr key = cluster_key::random();
  client_handshake c(someone(), key, false);
  server_handshake first(metadata_server(), key, false), second(metadata_server(), key, false);
  const handshake_step proof = answer(c, challenge(first, c.hello()).send);
  CHECK_FALSE(welcome(first, proof.send).refused);
  REQUIRE_FALSE(challenge(second, c.hello()).refused);
  CHECK(names(welcome(second, proof.send).refused, "another connection"));
}

TEST_CASE("a server's own proof sent back to it is no proof of the client") {
  const key_ptr key = cluster_key::random();
  client_handshake c(someone(), key, false);
  server_handshake s(metadata_server(), key, false);
  pb::Proof p;
  p.set_proof(parsed<pb::Challenge>(challenge(s, c.hello()).send).proof());
  CHECK(welcome(s, framed(frame_kind::proof, p)).refused);
}

TEST_CASE("a hello that was changed on its way is noticed") {
  const key_ptr key = cluster_key::random();
  client_handshake c(someone(), key, false);
  server_handshake s(metadata_server(), key, false);
  auto hello = parsed<pb::Hello>(c.hello());
  hello.set_uid(0);
  const handshake_step first = challenge(s, framed(frame_kind::hello, hello));
  REQUIRE_FALSE(first.refused);
  CHECK(names(answer(c, first.send).refused, "wrong cluster key"));
}

TEST_CASE("another kind of server and another store are told apart") {
  const key_ptr key = cluster_key::random();
  const auto refused = [&](const hello_info& h) {
    client_handshake c(h, key, false);
    server_handshake s(metadata_server(), key, false);
    const outcome o = meet(c, s);
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
  client_handshake c(h, nullptr, true);
  server_info unregistered = metadata_server();
  unregistered.store_uuid.clear();
  server_handshake s(unregistered, nullptr, true);
  CHECK(names(meet(c, s).client, "not store"));
}

TEST_CASE("malformed messages are refused at every step") {
  std::mt19937_64 random(ooc::testing::random_seed("handshake"));
  const key_ptr key = cluster_key::random();
  client_handshake good(someone(), key, false);
  server_handshake honest(metadata_server(), key, true);
  const received hello(good.hello());
  const received first(challenge(honest, good.hello()).send);
  const received proof(good.answer(first.header, first.body).send);
  const auto broken = [&](std::string s) {
    const auto n = ooc::testing::between(random, 1, 4);
    for (std::uint64_t i = 0; i < n; ++i)
      s[ooc::testing::between(random, 0, s.size() - 1)] ^=
          static_cast<char>(ooc::testing::between(random, 1, 255));
    if (random() % 4 == 0) s.resize(ooc::testing::between(random, 0, s.size()));
    return s;
  };
  for (int i = 0; i < 10'000; ++i) {
    server_handshake s(metadata_server(), key, true), t(metadata_server(), key, true);
    (void)s.challenge(hello.header, broken(hello.body));  // may be a good hello of somebody else
    const std::string bad = broken(first.body);
    CHECK((good.answer(first.header, bad).refused || same_challenge(bad, first.body)));
    REQUIRE_FALSE(t.challenge(hello.header, hello.body).refused);
    CHECK(t.welcome(proof.header, broken(proof.body)).refused);  // made for another connection
  }
  server_handshake s(metadata_server(), key, true);
  CHECK(s.challenge(hello.header, std::string(handshake_limits.body + 1, 'x')).refused);
  CHECK(s.challenge(hello.header, "").refused);
  CHECK(s.challenge(proof.header, hello.body).refused);
  CHECK(good.answer(hello.header, first.body).refused);
  CHECK(honest.welcome(hello.header, proof.body).refused);
}
