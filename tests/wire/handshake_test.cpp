#include "storage/wire/handshake.hpp"

#include <catch2/catch.hpp>

#include "random_seed.hpp"
#include "storage/wire/handshake.pb.h"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::storage::wire;

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

/// Bytes that differ may still mean the same: fields that are not known are passed over.
bool same_challenge(const std::string& a, const std::string& b) {
  proto::FromServer x, y;
  return x.ParseFromString(a) && y.ParseFromString(b) &&
         x.challenge().nonce() == y.challenge().nonce() &&
         x.challenge().proof() == y.challenge().proof();
}

/// Runs both sides against each other and returns what the client and the server think of it.
struct outcome {
  failure client, server;
};
outcome meet(client_handshake& c, server_handshake& s) {
  outcome o;
  const handshake_step challenge = s.challenge(c.hello());
  o.server = challenge.refused;
  const handshake_step proof = c.answer(challenge.send);
  o.client = proof.refused;
  if (proof.send.empty() || o.server) return o;
  const handshake_step welcome = s.welcome(proof.send);
  o.server = welcome.refused;
  if (!o.client) o.client = c.finish(welcome.send);
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
  proto::FromClient m;
  m.mutable_proof();
  CHECK(names(s.welcome(m.SerializeAsString()).refused, "wrong cluster key"));
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
  const handshake_step proof = c.answer(first.challenge(c.hello()).send);
  CHECK_FALSE(first.welcome(proof.send).refused);
  REQUIRE_FALSE(second.challenge(c.hello()).refused);
  CHECK(names(second.welcome(proof.send).refused, "another connection"));
}

TEST_CASE("a server's own proof sent back to it is no proof of the client") {
  const key_ptr key = cluster_key::random();
  client_handshake c(someone(), key, false);
  server_handshake s(metadata_server(), key, false);
  proto::FromServer challenge;
  REQUIRE(challenge.ParseFromString(s.challenge(c.hello()).send));
  proto::FromClient m;
  m.mutable_proof()->set_proof(challenge.challenge().proof());
  CHECK(s.welcome(m.SerializeAsString()).refused);
}

TEST_CASE("a hello that was changed on its way is noticed") {
  const key_ptr key = cluster_key::random();
  client_handshake c(someone(), key, false);
  server_handshake s(metadata_server(), key, false);
  proto::FromClient m;
  REQUIRE(m.ParseFromString(c.hello()));
  m.mutable_hello()->set_uid(0);
  const handshake_step challenge = s.challenge(m.SerializeAsString());
  REQUIRE_FALSE(challenge.refused);
  CHECK(names(c.answer(challenge.send).refused, "wrong cluster key"));
}

TEST_CASE("another version, another kind of server and another store are told apart") {
  const key_ptr key = cluster_key::random();
  const auto challenge = [&](const hello_info& h, std::uint32_t version) {
    client_handshake c(h, key, false);
    proto::FromClient m;
    REQUIRE(m.ParseFromString(c.hello()));
    m.mutable_hello()->set_version(version);
    server_handshake s(metadata_server(), key, false);
    const handshake_step step = s.challenge(m.SerializeAsString());
    CHECK(static_cast<bool>(c.answer(step.send).refused) == static_cast<bool>(step.refused));
    return step.refused;
  };
  CHECK(names(challenge(someone(), 2), "version 2"));
  hello_info h = someone();
  h.wanted = server_role::io;
  CHECK(names(challenge(h, 1), "not an I/O server"));
  h = someone();
  h.store_uuid = "another";
  CHECK(names(challenge(h, 1), "not store another"));
  h.store_uuid = metadata_server().store_uuid;
  CHECK_FALSE(challenge(h, 1));
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
  const std::string hello = good.hello();
  const std::string challenge = honest.challenge(hello).send;
  const std::string proof = good.answer(challenge).send;
  const auto broken = [&](std::string s) {
    const auto n = ooc::testing::between(random, 1, 4);
    for (std::uint64_t i = 0; i < n; ++i)
      s[ooc::testing::between(random, 0, s.size() - 1)] ^=
          static_cast<char>(ooc::testing::between(random, 1, 255));
    if (random() % 4 == 0) s.resize(ooc::testing::between(random, 0, s.size()));
    return s;
  };
  for (int i = 0; i < 10'000; ++i) {
    server_handshake s(metadata_server(), key, true);
    (void)s.challenge(broken(hello));  // may be a good hello of somebody else
    const std::string bad_challenge = broken(challenge), bad_proof = broken(proof);
    CHECK((good.answer(bad_challenge).refused || same_challenge(bad_challenge, challenge)));
    server_handshake t(metadata_server(), key, true);
    REQUIRE_FALSE(t.challenge(hello).refused);
    CHECK(t.welcome(bad_proof).refused);  // made for another connection
  }
  server_handshake s(metadata_server(), key, true);
  CHECK(s.challenge(std::string(max_handshake_body + 1, 'x')).refused);
  CHECK(s.challenge("").refused);
}
