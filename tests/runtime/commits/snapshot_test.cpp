// Snapshots of arrays with commits.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "oocarray/commit.hpp"
#include "storage/service/store_core.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

using vector = ooc_array<int, 1>;

constexpr std::size_t n = 30'000;
const std::vector<std::string> both = {"u", "v"};

struct two_arrays {
  test_store nodes{store_kind::local};
  runtime rt{memory(nodes.staging() + 512_KiB)};
  store s = nodes.handle();
  vector u{rt, s, "u", create, {n}, {.commits = true}};
  vector v{rt, s, "v", create, {n}, {.commits = true}};

  void step(int k) {
    for (int& x : u) x = k;
    for (int& x : v) x = k;
    commit({&u, &v}, {{"step", std::to_string(k)}});
  }
  /// The one value that all elements of an array have; -1 where they differ.
  int value_of(const std::string& path) {
    const vector a(rt, s, path, open_read_only);
    for (const int x : a)
      if (x != a[0]) return -1;
    return a[0];
  }
};

}  // namespace

TEST_CASE("a snapshot keeps the last commit of arrays, says what it is, and is there to be read") {
  two_arrays t;
  t.u.set_attribute("unit", "m");
  t.step(1);
  t.u[0] = 99;  // not committed
  t.u.writeback();
  const auto made = t.s.snapshot(both, "first", {.copy = true});
  REQUIRE(made.size() == 2);
  CHECK(made[0].path == "u@first");
  CHECK(made[0].attributes.at("unit") == "m");
  CHECK(made[0].attributes.at("ooc.snapshot_of") == "u, commit 1");
  CHECK(made[0].attributes.at("ooc.commit.step") == "1");
  CHECK_FALSE(made[0].last_commit);
  CHECK((made[0].mode & 0222) == 0);
  CHECK(made[0].extents == std::vector<std::size_t>{n});
  t.step(2);
  t.step(3);
  CHECK(t.value_of("u@first") == 1);
  CHECK(t.value_of("v@first") == 1);
  t.u.close();
  t.s.remove("u");  // it needs the array no longer
  CHECK(t.value_of("u@first") == 1);
}

TEST_CASE("a snapshot of several arrays is of one moment, whatever is committed meanwhile") {
  two_arrays t;
  t.step(1);
  std::atomic<bool> done{false};
  std::thread solver([&] {
    for (int k = 2; !done; ++k) t.step(k);
  });
  std::vector<std::string> names;
  try {
    for (int i = 0; i < 10; ++i) {
      names.push_back(std::to_string(i));
      t.s.snapshot(both, names.back(), {.copy = true});
    }
  } catch (const error& e) {
    CHECK(e.code() == errc::busy);  // commits of small arrays may be faster
    names.pop_back();
  }
  done = true;
  solver.join();
  for (const std::string& name : names) {
    const int u = t.value_of("u@" + name);
    CHECK(u > 0);
    CHECK(u == t.value_of("v@" + name));
    CHECK(t.s.entry("u@" + name).attributes.at("ooc.commit.step") == std::to_string(u));
  }
}

TEST_CASE("what cannot be a snapshot is refused by its name, and none is left") {
  two_arrays t;
  const auto refused = [&](const std::vector<std::string>& paths, const std::string& name, const char* why) {
    CHECK_THROWS_WITH(t.s.snapshot(paths, name, {.copy = true}), Contains(why));
    for (const store_entry& e : t.s.list()) CHECK(e.path.find('@') == std::string::npos);
  };
  refused(both, "x", "'u': nothing of it was committed yet");
  t.step(1);
  vector(t.rt, t.s, "plain", create, {n}).close();
  refused({"u", "plain"}, "x", "'plain': it was made without commits");
  refused({"u", "none"}, "x", "none");
  refused({"u", "u"}, "x", "given twice");
  refused({}, "x", "one array at least");
  refused({"u"}, "", "cannot name a snapshot");
  refused({"u"}, "a/b", "'a/b' cannot name a snapshot");
  t.s.snapshot(std::vector<std::string>{"v"}, "x", {.copy = true});
  CHECK_THROWS_WITH(t.s.snapshot(both, "x", {.copy = true}), Contains("'v@x' exists already"));
  CHECK_FALSE(t.s.exists("u@x"));
}

TEST_CASE("where a file system shares no space, a snapshot is refused with the way to copy") {
  two_arrays t;
  t.step(1);
  try {
    t.s.snapshot(both, "x");
    CHECK(t.value_of("u@x") == 1);  // it does
  } catch (const error& e) {
    CHECK(e.code() == std::errc::operation_not_supported);
    CHECK_THAT(e.what(), Contains("'u'") && Contains("space") && Contains("--copy"));
    CHECK_FALSE(t.s.exists("u@x"));
  }
}
