// Tests of commits of arrays: what they keep, what readers see, what is refused.
#include "oocarray/commit.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "oocarray/any_array.hpp"
#include "oocarray/file.hpp"
#include "storage/namespace/local_metadata.hpp"
#include "storage/service/store_core.hpp"
#include "support/memory_store.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

using array = ooc_array<int, 2>;

void fill(array& a, int value) {
  for (int& v : a) v = value;
}

/// The one value that all elements have; -1 where they differ.
int value_of_all(const array& a) {
  const int first = a(0, 0);
  for (const int v : a)
    if (v != first) return -1;
  return first;
}

struct committed_arrays {
  test_store nodes{store_kind::local};
  runtime rt{memory(nodes.staging() + 256_KiB)};
  store s = nodes.handle();
  array a{rt, s, "a", create, {100, 70}, {.max_extents = {200}, .commits = true}};
  array b{rt, s, "b", create, {50, 300}, {.fill = 7, .commits = true}};

  void reopen() {
    a.close();
    b.close();
    a = array(rt, s, "a", ooc::open);
    b = array(rt, s, "b", ooc::open);
  }
};

}  // namespace

TEST_CASE("what was committed is there after a close, and what was not is gone") {
  committed_arrays t;
  CHECK(t.a.last_commit()->number == 0);
  fill(t.a, 1);
  fill(t.b, 1);
  t.reopen();
  CHECK(value_of_all(t.a) == 0);  // as they were made
  CHECK(value_of_all(t.b) == 7);
  fill(t.a, 2);
  fill(t.b, 2);
  commit({&t.a, &t.b}, {{"step", "2"}});
  CHECK(t.a.last_commit()->number == 1);
  CHECK(t.a.last_commit()->time > std::chrono::system_clock::now() - std::chrono::hours(1));
  fill(t.a, 3);
  t.a.writeback(durable);
  t.reopen();
  CHECK(value_of_all(t.a) == 2);
  CHECK(value_of_all(t.b) == 2);
  CHECK(t.b.last_commit()->number == 1);
  CHECK(t.b.last_commit()->attributes == std::map<std::string, std::string>{{"step", "2"}});
}

TEST_CASE("a roll back takes elements, extents and attributes to the last commit") {
  committed_arrays t;
  fill(t.a, 1);
  t.a.set_attribute("kept", "as it was");
  commit({&t.a});
  fill(t.a, 2);
  t.a.set_attribute("kept", "changed");
  t.a.set_attribute("new", "x");
  SECTION("as it is") {}
  SECTION("grown") { t.a.resize(150); }
  SECTION("shrunk") { t.a.resize(10); }
  SECTION("shrunk, grown and written back") {
    t.a.resize(10);
    t.a.resize(200);
    fill(t.a, 3);
    t.a.writeback();
  }
  t.a.roll_back();
  CHECK(t.a.extent(0) == 100);
  CHECK(value_of_all(t.a) == 1);
  CHECK(t.a.attributes() == std::map<std::string, std::string>{{"kept", "as it was"}});
  t.a.resize(150);
  CHECK(t.a(149, 69) == 0);
  CHECK(t.a(120, 0) == 0);
  t.a(120, 0) = 5;
  commit({&t.a});
  t.reopen();
  CHECK(t.a.extent(0) == 150);
  CHECK(t.a(120, 0) == 5);
  CHECK(t.a(99, 69) == 1);
}

TEST_CASE("a reader sees the last commit while the writer goes on, and is told when that has gone") {
  committed_arrays t;
  fill(t.a, 1);
  t.a.set_attribute("state", "first");
  commit({&t.a});
  fill(t.a, 2);
  t.a.resize(120);
  t.a.set_attribute("state", "second");
  t.a.writeback();
  const ooc::file reader = ooc::file::open(t.s, "a", file_access::read_only);
  const auto read = [&] {
    std::vector<int> all(100 * 70);
    CHECK(reader.read_at(0, std::as_writable_bytes(std::span(all))) == all.size() * sizeof(int));
    return all;
  };
  CHECK(reader.size() == 100 * 70 * sizeof(int));
  CHECK(read() == std::vector<int>(100 * 70, 1));
  CHECK(t.s.core()->metadata().open("a", false).attributes.at("state") == "first");
  commit({&t.a});
  CHECK(reader.size() == 100 * 70 * sizeof(int));
  CHECK(read() == std::vector<int>(100 * 70, 1));
  const storage::opened_file second = t.s.core()->open("a", storage::open_mode::read);
  CHECK(second.meta.size == 120 * 70 * sizeof(int));
  CHECK(second.meta.attributes.at("state") == "second");
  fill(t.a, 3);
  t.a.writeback();
  std::vector<int> all(100 * 70);
  const auto whole = request::contiguous(0, all.size() * sizeof(int));
  CHECK_FALSE(second.file->read(whole, reinterpret_cast<std::byte*>(all.data())));
  CHECK(all == std::vector<int>(100 * 70, 2));
  commit({&t.a});
  fill(t.a, 4);
  t.a.writeback();
  const failure gone = second.file->read(whole, reinterpret_cast<std::byte*>(all.data()));
  CHECK(gone.code == errc::conflict);
  CHECK_THAT(gone.what, Contains("commit 2") && Contains("open the array again"));
}

TEST_CASE("a reader of a sparse array is told that its commit has gone when the next one is made") {
  committed_arrays t;
  array a(t.rt, t.s, "sparse", create, {100, 70}, {.sparse = true, .commits = true});
  fill(a, 1);
  commit({&a});
  fill(a, 2);
  a.writeback();
  const storage::opened_file first = t.s.core()->open("sparse", storage::open_mode::read);
  std::vector<int> all(100 * 70);
  const auto read = [&](const storage::opened_file& f) {
    return f.file->read(request::contiguous(0, all.size() * sizeof(int)), reinterpret_cast<std::byte*>(all.data()));
  };
  CHECK_FALSE(read(first));
  CHECK(all == std::vector<int>(100 * 70, 1));
  commit({&a});  // and nothing is written afterwards
  const failure gone = read(first);
  CHECK(gone.code == errc::conflict);
  CHECK_THAT(gone.what, Contains("commit 1 is no longer kept") && Contains("open the array again"));
  CHECK_FALSE(read(t.s.core()->open("sparse", storage::open_mode::read)));
  CHECK(all == std::vector<int>(100 * 70, 2));
}

TEST_CASE("files of arrays with commits are read as of the last one, and written by arrays only") {
  committed_arrays t;
  fill(t.a, 1);
  commit({&t.a});
  fill(t.a, 2);
  t.a.resize(110);
  t.a.close();
  const ooc::file f = ooc::file::open(t.s, "a", file_access::read_only);
  CHECK(f.size() == 100 * 70 * sizeof(int));
  int first = 0;
  CHECK(f.read_at(0, std::as_writable_bytes(std::span(&first, 1))) == sizeof first);
  CHECK(first == 1);
  CHECK_THROWS_WITH(ooc::file::open(t.s, "a", file_access::read_write), Contains("with commits"));
}

namespace {

/// What `steps` steps make of array `t.a`, whose element (i, j) was i * 70 + j.
std::vector<int> swept(std::size_t steps) {
  std::vector<int> now(100 * 70), next;
  std::iota(now.begin(), now.end(), 0);
  for (; steps > 0; --steps) {
    next = now;
    for (std::size_t i = 1; i < 99; ++i)
      for (std::size_t j = 1; j < 69; ++j)
        next[i * 70 + j] = (now[(i - 1) * 70 + j] + now[(i + 1) * 70 + j] + 3 * now[i * 70 + j - 1] + j) % 10007;
    now.swap(next);
  }
  return now;
}

}  // namespace

TEST_CASE("a program may read the last commit of an array that it writes") {
  committed_arrays t;
  fill(t.a, 1);
  commit({&t.a});
  fill(t.a, 2);
  t.a.resize(120);
  const array seen(t.rt, t.s, "a", open_read_only), again(t.rt, t.s, "a", open_read_only);
  CHECK(seen.extent(0) == 100);
  CHECK(value_of_all(seen) == 1);
  fill(t.a, 3);
  t.a.writeback();
  CHECK(value_of_all(again) == 1);
  CHECK(seen.last_commit()->number == 1);
  commit({&t.a});
  const array next(t.rt, t.s, "a", open_read_only);
  CHECK(next.extent(0) == 120);
  CHECK(value_of_all(next) == 3);
}

TEST_CASE("a sweep commits its passes, and one that is cut short goes on from the last of them") {
  committed_arrays t;
  std::iota(t.a.begin(), t.a.end(), 0);
  commit({&t.a});
  const std::size_t width = GENERATE(0, 20);
  const auto rule = stencil({1, 1}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j)
      out[j] = static_cast<int>((in[-1][j] + in[1][j] + 3 * in[0][j - 1] + j) % 10007);
  });
  const sweep_options often{.fuse = 3, .width = width, .commit_every = 2};
  // Passes of 3 steps end at 3, 6, 8; after the fourth nobody wants to go on.
  CHECK_THROWS_WITH(sweep(t.a, 40,
                          rule.after(1,
                                     [](std::size_t step) {
                                       if (step == 5) throw std::runtime_error("enough");
                                       return true;
                                     }),
                          sweep_options{.fuse = 1, .width = width, .commit_every = 2}),
                    Contains("enough"));
  t.reopen();
  CHECK(t.a.last_commit()->attributes.at("steps") == "4");
  CHECK(std::ranges::equal(t.a, swept(4)));
  sweep_options rest = often;
  rest.steps_before = 4;
  const auto done = sweep(t.a, 7, rule, rest);
  CHECK(t.a.last_commit()->attributes.at("steps") == "11");
  CHECK(t.a.last_commit()->number == 3 + (done.passes + 1) / 2);
  t.reopen();
  CHECK(std::ranges::equal(t.a, swept(11)));
  array plain(t.rt, t.s, "plain", create, {100, 70});
  CHECK_THROWS_WITH(sweep(plain, 2, rule, often), Contains("'plain'") && Contains("options.commits"));
}

TEST_CASE("an algorithm in place that is cut short leaves the last commit, and no mark") {
  committed_arrays t;
  std::iota(t.a.begin(), t.a.end(), 0);
  commit({&t.a});
  CHECK_THROWS(for_each(t.a, [](int& v) {
    if (v == 5000) throw std::runtime_error("enough");
    v = -1;
  }));
  t.reopen();
  CHECK(std::ranges::equal(t.a, swept(0)));
}

TEST_CASE("what cannot be committed together is refused by its name, and nothing is committed") {
  committed_arrays t;
  array plain(t.rt, t.s, "plain", create, {10, 10});
  CHECK_THROWS_WITH(commit({&t.a, &plain}), Contains("'plain'") && Contains("options.commits"));
  CHECK_THROWS_WITH(plain.roll_back(), Contains("'plain'") && Contains("options.commits"));
  CHECK_FALSE(plain.last_commit());
  plain.close();
  CHECK_THROWS_WITH((array(t.rt, t.s, "plain", create_or_open, {10, 10}, {.commits = true})),
                    Contains("made without commits"));
  CHECK_THROWS_WITH((array(t.rt, t.s, "c", create, {10, 10}, {.commits = true, .shared = true})),
                    Contains("options.shared"));
  const temporary_folder folder;
  const store elsewhere = store::open("local:" + (folder.path() / "other").string(), {.workers = 1, .staging = 64_KiB});
  array other(t.rt, elsewhere, "c", create, {10, 10}, {.commits = true});
  CHECK_THROWS_WITH(commit({&t.a, &other}), Contains("'c'") && Contains("another store"));
  CHECK_THROWS_WITH(commit({&t.a, &t.a}), Contains("twice"));
  CHECK_THROWS_WITH(commit({&t.a}, {{"", "no name"}}), Contains("name"));
  CHECK_THROWS_WITH(commit({&t.a}, {{"long", std::string(2 << 20, 'x')}}), Contains("1 MiB"));
  CHECK(t.a.last_commit()->number == 0);
  fill(t.a, 4);
  commit({&t.a});
  t.reopen();
  CHECK(value_of_all(t.a) == 4);
}

TEST_CASE("an array in tiles that is copied to one with commits goes back from any extents") {
  committed_arrays t;
  fill(t.a, 5);
  ooc_array<int, 2, layout_tiled> tiled(
      t.rt, t.s, "tiled", create, {100, 70},
      {.order = file_order::tiled, .tile = {16, 16}, .max_extents = {200, 200}, .commits = true});
  copy(t.a, tiled);
  commit({&tiled});
  tiled.resize({150, 90});
  tiled(149, 89) = 1;
  tiled.roll_back();
  CHECK(tiled.extents() == std::array<std::size_t, 2>{100, 70});
  tiled.close();
  tiled = {t.rt, t.s, "tiled", ooc::open};
  for (std::size_t i = 0; i < 100; ++i)
    for (std::size_t j = 0; j < 70; ++j) REQUIRE(tiled(i, j) == 5);
  tiled.resize({150, 90});
  CHECK(tiled(120, 3) == 0);
  CHECK(tiled(3, 80) == 0);
  CHECK(tiled(149, 89) == 0);
}

namespace {

/// Carries out what decides of a commit, and has no memory for the answer.
class forgetful_metadata : public storage::local_metadata {
 public:
  using local_metadata::local_metadata;
  storage::metadata_answer answer(const storage::metadata_call& call) override {
    if (std::holds_alternative<storage::calls::find>(call) && finds_nothing) throw std::bad_alloc();
    auto carried_out = local_metadata::answer(call);
    if (std::holds_alternative<storage::calls::decide>(call)) throw std::bad_alloc();
    return carried_out;
  }

  bool finds_nothing = false;
};

}  // namespace

TEST_CASE("a commit that is made counts as made where there is no memory for the answer, or as in doubt") {
  memory_store nodes(2);
  const storage::striped_file::nodes all(nodes.nodes.begin(), nodes.nodes.end());
  const auto metadata =
      std::make_shared<forgetful_metadata>(nodes.database(), "test", credentials{::geteuid(), ::getegid()});
  const store s(std::make_shared<storage::store_core>("memory:", "test", metadata, all));
  runtime rt(memory(1_MiB));
  array a(rt, s, "a", create, {100, 70}, {.commits = true});
  fill(a, 1);
  commit({&a});
  CHECK(a.last_commit()->number == 1);
  fill(a, 2);
  metadata->finds_nothing = true;
  CHECK_THROWS_WITH(commit({&a}), Contains("nobody knows whether the commit was made"));
  metadata->finds_nothing = false;
  CHECK_THROWS_WITH((fill(a, 3), a.writeback()), Contains("open them again"));
  a.invalidate(discard);
  a.close();
  a = array(rt, s, "a", ooc::open);
  CHECK(value_of_all(a) == 2);
  CHECK(a.last_commit()->number == 2);
}
