#include "daemon/registration.hpp"

#include <atomic>
#include <catch2/catch.hpp>

#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "support/cluster_fixture.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::testing;
using namespace std::chrono_literals;

namespace {

/// An I/O server as far as the metadata server sees one.
struct announced {
  announced(const cluster& servers, std::uint32_t node, const std::string& folder,
            std::vector<std::string> addresses = {"127.0.0.1:1"}, wire::key_ptr key = nullptr)
      : r(options(servers, node, folder, std::move(addresses), std::move(key)),
          {[this](const servers::registered_store& s) {
             const std::lock_guard lock(mutex);
             store = s;
             ++times;
           },
           [this](bool yes) { reachable = yes; },
           [this](const std::string& why) {
             const std::lock_guard lock(mutex);
             refused = why;
           },
           [] {
             return servers::disk_space{1000, 400};
           }}) {
    r.start();
  }
  static servers::registration_options options(const cluster& servers, std::uint32_t node, const std::string& folder,
                                               std::vector<std::string> addresses, wire::key_ptr key) {
    servers::registration_options o;
    o.metadata_server = servers.client_options().address;
    o.key = key ? std::move(key) : servers.key();
    o.node = node;
    o.node_uuid = folder;
    o.addresses = std::move(addresses);
    o.incarnation = 42;
    o.name = "test";
    return o;
  }
  std::string why() {
    const std::lock_guard lock(mutex);
    return refused;
  }

  std::mutex mutex;
  servers::registered_store store;
  std::string refused;
  std::atomic<int> times{0};
  std::atomic<bool> reachable{false};
  servers::registration r;  // last: its thread ends first
};

}  // namespace

TEST_CASE("clients have numbers of their own") {
  cluster servers({.nodes = 1, .keyed = true});
  const auto one = servers.client(), other = servers.client();
  CHECK(one->cluster().asker != other->cluster().asker);
  CHECK(one->cluster().asker == one->cluster().asker);
}

TEST_CASE("an I/O server registers, and clients learn where it is") {
  cluster servers({.nodes = 2, .keyed = true});
  const auto client = servers.client();
  announced one(servers, 1, "folder-1", {"127.0.0.1:5001", "[::1]:5002"});
  REQUIRE(soon([&] { return one.reachable.load(); }));
  const auto info = client->cluster();
  REQUIRE(info.nodes.size() == 2);
  CHECK_FALSE(info.nodes[0].up);
  CHECK(info.nodes[1].up);
  CHECK(info.nodes[1].addresses == std::vector<std::string>{"127.0.0.1:5001", "[::1]:5002"});
  CHECK(info.nodes[1].uuid == "folder-1");
  CHECK(info.nodes[1].incarnation == 42);
  CHECK(info.nodes[1].disk_bytes == 1000);
  CHECK(info.nodes[1].disk_free == 400);
  CHECK(one.store.uuid == info.store_uuid);
  CHECK(one.store.nodes == 2);
  const wire::capability_signer signer(servers.folder() / "meta/capability.key");
  CHECK(one.store.capability_key == signer.public_key());
  one.r.stop();
  CHECK(soon([&] { return !client->cluster().nodes[1].up; }));
}

TEST_CASE("the holder of a user's key registers no I/O server") {
  cluster servers({.nodes = 1, .keyed = true});
  announced one(servers, 0, "folder-0", {"127.0.0.1:1"},
                servers.key()->for_user({"alice", ::geteuid(), {::getegid()}}));
  REQUIRE(soon([&] { return !one.why().empty(); }));
  CHECK_THAT(one.why(), Catch::Contains("takes the cluster key"));
  CHECK_FALSE(one.reachable);
  CHECK(servers.client()->cluster().nodes[0].addresses.empty());
}

TEST_CASE("a registered server comes back by itself after the metadata server was killed") {
  cluster servers;
  announced one(servers, 0, "folder-0");
  REQUIRE(soon([&] { return one.reachable.load(); }));
  servers.metad().kill();
  CHECK(soon([&] { return !one.reachable.load(); }));
  servers.metad().start();
  CHECK(servers.client()->cluster().nodes[0].uuid == "folder-0");
  CHECK(soon([&] { return one.reachable.load(); }));
  CHECK(one.times == 2);
  CHECK(servers.client()->cluster().nodes[0].up);
}

TEST_CASE("another folder in place of a known node is refused until the node is forgotten") {
  cluster servers({.nodes = 2});
  {
    announced one(servers, 0, "folder-0");
    REQUIRE(soon([&] { return one.reachable.load(); }));
  }
  servers.metad().restart();
  announced wrong(servers, 0, "folder-9");
  REQUIRE(soon([&] { return !wrong.why().empty(); }));
  CHECK(wrong.why().find("--forget-node 0") != std::string::npos);
  CHECK(servers.metad().logged("registration refused"));
  announced twice(servers, 1, "folder-0");
  REQUIRE(soon([&] { return !twice.why().empty(); }));
  CHECK(twice.why().find("that of node 0") != std::string::npos);
  announced beyond(servers, 2, "folder-2");
  REQUIRE(soon([&] { return !beyond.why().empty(); }));
  CHECK(beyond.why().find("nodes 0 to 1") != std::string::npos);
  CHECK_FALSE(wrong.reachable);
}

TEST_CASE("a store can be looked at without its I/O servers; who needs one of them is told which") {
  cluster servers({.nodes = 3});
  announced one(servers, 1, "folder-1");
  REQUIRE(soon([&] { return one.reachable.load(); }));
  store_options o;
  o.deadline = 500ms;
  const store s = store::open(servers.url(), o);
  CHECK(s.nodes() == 3);
  auto& names = s.core()->metadata();
  names.mkdir("d", 0755, false);
  CHECK(names.list("").size() == 1);
  storage::new_file f;
  f.size = 100;
  f.striping = {2, 1, 4096};
  try {
    s.core()->create("d/a", f);
    FAIL("made");
  } catch (const io_error& e) {
    INFO(e.what());
    CHECK(e.code() == std::errc::timed_out);
    CHECK_THAT(e.what(), Catch::StartsWith("node 2: ") && Catch::Contains("its I/O server is not registered"));
  }
  CHECK(names.list("d").empty());
}
