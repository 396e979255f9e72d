// Gateways of a store in RADOS: I/O servers for programs without a key of Ceph.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "oocarray/store.hpp"
#include "storage/rados/file_fences.hpp"
#include "storage/rados/gateway_node.hpp"
#include "storage/rados/rados_url.hpp"
#include "support/node_fixture.hpp"
#include "support/run_command.hpp"
#include "support/server_process.hpp"
#include "support/soon.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace std::chrono_literals;
using testing::server_process;

namespace {

std::string name_of(const std::string& name) { return "ooc/" + name + "-" + std::to_string(::getpid()); }

/// A store in RADOS with a metadata server and gateways.
struct gateways {
  explicit gateways(const std::string& name, unsigned count) : url("rados:" + name_of(name)) {
    metad = start_metad({"--gateways", std::to_string(count)});
    for (unsigned i = 0; i < count; ++i) all.push_back(start_gateway(i));
  }
  std::unique_ptr<server_process> start_metad(std::vector<std::string> more) {
    std::vector<std::string> arguments{"--folder", (folder / "metad").string(), "--database", url};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<server_process>(std::getenv("OOC_METAD"), arguments, folder / "metad.log");
  }
  std::unique_ptr<server_process> start_gateway(unsigned number) {
    return std::make_unique<server_process>(
        std::getenv("OOC_IOD"),
        std::vector<std::string>{"--backend", url, "--node", std::to_string(number), "--metad", metad->address()},
        folder / ("iod" + std::to_string(started++) + ".log"));
  }
  std::string served() const { return "ooc://" + metad->address(); }

  testing::temporary_folder folder;
  std::string url;
  int started = 0;
  std::unique_ptr<server_process> metad;
  std::vector<std::unique_ptr<server_process>> all;
};

/// As its gateway was told to end.
bool has_ended(server_process& gateway) {
  return testing::soon([&] { return gateway.logged("another process has become its gateway"); }) && gateway.wait() == 1;
}

void fill(ooc_array<int, 1>& a, int first) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = first + static_cast<int>(i);
}

bool holds(const ooc_array<int, 1>& a, int first) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != first + static_cast<int>(i)) return false;
  return true;
}

/// A gateway in this process, with a file.
struct gateway_here {
  explicit gateway_here(const std::string& name) : pool(rados_pool::connect(parse_rados_url(name_of(name)).where)) {
    rados_possession::take(pool, {"", true, {}}, [](const rados_possession&) {});
    set_gateways(*pool, 1);
    start();
    shape = testing::make_shape(7, {0, 1, 65536}, 65536);
    REQUIRE_FALSE(testing::create(*node, shape));
  }
  void start() {
    node = make_gateway_node(pool, 0, [](const std::string&) {});
  }
  shape_ptr as(std::uint64_t generation, write_claim claim, std::uint64_t size = 65536) const {
    auto s = std::make_shared<file_shape>(*shape);
    s->generation = generation;
    s->claim = claim;
    s->size = size;
    return s;
  }
  shape_ptr open(std::uint64_t n, bool alone) {
    const auto s = as(n, {n, alone});
    REQUIRE_FALSE(testing::advance(*node, s));
    return s;
  }
  failure write(const shape_ptr& s) {
    const testing::bytes some(4096);
    return testing::write(*node, s, 0, request::contiguous(0, 4096), some.data());
  }

  std::shared_ptr<rados_pool> pool;
  std::shared_ptr<gateway_node> node;
  shape_ptr shape;
};

const std::error_code stale(ESTALE, std::generic_category());

}  // namespace

TEST_CASE("a store with gateways is reached through them, and by keys of Ceph only when it has none again") {
  gateways store("through", 2);
  {
    runtime rt({.memory = 1_MiB});
    auto s = store::open(store.served());
    CHECK(s.nodes() == 1);
    for (int i = 0; i < 4; ++i) {  // by either of the two
      ooc_array<int, 1> a(rt, s, "a" + std::to_string(i), create, {500'000});
      fill(a, i);
    }
    for (int i = 0; i < 4; ++i) CHECK(holds(ooc_array<int, 1>(rt, s, "a" + std::to_string(i), open_read_only), i));
    s.remove("a0");
  }
  CHECK_THROWS_WITH(store::open(store.url), Catch::Contains("is reached through gateways: open " + store.served()));
  const auto ooc = [&](const std::string& arguments) {
    return testing::run_command(std::string(std::getenv("OOC_COMMAND")) + " " + arguments, store.folder / "ooc");
  };
  const auto pinged = ooc("ping '" + store.url + "'");
  CHECK(pinged.status == 0);
  CHECK_THAT(pinged.out, Catch::Contains("metad  " + store.metad->address()) && Catch::Contains("iod 1  "));
  CHECK_THAT(ooc("stat " + store.served() + "/a1").out, Catch::Contains(" and 1 more: 00000000000000"));
  CHECK_THAT(ooc("restripe --nn 1 " + store.served() + "/a1").err, Catch::Contains("RADOS itself decides"));
  CHECK(store.metad->stop() == 0);
  CHECK_THROWS_WITH(store::open(store.url), Catch::Contains("is reached through gateways"));

  store.metad = store.start_metad({"--gateways", "0"});
  for (auto& gateway : store.all) CHECK(has_ended(*gateway));
  runtime rt({.memory = 1_MiB});
  auto s = store::open(store.url);
  CHECK(holds(ooc_array<int, 1>(rt, s, "a3", open_read_only), 3));
  CHECK_FALSE(s.exists("a0"));
}

TEST_CASE("who has a store open that its server has forgotten is told of the gateways that it has by now") {
  gateways store("late-gateways", 0);
  auto s = store::open(store.url);
  s.mkdir("x");
  const auto pool = rados_pool::connect(parse_rados_url(store.url.substr(store.url.find(':') + 1)).where);
  std::vector<std::string> clients;
  pool->for_each_object([&](const std::string& object) {
    if (object.starts_with("oocarray-client.")) clients.push_back(object);
    return true;
  });
  CHECK(clients.size() == 1);
  for (const std::string& object : clients) pool->remove(object);
  CHECK(store.metad->stop() == 0);
  store.metad = store.start_metad({"--gateways", "1"});
  CHECK_THROWS_WITH(s.mkdir("y"), Catch::Contains("is reached through gateways: open " + store.served()));
}

TEST_CASE("a gateway that is started anew takes the place of the one before, and programs go on") {
  gateways store("anew", 1);
  runtime rt({.memory = 1_MiB});
  auto s = store::open(store.served());
  ooc_array<int, 1> a(rt, s, "a", create, {1'000'000});
  fill(a, 1);
  auto next = store.start_gateway(0);
  CHECK(has_ended(*store.all[0]));
  fill(a, 2);
  a.writeback(durable);
  a.invalidate();
  CHECK(holds(a, 2));
  next->kill();
  auto last = store.start_gateway(0);
  fill(a, 3);
  a.writeback(durable);
  a.invalidate();
  CHECK(holds(a, 3));
}

TEST_CASE("a program that stores all the time while its gateway is replaced waits, and goes on") {
  gateways store("replaced", 1);
  runtime rt({.memory = 1_MiB});
  auto s = store::open(store.served());
  ooc_array<int, 1> a(rt, s, "a", create, {10'000});
  std::unique_ptr<server_process> next;
  std::thread replacing([&] { next = store.start_gateway(0); });
  std::string why;
  int last = 0;
  const auto stores = [&] {
    try {
      fill(a, ++last);
      a.writeback(durable);
    } catch (const error& e) {
      why = e.what();
    }
    return why.empty();
  };
  while (stores() && !store.all[0]->logged("another process has become its gateway")) {
  }
  CHECK(why.empty());
  replacing.join();
  CHECK(has_ended(*store.all[0]));
  CHECK(stores());
  a.invalidate();
  CHECK(holds(a, last));
}

TEST_CASE("a server with a folder is no gateway, and a gateway is for the numbers that there are") {
  gateways store("numbers", 1);
  CHECK_THROWS(store.start_gateway(1));
  testing::temporary_folder folder;
  const server_process other(std::getenv("OOC_IOD"),
                             {"--folder", (folder / "n").string(), "--node", "0", "--metad", store.metad->address()},
                             folder / "log");
  CHECK(testing::soon([&] { return other.logged("is a gateway to RADOS"); }));
}

TEST_CASE("at a gateway a claim ends those before it, and stays ended when the gateway is started anew") {
  gateway_here g("claims");
  const auto alone = g.open(1, true);
  CHECK_FALSE(g.write(alone));
  const auto together = g.open(2, false);
  CHECK(g.write(alone).code == stale);
  CHECK_FALSE(g.write(together));
  const auto beside = g.open(3, false);
  CHECK_FALSE(g.write(together));
  const auto last = g.open(4, true);
  CHECK(g.write(together).code == stale);
  CHECK(g.write(beside).code == stale);
  CHECK_FALSE(g.write(last));
  CHECK_FALSE(g.write(g.as(4, {})));  // without a claim
  g.start();
  CHECK(g.write(beside).code == stale);
  CHECK_FALSE(g.write(last));
  const failure f = g.write(alone);
  CHECK_THAT(f.what, Catch::Contains("'plate/a'") && Catch::Contains("--grace"));
}

TEST_CASE("at a gateway who does not know of the last opening makes a file no shorter") {
  gateway_here g("late");
  const auto first = g.open(1, false);
  g.open(2, false);
  CHECK(testing::resize(*g.node, g.as(1, {}, 4096), 0, 65536).code == errc::conflict);
  CHECK_FALSE(testing::resize(*g.node, g.as(1, {}, 131072), 0, 65536));
  CHECK_FALSE(testing::resize(*g.node, g.as(2, {}, 4096), 0, 131072));
}

TEST_CASE("at a gateway who has looked a file up writes nothing to it when it is about to be moved") {
  gateway_here g("moves");
  const auto before = g.as(1, {});
  CHECK_FALSE(g.write(before));
  auto moving = std::make_shared<file_shape>(*g.as(2, {}));
  moving->cut = true;
  REQUIRE_FALSE(testing::advance(*g.node, moving));
  CHECK(g.write(before).code == errc::cut_off);
  CHECK(g.write(g.as(2, {})).code == errc::cut_off);
  CHECK_FALSE(g.write(g.as(3, {})));
}

TEST_CASE("a change of a file waits for the writes before it, and those after it wait for the change") {
  gateway_here g("turns");
  const auto fences = std::make_shared<file_fences>(g.pool);
  std::string order;
  mutex of_order;
  const auto enter = [&](char name, file_fences::turn what) {
    fences->enter(g.shape, what, [&, name](const failure& f, const file_fence&) {
      const lock_guard lock(of_order);
      order += f ? '!' : name;
    });
  };
  const auto entered = [&] {
    const lock_guard lock(of_order);
    return order;
  };
  using turn = file_fences::turn;
  enter('a', turn::write);
  enter('b', turn::write);
  enter('C', turn::change);
  enter('d', turn::write);
  CHECK(testing::soon([&] { return entered() == "ab"; }));
  fences->leave(g.shape->id, turn::write);
  CHECK(entered() == "ab");
  fences->leave(g.shape->id, turn::write);
  CHECK(entered() == "abC");
  fences->leave(g.shape->id, turn::change);
  CHECK(entered() == "abCd");
  fences->leave(g.shape->id, turn::write);
}
