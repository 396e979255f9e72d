// Tests of what a metadata server knows of its clients, their leases and the I/O servers.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <type_traits>

#include "metad/client_table.hpp"
#include "metad/lease_table.hpp"
#include "metad/metadata_folder.hpp"
#include "metad/node_table.hpp"
#include "metad/revocation_watch.hpp"
#include "oocarray/error.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/served_metadata.hpp"
#include "support/name_space.hpp"
#include "support/small_space.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::metad;
using namespace std::chrono_literals;
using clients = std::vector<client_key>;

namespace {

constexpr client_key one{1}, other{2}, third{3};

/// A table in the database of a store with three nodes.
template <class Table>
struct stored {
  stored() { open(); }
  /// As a server that was killed and is started again.
  void open() {
    table.reset();
    connection = storage::open_metadata_database(store.database(), store.store_uuid());
    if constexpr (std::is_same_v<Table, node_table>)
      table = std::make_unique<Table>(*connection, store.nodes());
    else
      table = std::make_unique<Table>(*connection);
  }
  Table* operator->() { return table.get(); }

  testing::temporary_folder folder;
  metadata_folder store{folder / "meta", 3, {0, 0}};
  std::unique_ptr<storage::sqlite::connection> connection;
  std::unique_ptr<Table> table;
};

node_registration registration(std::uint32_t node, const std::string& uuid,
                               std::vector<std::string> addresses = {"host:1"}) {
  node_registration r;
  r.node = node;
  r.uuid = uuid;
  r.addresses = std::move(addresses);
  r.incarnation = 1;
  return r;
}

}  // namespace

TEST_CASE("leases of one file exclude each other by their kinds, those of two files never") {
  stored<lease_table> leases;
  CHECK(leases->take(one, 1, 10, lease_kind::shared_writer));
  CHECK(leases->take(other, 1, 10, lease_kind::shared_writer));
  CHECK(leases->take(other, 2, 10, lease_kind::size));  // of its own kind only
  CHECK_FALSE(leases->take(third, 1, 10, lease_kind::size));
  CHECK_FALSE(leases->take(third, 1, 10, lease_kind::exclusive_writer));
  CHECK(leases->take(third, 1, 11, lease_kind::exclusive_writer));
  CHECK_FALSE(leases->take(one, 2, 11, lease_kind::shared_writer));
  CHECK_FALSE(leases->take(third, 2, 11, lease_kind::exclusive_writer));  // against itself too
  CHECK(leases->size() == 4);
  CHECK(leases->in_the_way(10, lease_kind::exclusive_writer) == clients{one, other});
  CHECK(leases->in_the_way(10, lease_kind::shared_writer).empty());
  CHECK(leases->in_the_way(10, lease_kind::size) == clients{other});
}

TEST_CASE("a client that has the most leases that one may have is told so, and others get theirs") {
  const stored<lease_table> with;
  lease_table leases(*with.connection, 2);
  CHECK(leases.take(one, 1, 10, lease_kind::shared_writer));
  CHECK(leases.take(one, 2, 11, lease_kind::shared_writer));
  CHECK_THROWS_WITH(leases.take(one, 3, 12, lease_kind::shared_writer), Catch::Contains("holds 2 claims"));
  CHECK(leases.take(one, 2, 11, lease_kind::shared_writer));  // it has that
  CHECK(leases.take(other, 1, 12, lease_kind::shared_writer));
  leases.drop(one, 1);
  CHECK(leases.take(one, 3, 12, lease_kind::shared_writer));
}

TEST_CASE("a lease that is taken again is the same one, and its number means no other") {
  stored<lease_table> leases;
  for (int i = 0; i < 2; ++i) CHECK(leases->take(one, 1, 10, lease_kind::exclusive_writer));
  CHECK(leases->size() == 1);
  CHECK_FALSE(leases->take(one, 1, 11, lease_kind::exclusive_writer));
  CHECK_FALSE(leases->take(one, 1, 10, lease_kind::size));
}

TEST_CASE("a lease that is dropped lets others in, and what nobody has is dropped without harm") {
  stored<lease_table> leases;
  REQUIRE(leases->take(one, 1, 10, lease_kind::shared_writer));
  REQUIRE(leases->take(one, 2, 10, lease_kind::shared_writer));
  leases->drop(one, 1);
  leases->drop(one, 1);
  leases->drop(other, 2);
  CHECK(leases->holds(one, 10, lease_kind::shared_writer));
  CHECK_FALSE(leases->take(other, 1, 10, lease_kind::exclusive_writer));
  leases->drop_all(one);
  CHECK_FALSE(leases->holds_any(one));
  CHECK(leases->take(other, 1, 10, lease_kind::exclusive_writer));
  CHECK(leases->clients() == clients{other});
}

TEST_CASE("leases outlive the server that gave them, and dropped ones do not come back") {
  stored<lease_table> leases;
  REQUIRE(leases->take(one, 1, 10, lease_kind::exclusive_writer));
  REQUIRE(leases->take(other, 7, 11, lease_kind::size));
  leases->drop(one, 1);
  leases.open();
  CHECK(leases->clients() == clients{other});
  CHECK(leases->holds(other, 11, lease_kind::size));
  CHECK(leases->take(other, 7, 11, lease_kind::size));
  CHECK_FALSE(leases->take(one, 1, 11, lease_kind::size));
}

TEST_CASE("leases that are taken on a full disk keep nobody from removing files") {
  const testing::temporary_folder folder;
  const auto fill = [&](bool mounted) {
    if (!mounted) return 0;
    constexpr int files = 300;
    const auto file = folder / "metadata.sqlite";
    storage::make_metadata_database(file, "uuid-1", {0, 0});
    storage::served_metadata m(file, "uuid-1", [](const client_key&) { return true; });
    lease_table leases(m.connection(), 1 << 20);
    for (int i = 0; i < files; ++i) m.commit(m.create("f" + std::to_string(i), testing::plain()).id);
    testing::fill_up(folder.path());
    std::error_code refused;
    try {
      for (std::uint64_t n = 1; n <= 1 << 20; ++n) leases.take(one, n, n, lease_kind::shared_writer);
    } catch (const io_error& e) {
      refused = e.code();
    }
    EXPECT(refused == std::errc::no_space_on_device);
    for (int i = 0; i < files; ++i) m.forget(m.remove("f" + std::to_string(i)).id);
    EXPECT(m.list("").empty());
    leases.drop_all(one);
    EXPECT(leases.size() == 0);
    return 0;
  };
  CHECK(testing::in_small_space(folder.path(), [&](bool mounted) {
          try {
            return fill(mounted);
          } catch (const std::exception& e) {
            std::cerr << e.what() << std::endl;
            return 255;
          }
        }) == 0);
}

TEST_CASE("a node is up while the connection lasts on which its server came") {
  stored<node_table> nodes;
  CHECK_FALSE(nodes->states().at(1).up);
  CHECK(nodes->enlist(registration(1, "folder"), 5));
  CHECK(nodes->states().at(1).up);
  CHECK_FALSE(nodes->states().at(0).up);
  nodes->lost(4);  // another's
  CHECK(nodes->states().at(1).up);
  nodes->lost(5);
  CHECK_FALSE(nodes->states().at(1).up);
  CHECK(nodes->states().at(1).known.addresses == std::vector<std::string>{"host:1"});
}

TEST_CASE("a sign of life is no news; another place, connection or incarnation is") {
  stored<node_table> nodes;
  node_registration r = registration(0, "folder");
  CHECK(nodes->enlist(r, 5));
  CHECK_FALSE(nodes->enlist(r, 5));
  CHECK(nodes->enlist(r, 6));
  r.incarnation = 2;
  CHECK(nodes->enlist(r, 6));
  r.addresses.push_back("[::1]:2");
  CHECK(nodes->enlist(r, 6));
  CHECK_FALSE(nodes->enlist(r, 6));
}

TEST_CASE("a restarted metadata server knows whose folder is which node, and that none is up") {
  stored<node_table> nodes;
  nodes->enlist(registration(2, "folder-2", {"a:1", "b:2"}), 5);
  nodes.open();
  const auto known = nodes->states().at(2);
  CHECK_FALSE(known.up);
  CHECK(known.known.uuid == "folder-2");
  CHECK(known.known.addresses == std::vector<std::string>{"a:1", "b:2"});
  CHECK_THROWS_WITH(nodes->enlist(registration(2, "another"), 6),
                    Catch::Contains("folder-2") && Catch::Contains("--forget-node 2"));
  CHECK_THROWS_WITH(nodes->enlist(registration(0, "folder-2"), 6), Catch::Contains("of node 2"));
  nodes->forget(2);
  CHECK(nodes->enlist(registration(0, "folder-2"), 6));
  nodes.open();
  CHECK(nodes->states().at(2).known.uuid.empty());
}

TEST_CASE("a node whose place another folder wants says why that may not be, until its own is back or forgotten") {
  stored<node_table> nodes;
  nodes->enlist(registration(1, "own"), 5);
  CHECK_THROWS_AS(nodes->enlist(registration(1, "new"), 6), usage_error);
  CHECK(nodes->states().at(1).refused.empty());  // its own is up
  nodes->lost(5);
  CHECK_THAT(nodes->states().at(1).refused,
             Catch::Contains("own") && Catch::Contains("new") && Catch::Contains("ooc up --forget-node 1"));
  CHECK(nodes->states().at(0).refused.empty());
  nodes->enlist(registration(1, "own"), 7);
  nodes->lost(7);
  CHECK(nodes->states().at(1).refused.empty());
  CHECK_THROWS_AS(nodes->enlist(registration(1, "new"), 6), usage_error);
  nodes->forget(1);
  CHECK(nodes->states().at(1).refused.empty());
}

TEST_CASE("a node whose folder is missing is said to be, until it registers, and a new one is not missing") {
  stored<node_table> nodes;
  nodes->enlist(registration(1, "own"), 5);
  nodes.open();
  nodes->set_missing(1);
  nodes->set_missing(2);
  CHECK_THAT(nodes->states().at(1).refused, Catch::Contains("ooc up --forget-node 1"));
  CHECK(nodes->states().at(2).refused.empty());
  CHECK_THROWS_AS(nodes->set_missing(3), usage_error);
  nodes->enlist(registration(1, "own"), 6);
  nodes->lost(6);
  CHECK(nodes->states().at(1).refused.empty());
}

TEST_CASE("registrations that cannot be right are refused and change nothing") {
  stored<node_table> nodes;
  CHECK_THROWS_WITH(nodes->enlist(registration(3, "f"), 1), Catch::Contains("nodes 0 to 2"));
  CHECK_THROWS_AS(nodes->enlist(registration(0, ""), 1), usage_error);
  CHECK_THROWS_AS(nodes->enlist(registration(0, std::string(65, 'f')), 1), usage_error);
  CHECK_THROWS_AS(nodes->enlist(registration(0, "f", {}), 1), usage_error);
  CHECK_THROWS_AS(nodes->enlist(registration(0, "f", std::vector<std::string>(65, "a:1")), 1), usage_error);
  for (const char* address : {"", "a b:1", "a:1\n"})
    CHECK_THROWS_WITH(nodes->enlist(registration(0, "f", {address}), 1), Catch::Contains("is not an address"));
  CHECK_THROWS_AS(nodes->forget(3), usage_error);
  CHECK(nodes->states().at(0).known.uuid.empty());
}

TEST_CASE("a client lives while one of its connections does, and through the grace period") {
  client_table table(1h);
  CHECK_FALSE(table.alive(one));
  table.connected(one, "program 1");
  table.connected(one, "program 1");
  table.disconnected(one);
  CHECK(table.described(one).ends == 0ms);  // one connection is left
  table.disconnected(one);
  CHECK(table.alive(one));
  CHECK(table.described(one).name == "program 1");
  CHECK(table.described(one).ends > 59min);
  CHECK(table.take_expired().empty());
  table.connected(one, "program 1");
  CHECK(table.described(one).ends == 0ms);
}

TEST_CASE("a client whose grace period has ended is taken out once, one that is connected never") {
  client_table table(0s);
  table.connected(one, "gone");
  table.connected(other, "there");
  table.expect(third);  // of an earlier incarnation of the server
  table.disconnected(one);
  CHECK(table.described(one).ends >= 1ms);  // 0 would say that it is connected
  CHECK(table.take_expired() == clients{one, third});
  CHECK(table.take_expired().empty());
  CHECK(table.size() == 1);
  CHECK(table.alive(other));
}

TEST_CASE("a client that said goodbye is not alive, and forgotten with its last connection") {
  client_table table(1h);
  table.connected(one, "program");
  table.goodbye(one);
  CHECK_FALSE(table.alive(one));
  CHECK(table.size() == 1);
  table.disconnected(one);
  CHECK(table.size() == 0);
  table.connected(one, "program");  // it comes again
  CHECK(table.alive(one));
}

TEST_CASE(
    "a list of revoked keys that changes is read anew; one that is damaged, old or gone makes no key good, at the next "
    "start neither") {
  testing::temporary_folder folder;
  const auto file = folder / "list";
  wire::revocations list;
  list.add(1000, 5);
  list.write(file);
  const auto memory = folder / "memory";
  revocation_watch watch(file, memory);
  CHECK(*watch.current() == list);
  list.add(1001, 7);
  list.write(file);
  watch.look();
  CHECK(*watch.current() == list);
  std::ofstream(file, std::ios::trunc) << "rubbish";
  watch.look();
  CHECK(*watch.current() == list);
  std::filesystem::remove(file);
  watch.look();
  watch.look();
  CHECK(*watch.current() == list);
  CHECK(*revocation_watch(file, memory).current() == list);
  wire::revocations old;
  old.add(1002, 9);
  old.write(file);
  watch.look();
  list.add(1002, 9);
  CHECK(*watch.current() == list);
  CHECK(*revocation_watch(file, memory).current() == list);
}
