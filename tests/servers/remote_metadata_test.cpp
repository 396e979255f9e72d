#include "storage/client/remote_metadata.hpp"

#include <catch2/catch.hpp>

#include "support/cluster_fixture.hpp"
#include "support/metadata_suite.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

struct served_name_space final : name_space {
  served_name_space() {
    // The root belongs to whoever runs the server; the tests want it to be theirs.
    servers.client({0, 0})->set_owner("", me.uid, me.gid);
    open();
  }
  void open() override {
    service.reset();
    service = servers.client(me);
  }
  std::shared_ptr<metadata_service> as(credentials who) override { return servers.client(who); }

  cluster servers;
};

}  // namespace

std::unique_ptr<name_space> ooc::testing::make_name_space() { return std::make_unique<served_name_space>(); }

TEST_CASE("one client makes and looks at thousands of files a second", "[.][speed]") {
  served_name_space m;
  const auto rate = [&](const char* what, const std::function<void(int)>& f) {
    constexpr int n = 10000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < n; ++i) f(i);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    WARN(n / took.count() << " " << what << " a second");
  };
  const auto name = [](int i) { return "f" + std::to_string(i); };
  new_file empty = plain(0);
  empty.finished = true;
  rate("creates of empty files", [&](int i) { m->create(name(i), empty); });
  rate("lookups", [&](int i) { m->lookup(name(i)); });
  rate("opens", [&](int i) { m->open(name(i), true); });
  rate("removes", [&](int i) { m->remove(name(i)); });
  rate("creates and commits", [&](int i) { m.make(name(i)); });
}
