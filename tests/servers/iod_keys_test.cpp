// I/O servers and their clients with keys: whose capability works where, and what is changed on its way.
#include <catch2/catch.hpp>
#include <thread>

#include "iod/iod_folder.hpp"
#include "support/faulty_proxy.hpp"
#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/random_seed.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t keyed_size = 100'000;

struct keyed_server {
  explicit keyed_server(wire::encryption frames = wire::encryption::on)
      : iod(signer, folder.path(), {"127.0.0.1:0"}, options(key, frames)) {}

  static iod::iod_options options(const wire::key_ptr& key, wire::encryption frames) {
    iod::iod_options o;
    o.key = key;
    o.frames = frames;
    return o;
  }
  remote_node_options client(const wire::key_ptr& k, credentials who, const std::string& address = {}) {
    remote_node_options o = client_options(iod.addresses(), 3s);
    if (!address.empty()) o.addresses = {address};
    o.client.key = k;
    o.client.who = who;
    return o;
  }
  /// A file as user `uid` has opened it with this key.
  shape_ptr file(const wire::key_ptr& k, std::uint32_t uid, std::int64_t lifetime = 3600,
                 std::uint64_t bytes = keyed_size) {
    auto f = std::make_shared<file_shape>(*make_shape(1, {0, 1, 65536}, bytes, false));
    f->capability = signer.capability(*f, 31, lifetime, test_uuid, uid, k->holder().identity);
    return f;
  }

  const wire::key_ptr key = wire::access_key::random();
  const wire::key_ptr alice = key->for_user({"alice", 1000, {100}});
  const wire::key_ptr bob = key->for_user({"bob", 1001, {100}});
  test_signer signer;
  temporary_folder folder;
  running_iod iod;
};

failure reading(io_service& node, const shape_ptr& f) {
  bytes memory(keyed_size);
  return read(node, f, 0, request::contiguous(0, keyed_size), memory.data());
}

bool says(const failure& f, const std::string& what) {
  INFO(f.what);
  return f && f.what.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("a capability works on connections of the user and the key that it was made for only") {
  keyed_server s;
  const auto hers = open_remote_node(s.client(s.alice, {1000, 100}));
  const auto his = open_remote_node(s.client(s.bob, {1001, 100}));
  const auto other_key = open_remote_node(s.client(s.key->for_user({"alice", 1000, {100}}), {1000, 100}));
  const auto administrator = open_remote_node(s.client(s.key, {1000, 100}));
  const auto file = s.file(s.alice, 1000);
  REQUIRE_FALSE(create(*hers, file));
  CHECK_FALSE(reading(*hers, file));
  CHECK(says(reading(*his, file), "made for user 1000, and this is a connection of user 1001"));
  CHECK(says(reading(*other_key, file), "with another key"));
  CHECK(says(reading(*administrator, file), "with another key"));
  CHECK_FALSE(reading(*his, s.file(s.bob, 1001)));
  CHECK_FALSE(reading(*hers, file));
}

TEST_CASE("a user's key lets nobody act for another user at an I/O server") {
  keyed_server s;
  const auto node = open_remote_node(s.client(s.alice, {0, 0}));
  CHECK(says(reading(*node, s.file(s.alice, 0)), "is not one of user 0"));
}

TEST_CASE("who is connected by a key that is revoked is dropped and not let in again; others and new keys are served") {
  keyed_server s;
  const auto hers = open_remote_node(s.client(s.alice, {1000, 100}));
  const auto his = open_remote_node(s.client(s.bob, {1001, 100}));
  const auto file = s.file(s.alice, 1000), other = s.file(s.bob, 1001);
  REQUIRE_FALSE(create(*hers, file));
  REQUIRE_FALSE(reading(*hers, file));
  REQUIRE_FALSE(reading(*his, other));
  wire::revocations revoked;
  revoked.add(1000, wire::seconds_now());
  s.iod.server().set_revoked(revoked);
  CHECK(says(reading(*hers, file), "the key of user alice (uid 1000) has been revoked"));
  CHECK(says(reading(*open_remote_node(s.client(s.alice, {1000, 100})), file), "has been revoked"));
  CHECK_FALSE(reading(*his, other));
  const wire::key_ptr later = s.key->for_user({"alice", 1000, {100}}, wire::seconds_now() + 1);
  const auto again = open_remote_node(s.client(later, {1000, 100}));
  CHECK_FALSE(reading(*again, s.file(later, 1000)));
  // Her old capability does not come back with the new key.
  CHECK(says(reading(*again, file), "with another key"));
}

TEST_CASE("an I/O server that is started again knows which keys are revoked before it hears of anybody") {
  temporary_folder folder;
  wire::revocations revoked;
  revoked.add(1000, 5);
  {
    const iod::iod_folder first(folder.path() / "n", 0);
    CHECK(first.revoked().empty());
    first.remember(revoked);
  }
  CHECK(iod::iod_folder(folder.path() / "n", 0).revoked() == revoked);
}

TEST_CASE("without the metadata server who was admitted goes on, and nobody new with an expired capability") {
  keyed_server s;
  const auto before = open_remote_node(s.client(s.alice, {1000, 100}));
  const auto file = s.file(s.alice, 1000, 2);
  const std::int64_t expiry = wire::seconds_now() + 2;
  REQUIRE_FALSE(create(*before, file));
  REQUIRE(testing::soon([&] { return wire::seconds_now() > expiry; }));
  CHECK_FALSE(reading(*before, file));
  const auto after = open_remote_node(s.client(s.alice, {1000, 100}));
  const failure late = reading(*after, file);
  CHECK(late.code.value() == EKEYEXPIRED);
  CHECK(says(late, "before this connection was made"));
  CHECK_FALSE(reading(*after, s.file(s.alice, 1000)));
  CHECK_FALSE(reading(*before, file));
  s.iod.server().capabilities().set_metadata_reachable(true);
  CHECK(reading(*before, file).code.value() == EKEYEXPIRED);
}

TEST_CASE("bytes that somebody changes on their way are sent again, and none of them is believed") {
  keyed_server s;
  const std::uint64_t seed = random_seed("changed on the way");
  faulty_proxy proxy(s.iod.addresses()[0], {.flip = 0.02}, seed);
  auto o = s.client(s.alice, {1000, 100}, proxy.address());
  o.deadline = 20s;
  const auto node = open_remote_node(o);
  constexpr std::uint64_t large = 3 << 20;
  const auto file = s.file(s.alice, 1000, 3600, large);
  REQUIRE_FALSE(create(*node, file));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 15; ++i) {
    bytes data(large), back(large);
    for (std::size_t k = 0; k < data.size(); k += 512) data[k] = static_cast<std::byte>(random());
    failure f = write(*node, file, 0, request::contiguous(0, large), data.data());
    INFO(f.what);
    CHECK_FALSE(f);
    f = read(*node, file, 0, request::contiguous(0, large), back.data());
    INFO(f.what);
    CHECK_FALSE(f);
    CHECK((back == data));
  }
  CHECK(proxy.faults() > 0);
}

TEST_CASE("keys are proven, and frames may go on unencrypted where both sides say so") {
  keyed_server s(wire::encryption::off);
  auto o = s.client(s.alice, {1000, 100});
  o.client.frames = wire::encryption::off;
  const auto node = open_remote_node(o);
  const auto file = s.file(s.alice, 1000);
  REQUIRE_FALSE(create(*node, file));
  const bytes data = pattern(keyed_size);
  REQUIRE_FALSE(write(*node, file, 0, request::contiguous(0, keyed_size), data.data()));
  bytes back(keyed_size);
  REQUIRE_FALSE(read(*node, file, 0, request::contiguous(0, keyed_size), back.data()));
  CHECK(back == data);
  CHECK(
      says(reading(*open_remote_node(s.client(s.alice, {1000, 100})), file), "put ?encrypt=off into the store's URL"));
  o.client.key = wire::access_key::random();
  CHECK(says(reading(*open_remote_node(o), file), "wrong cluster key"));
}

TEST_CASE("a server that encrypts serves nobody who wants it not to") {
  keyed_server s;
  auto o = s.client(s.alice, {1000, 100});
  o.client.frames = wire::encryption::off;
  CHECK(says(reading(*open_remote_node(o), s.file(s.alice, 1000)), "leave ?encrypt=off out"));
}
