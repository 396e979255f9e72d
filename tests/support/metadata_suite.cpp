// What every metadata service does; run for each implementation (metadata_suite.hpp).
#include "support/metadata_suite.hpp"

#include <atomic>
#include <thread>

using namespace ooc;
using namespace ooc::testing;

namespace {

bool set_size(metadata_service& m, file_id id, std::uint64_t size, const std::vector<std::uint64_t>& extents,
              std::uint64_t generation, std::uint64_t reserved = 0) {
  const auto lock = m.lock_size(id);
  return m.set_size(id, size, extents, generation, reserved);
}

}  // namespace

TEST_CASE("an entry comes back as it was made") {
  const auto space = make_name_space();
  name_space& m = *space;
  new_file f;
  f.size = (std::uint64_t{1} << 62) + 1;
  f.striping = {1, 2, 8000};
  f.sparse = true;
  f.fill = {std::byte{1}, std::byte{0}, std::byte{255}};
  f.array = {"f8", 8, {3, std::uint64_t{1} << 40, 5}, {7}, {}, {1, 512, 5}};
  f.mode = 0640;
  const entry made = m->create("plate", f);
  m->commit(made.id);
  m->set_attribute("plate", "unit", "kelvin");
  m->set_attribute("plate", "unit", "celsius");
  m->set_attribute("plate", "empty", "");
  m.open();

  const entry e = m->lookup("//plate/");
  CHECK(e.id == made.id);
  CHECK(e.kind == entry_kind::file);
  CHECK(e.path == "plate");
  CHECK(e.size == f.size);
  CHECK(e.striping == f.striping);
  CHECK(e.sparse);
  CHECK(e.fill == f.fill);
  CHECK(e.array == f.array);
  CHECK(e.mode == 0640);
  CHECK(e.owner == me.uid);
  CHECK(e.attributes == std::map<std::string, std::string>{{"empty", ""}, {"unit", "celsius"}});
  CHECK(e.created_ns > 1'600'000'000'000'000'000);
  m->remove_attribute("plate", "unit");
  CHECK(failure_code([&] { m->remove_attribute("plate", "unit"); }, "unit") == ENOENT);
}

TEST_CASE("an uncommitted file is invisible but keeps its name") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry e = m->create("a", plain());
  CHECK(failure_code([&] { m->lookup("a"); }, "a") == ENOENT);
  CHECK(m->list("").empty());
  CHECK(m->files().empty());
  CHECK(m->unfinished() == std::vector<file_id>{e.id});
  CHECK(m->dead().empty());
  CHECK(failure_code([&] { m->create("a", plain()); }, "being made") == EEXIST);
  CHECK(failure_code([&] { m->remove("a"); }) == ENOENT);
  CHECK(failure_code([&] { m->rename("a", "b"); }) == ENOENT);
  m->commit(e.id);
  CHECK(m->lookup("a").id == e.id);
  CHECK(failure_code([&] { m->commit(e.id); }) == ENOENT);
}

TEST_CASE("an abandoned file frees its name and is dead until it is forgotten") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry e = m->create("a", plain());
  m->abandon(e.id);
  CHECK(m->dead() == std::vector<file_id>{e.id});
  const entry again = m.make("a");
  CHECK(again.id > e.id);
  m->abandon(again.id);  // committed: not to be abandoned
  CHECK(m->lookup("a").id == again.id);
  m->forget(e.id);
  CHECK(m->dead().empty());
}

TEST_CASE("a removed file is dead until it is forgotten and its id is never used again") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry e = m.make("a");
  CHECK(m->remove("a").id == e.id);
  CHECK(m->dead() == std::vector<file_id>{e.id});
  m->forget(e.id);
  m.open();
  CHECK(m.make("b").id > e.id);
}

TEST_CASE("folders nest, list by name and go only when empty") {
  const auto space = make_name_space();
  name_space& m = *space;
  CHECK(failure_code([&] { m->mkdir("a/b", 0755, false); }, "a/b") == ENOENT);
  m->mkdir("a/b/c", 0755, true);
  m->mkdir("a/b/c", 0755, true);
  CHECK(failure_code([&] { m->mkdir("a/b/c", 0755, false); }) == EEXIST);
  m.make("a/b/z");
  m.make("a/b/a");
  m->set_attribute("a/b/z", "k", "v");
  CHECK(names(m->list("a/b")) == std::vector<std::string>{"a/b/a", "a/b/c", "a/b/z"});
  CHECK(m->list("a/b")[2].attributes.at("k") == "v");
  CHECK(names(m->list("/")) == std::vector<std::string>{"a"});
  CHECK(names(m->list("a/b/a")) == std::vector<std::string>{"a/b/a"});
  CHECK(failure_code([&] { m->remove("a/b"); }) == ENOTEMPTY);
  m->remove("a/b/c");
  CHECK(failure_code([&] { m->lookup("a/b/c"); }, "a/b/c") == ENOENT);
  CHECK(failure_code([&] { m->remove(""); }) == EINVAL);
  CHECK(m->lookup("").kind == entry_kind::folder);
}

TEST_CASE("a folder changes when something gets or loses its name there") {
  const auto space = make_name_space();
  name_space& m = *space;
  m->mkdir("a", 0755, false);
  entry before = m->lookup("a");
  const auto changed = [&] {
    const entry now = m->lookup("a");
    const bool both = now.data_changed_ns > before.data_changed_ns && now.changed_ns > before.changed_ns;
    before = now;
    return both;
  };
  const entry begun = m->create("a/f", plain());
  CHECK_FALSE(changed());
  m->commit(begun.id);
  CHECK(changed());
  new_file finished = plain(0);
  finished.finished = true;
  m->create("a/g", finished);
  CHECK(changed());
  m->mkdir("a/b/c", 0755, true);
  CHECK(changed());
  m->remove("a/b/c");
  CHECK_FALSE(changed());
  for (const char* name : {"a/b", "a/f", "a/g"}) {
    m->remove(name);
    CHECK(changed());
  }
}

TEST_CASE("a file is not a folder") {
  const auto space = make_name_space();
  name_space& m = *space;
  m.make("f");
  CHECK(failure_code([&] { m->lookup("f/x"); }) == ENOTDIR);
  CHECK(failure_code([&] { m->create("f/x", plain()); }) == ENOTDIR);
  CHECK(failure_code([&] { m->mkdir("f/x", 0755, true); }) == ENOTDIR);
  CHECK(failure_code([&] { m->mkdir("f", 0755, true); }) == EEXIST);
  CHECK(failure_code([&] { m->rename("f", "f/x"); }) == ENOTDIR);
}

TEST_CASE("names that cannot be are refused") {
  const auto space = make_name_space();
  name_space& m = *space;
  CHECK(failure_code([&] { m->lookup("a/../b"); }) == EINVAL);
  CHECK(failure_code([&] { m->create("./a", plain()); }) == EINVAL);
  CHECK(failure_code([&] { m->create(std::string_view("a\0b", 3), plain()); }) == EINVAL);
  CHECK(failure_code([&] { m->create(std::string(256, 'x'), plain()); }) == ENAMETOOLONG);
  CHECK(failure_code([&] { m->create("", plain()); }) == EINVAL);
  CHECK(failure_code([&] { m->create("x/y", plain()); }, "x/y") == ENOENT);
  m.make(std::string(255, 'x'));
  m.make("\xff\xfe weird '\"; DROP TABLE entry; --%\n");
  CHECK(m->list("").size() == 2);
}

TEST_CASE("sizes that overflow are refused") {
  const auto space = make_name_space();
  name_space& m = *space;
  CHECK(failure_code([&] { m->create("a", plain(std::uint64_t{1} << 63)); }, "a") == EINVAL);
  new_file f = plain();
  f.striping = {0, 4, std::uint64_t{1} << 62};
  CHECK(failure_code([&] { m->create("a", f); }, "a") == EINVAL);
  f.striping = {0, 0, 4096};
  CHECK(failure_code([&] { m->create("a", f); }, "a") == EINVAL);
  const entry e = m.make("a", (std::uint64_t{1} << 63) - 1);
  CHECK(m->find(e.id).size == (std::uint64_t{1} << 63) - 1);
  CHECK(failure_code([&] { set_size(*m.service, e.id, std::uint64_t{1} << 63, {}, 0); }) == EINVAL);
  CHECK(set_size(*m.service, e.id, 5, {5}, 0));
  CHECK(m->find(e.id).array.extents == std::vector<std::uint64_t>{5});
  m->remove("a");
  CHECK(failure_code([&] { set_size(*m.service, e.id, 5, {5}, 0); }) == ENOENT);
  CHECK(failure_code([&] { m->find(e.id); }) == ENOENT);
}

TEST_CASE("nodes that no store has are refused, however a file gets them") {
  const auto space = make_name_space();
  name_space& m = *space;
  constexpr std::uint32_t most = 0xFFFFFFFF;
  const std::vector<std::pair<ooc::striping, node_list>> wrong{{{0, most, 1}, {}},
                                                               {{0, 4097, 4096}, {}},
                                                               {{4096, 1, 4096}, {}},
                                                               {{most, 1, 4096}, {}},
                                                               {{0, 2, 4096}, {0, 4096}}};
  new_entry empty;
  for (const auto& [how, nodes] : wrong) {
    CAPTURE(how.sn, how.nn);
    new_file f = plain(0);
    f.striping = empty.striping = how;
    f.nodes = empty.nodes = nodes;
    CHECK(failure_code([&] { m->create("f", f); }, "4096") == EINVAL);
    CHECK(failure_code([&] { m->make("f", empty); }, "4096") == EINVAL);
  }
  empty.striping = {0, 1, 4096};
  empty.nodes.clear();
  const file_id id = m->make("f", empty).id;
  for (const char* text : {"0,4294967295,1", "0,4097,4096", "4096,1,4096", "0,2,4096,0,4096"})
    CHECK(failure_code([&] { m->set_attribute(id, "ooc.striping", text); }, "4096") == EINVAL);
  m->set_attribute(id, "ooc.striping", "4095,4096,4096");
  CHECK(m->lookup("f").striping == ooc::striping{4095, 4096, 4096});
}

TEST_CASE("an array whose every extent may change keeps its limits and the greatest extents that it has had") {
  const auto space = make_name_space();
  name_space& m = *space;
  new_file f = plain();
  f.array = {.element_type = "f8",
             .element_size = 8,
             .extents = {10, 20},
             .max_extents = {100, 50},
             .reached = {},
             .tile = {4, 8}};
  const entry e = m->create("a", f);
  CHECK(e.array.max_extents == f.array.max_extents);
  CHECK(e.array.reached == f.array.extents);
  m->commit(e.id);
  set_size(*m.service, e.id, 5000, {70, 5}, 0);
  set_size(*m.service, e.id, 5000, {2, 30}, 0);
  m.open();
  for (const entry& now : {m->lookup("a"), m->find(e.id), m->list("").front()}) {
    CHECK(now.array.extents == std::vector<std::uint64_t>{2, 30});
    CHECK(now.array.max_extents == std::vector<std::uint64_t>{100, 50});
    CHECK(now.array.reached == std::vector<std::uint64_t>{70, 30});
    CHECK(now.array.tile == std::vector<std::uint64_t>{4, 8});
  }
  f.array.max_extents = {100};  // of the first one only
  const entry first = m->create("b", f);
  CHECK(first.array.max_extents == std::vector<std::uint64_t>{100});
  CHECK(first.array.reached.empty());
  m->abandon(first.id);
  m->remove("a");
  f.array.max_extents = {100, 19};
  CHECK(failure_code([&] { m->create("c", f); }) == EINVAL);
  f.array.max_extents = {100, 50};
  f.array.tile.clear();
  CHECK(failure_code([&] { m->create("c", f); }) == EINVAL);
}

TEST_CASE("rename moves a tree and replaces nothing") {
  const auto space = make_name_space();
  name_space& m = *space;
  m->mkdir("a/b", 0755, true);
  const entry f = m.make("a/b/f");
  m->mkdir("c", 0755, false);
  m->rename("a/b", "c/d");
  CHECK(m->lookup("c/d/f").id == f.id);
  CHECK(m->find(f.id).path == "c/d/f");
  CHECK(m->list("a").empty());
  m.make("g");
  CHECK(failure_code([&] { m->rename("g", "c/d/f"); }, "c/d/f") == EEXIST);
  CHECK(failure_code([&] { m->rename("g", "a"); }, "a") == EEXIST);
  CHECK(failure_code([&] { m->rename("g", "c"); }, "c") == ENOTEMPTY);
  CHECK(failure_code([&] { m->rename("c", "c/d/e"); }, "itself") == EINVAL);
  CHECK(failure_code([&] { m->rename("c", "c/e"); }, "itself") == EINVAL);
  CHECK(failure_code([&] { m->rename("nothing", "x"); }, "nothing") == ENOENT);
  CHECK(failure_code([&] { m->rename("g", "nowhere/x"); }, "nowhere/x") == ENOENT);
  CHECK(failure_code([&] { m->rename("", "x"); }) == EINVAL);
  m->rename("g", "g");
  CHECK(m->lookup("g").kind == entry_kind::file);
}

TEST_CASE("a place is a path that begins at a folder, wherever that has been moved to") {
  const auto space = make_name_space();
  name_space& m = *space;
  m->mkdir("a/b/c", 0755, true);
  const file_id f = m.make("a/b/c/f").id, b = m->lookup("a/b").id;
  m->rename("a/b", "moved");
  CHECK(m->lookup({b, "c/f"}).id == f);
  CHECK(m->lookup({b, "c/f"}).path == "c/f");
  CHECK(m->open({b, "c/f"}, true).id == f);
  CHECK(names(m->list({b, "c"})) == std::vector<std::string>{"c/f"});
  m->mkdir({b, "d/e"}, 0755, true);
  m->commit(m->create({b, "d/g"}, plain()).id);
  m->rename({b, "d/g"}, {b, "h"});
  m->link(f, {b, "d/e/link"});
  m->set_mode({b, "h"}, 0600);
  m->set_attribute({b, "h"}, "k", "v");
  CHECK(m->lookup("moved/h").mode == 0600);
  CHECK(m->lookup("moved/h").attributes.at("k") == "v");
  CHECK(m->lookup("moved/d/e/link").id == f);
  m->remove_attribute({b, "h"}, "k");
  m->remove({b, "h"});
  CHECK(failure_code([&] { m->lookup({b, "h"}); }, "h") == ENOENT);
  CHECK(failure_code([&] { m->lookup({b, "c/f/x"}); }) == ENOTDIR);
  CHECK(failure_code([&] { m->mkdir({f, "x"}, 0755, true); }) == ENOTDIR);
  CHECK(failure_code([&] { m->remove(b); }) == EINVAL);
}

TEST_CASE("permissions are kept as in POSIX") {
  const auto space = make_name_space();
  name_space& m = *space;
  m->mkdir("mine", 0755, false);
  m->mkdir("open", 0777, false);  // less the umask
  CHECK((m->lookup("open").mode & 0700) == 0700);
  m->set_mode("open", 0777);
  m->mkdir("closed", 0700, false);
  m.make("mine/f");
  m.make("closed/f");
  const auto other = m.as({2000, 2000});
  CHECK(failure_code([&] { other->create("mine/x", plain()); }, "mine/x") == EACCES);
  CHECK(failure_code([&] { other->mkdir("mine/x", 0755, false); }) == EACCES);
  CHECK(failure_code([&] { other->remove("mine/f"); }) == EACCES);
  CHECK(failure_code([&] { other->rename("mine/f", "open/f"); }) == EACCES);
  CHECK(failure_code([&] { other->set_mode("mine/f", 0777); }) == EACCES);
  CHECK(failure_code([&] { other->set_owner("mine/f", 2000, 2000); }) == EACCES);
  CHECK(failure_code([&] { other->set_attribute("mine/f", "a", "b"); }) == EACCES);
  CHECK(failure_code([&] { other->lookup("closed/f"); }) == EACCES);
  CHECK(failure_code([&] { other->list("closed"); }) == EACCES);
  other->commit(other->create("open/x", plain()).id);
  CHECK(m->lookup("open/x").owner == 2000);
  CHECK(other->lookup("mine/f").owner == me.uid);
  const auto root = m.as({0, 0});
  root->set_owner("mine/f", 2000, 2000);
  other->set_mode("mine/f", 0600);
  // As POSIX has it: nobody but user 0 gives away, and a group only to one's own.
  CHECK(failure_code([&] { other->set_owner("mine/f", me.uid, keep_id); }) == EPERM);
  CHECK(failure_code([&] { other->set_owner("mine/f", keep_id, 2001); }) == EPERM);
  other->set_owner("mine/f", 2000, 2000);
  other->set_owner("mine/f", keep_id, keep_id);
  root->set_owner("mine/f", keep_id, 2001);
  CHECK(m->lookup("mine/f").group == 2001);
  CHECK(m->lookup("mine/f").owner == 2000);
  other->set_owner("mine/f", keep_id, 2000);
  CHECK(m->lookup("mine/f").group == 2000);
  CHECK(m->lookup("mine/f").mode == 0600);
}

TEST_CASE("many threads share one name space") {
  const auto space = make_name_space();
  name_space& m = *space;
  std::vector<std::thread> threads;
  std::atomic<int> wins{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        m->commit(m->create("t" + std::to_string(t) + "-" + std::to_string(i), plain()).id);
        try {
          m->commit(m->create("shared" + std::to_string(i), plain()).id);
          ++wins;
        } catch (const usage_error&) {
        }
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wins == 50);
  CHECK(m->files().size() == 250);
}

TEST_CASE("a file in the middle of an algorithm opens for who says so alone") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry e = m->create("a", plain());
  m->commit(e.id);
  m->set_in_progress(e.id, "sweep, 9 steps");
  m.open();
  CHECK(failure_code([&] { m->open("a", true); }, "sweep, 9 steps") == EBUSY);
  CHECK(failure_code([&] { m->open("a", false); }, "ooc::open_unfinished") == EBUSY);
  CHECK(m->open("a", true, true).id == e.id);
  m->set_in_progress(e.id, "");
  CHECK(m->open("a", true).id == e.id);
  CHECK(failure_code([&] { m->set_in_progress(e.id + 1, "x"); }) == ENOENT);
}

TEST_CASE("several files get their next commit in one step, or none of them does") {
  const auto space = make_name_space();
  name_space& m = *space;
  new_file f = plain(5000);
  f.array.extents = {5000};
  f.array.max_extents = {9000};
  f.commits = true;
  std::vector<file_id> ids;
  for (const char* name : {"a", "b"}) {
    ids.push_back(m->create(name, f).id);
    m->commit(ids.back());
    CHECK(m->find(ids.back()).commit->number == 0);
  }
  const auto resized = [&](file_id id, std::uint64_t n) {
    const auto lock = m->lock_size(id);
    return m->set_size(id, n, {n}, m->find(id).generation);
  };
  CHECK(resized(ids[0], 6000));
  m->set_attribute("a", "k", "then");
  const auto claimed = [&] { return std::pair(m->claim_writer(ids[0], false), m->claim_writer(ids[1], false)); };
  auto claims = claimed();
  m->ask(calls::decide{{{ids[0], 0}, {ids[1], 0}}, 77, {{"step", "1"}}});
  CHECK(resized(ids[0], 7000));
  m->set_attribute("a", "k", "now");
  claims = {};
  m.open();
  claims = claimed();
  const entry now = m->open("a", true), then = m->open("a", false);
  CHECK(now.size == 7000);
  CHECK(now.attributes.at("k") == "now");
  CHECK_FALSE(now.at_commit);
  CHECK(then.at_commit);
  CHECK(then.size == 6000);
  CHECK(then.array.extents == std::vector<std::uint64_t>{6000});
  CHECK(then.attributes.at("k") == "then");
  for (const file_id id : ids) {
    CHECK(m->find(id).commit->number == 1);
    CHECK(m->find(id).commit->time_ns == 77);
    CHECK(m->find(id, true).commit->attributes.at("step") == "1");
  }

  // The second has a commit that its writer does not know.
  CHECK_THROWS_AS(m->ask(calls::decide{{{ids[0], 1}, {ids[1], 0}}, 78, {}}), usage_error);
  CHECK(m->find(ids[0]).commit->number == 1);
  CHECK(m->find(ids[0], true).size == 6000);

  m->ask(calls::roll_back{ids[0]});
  CHECK(m->find(ids[0]).size == 6000);
  CHECK(m->find(ids[0]).attributes.at("k") == "then");
  CHECK(m->find(ids[0]).commit->number == 1);
  m->commit(m->create("without", plain()).id);
  const auto third = m->claim_writer(m->lookup("without").id, false);
  CHECK(failure_code(
            [&] {
              m->ask(calls::decide{{{m->lookup("without").id, 0}}, 1, {}});
            },
            "without commits") == EINVAL);
  CHECK(failure_code([&] { m->ask(calls::roll_back{ids[1] + 100}); }) == ENOENT);
}

namespace {

new_entry kind_of(entry_kind kind, std::uint32_t mode = 0644) {
  new_entry n;
  n.kind = kind;
  n.mode = mode;
  n.striping = {0, 1, 4096};
  return n;
}

}  // namespace

TEST_CASE("every kind of entry is made, found and listed by its folder and name") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry d = m->make({1, "d"}, kind_of(entry_kind::folder, 0755));
  new_entry link = kind_of(entry_kind::link, 0777);
  link.target = "../somewhere";
  const entry l = m->make({d.id, "l"}, link);
  new_entry device = kind_of(entry_kind::character_device);
  device.device = 0x1234;
  m->make({d.id, "c"}, device);
  m->make({d.id, "p"}, kind_of(entry_kind::fifo));
  m->make({d.id, "s"}, kind_of(entry_kind::socket));
  const entry f = m->make({d.id, "f"}, kind_of(entry_kind::file, 0640));
  m.open();
  CHECK(m->lookup({d.id, "l"}).target == "../somewhere");
  CHECK(m->lookup({d.id, "l"}).id == l.id);
  CHECK(m->lookup({d.id, "c"}).device == 0x1234);
  CHECK(m->lookup(f.id).path == "d/f");
  CHECK(m->lookup(f.id).mode == 0640);
  CHECK(m->lookup(f.id).names == 1);
  CHECK(m->find(f.id).sparse);
  CHECK(names(m->list_part(d.id, "").entries) == std::vector<std::string>{"c", "f", "l", "p", "s"});
  CHECK(names(m->list_part(d.id, "f").entries) == std::vector<std::string>{"l", "p", "s"});
  CHECK(failure_code([&] { m->make({d.id, "f"}, kind_of(entry_kind::file)); }, "f") == EEXIST);
  CHECK(failure_code([&] { m->make({f.id, "x"}, kind_of(entry_kind::file)); }) == ENOTDIR);
  CHECK(failure_code([&] { m->make({d.id, "a/b"}, kind_of(entry_kind::file)); }, "a/b") == ENOENT);
  CHECK(failure_code([&] { m->lookup({d.id, "none"}); }, "none") == ENOENT);
  CHECK(names(m->list_part(f.id, "").entries) == std::vector<std::string>{"d/f"});
  CHECK(failure_code([&] { m->open("d/l", false); }, "symbolic link") == EINVAL);
  CHECK(failure_code([&] { m->lookup(f.id + 1000); }) == ENOENT);
}

TEST_CASE("what lies deeper than a path may be long is used by its folder and name") {
  const auto space = make_name_space();
  name_space& m = *space;
  file_id folder = 1;
  for (int depth = 0; depth < 30; ++depth)
    folder = m->make({folder, std::string(200, 'a')}, kind_of(entry_kind::folder, 0755)).id;
  const entry f = m->make({folder, "f"}, kind_of(entry_kind::file, 0640));
  CHECK(m->lookup({folder, "f"}).id == f.id);
  CHECK(m->lookup(f.id).path.size() == 30 * 201 + 1);
  CHECK(m->find(f.id).id == f.id);
  CHECK(names(m->list_part(folder, "").entries) == std::vector<std::string>{"f"});
  entry_change c;
  c.mode = 0644;
  CHECK(m->change(f.id, c).mode == 0644);
  const auto other = m.as({2000, 2000});
  CHECK(failure_code([&] { other->change(f.id, c); }, "/f'") == EACCES);
  m->link(f.id, {folder, "g"});
  CHECK(m->move({folder, "g"}, {1, "g"}, true).id == 0);
  CHECK(m->unlink({folder, "f"}, false).names == 1);
  CHECK(m->lookup("g").id == f.id);
}

TEST_CASE("what has been removed is not found by its number") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry d = m->make({1, "d"}, kind_of(entry_kind::folder, 0755));
  const entry f = m->make({d.id, "f"}, kind_of(entry_kind::fifo));
  m->unlink({d.id, "f"}, false);
  m->unlink({1, "d"}, true);
  m.make("g");
  const file_id g = m->lookup("g").id;
  CHECK(failure_code([&] { m->make({d.id, "x"}, kind_of(entry_kind::file)); }) == ENOENT);
  CHECK(failure_code([&] { m->lookup({d.id, "f"}); }) == ENOENT);
  CHECK(failure_code([&] { m->list_part(d.id, ""); }) == ENOENT);
  CHECK(failure_code([&] { m->link(g, {d.id, "x"}); }) == ENOENT);
  CHECK(failure_code([&] { m->link(f.id, {1, "x"}); }) == ENOENT);
  CHECK(failure_code([&] { m->move({1, "g"}, {d.id, "x"}, true); }) == ENOENT);
  CHECK(failure_code([&] { m->unlink({d.id, "f"}, false); }) == ENOENT);
  CHECK(failure_code([&] { m->change(f.id, {}); }) == ENOENT);
  CHECK(failure_code([&] { m->lookup(f.id); }) == ENOENT);
}

TEST_CASE("a file has as many names as it was given, and stays until the last is gone") {
  const auto space = make_name_space();
  name_space& m = *space;
  m->mkdir("d", 0755, false);
  const file_id d = m->lookup("d").id;
  const entry f = m.make("d/f");
  CHECK(m->link(f.id, {1, "g"}).names == 2);
  m->link(f.id, {1, "h"});
  m->set_attribute("h", "k", "v");
  m.open();
  CHECK(m->lookup("g").id == f.id);
  CHECK(m->lookup("h").names == 3);
  CHECK(names(m->list("")) == std::vector<std::string>{"d", "g", "h"});
  CHECK(m->list("")[2].attributes.at("k") == "v");
  CHECK(names(m->list_part(1, "").entries) == std::vector<std::string>{"d", "g", "h"});
  CHECK(m->files() == std::vector<file_id>{f.id});
  CHECK(failure_code([&] { m->link(d, {1, "x"}); }) == EPERM);
  CHECK(failure_code([&] { m->link(f.id, {1, "g"}); }) == EEXIST);
  CHECK(m->remove("d/f").names == 2);  // its own name: another takes its place
  CHECK(m->dead().empty());
  CHECK(m->lookup("g").id == f.id);
  CHECK(failure_code([&] { m->lookup("d/f"); }) == ENOENT);
  m->remove("d");
  m->rename("h", "i");
  CHECK(m->unlink({1, "g"}, false).names == 1);
  CHECK(m->lookup("i").names == 1);
  CHECK(m->find(f.id).path == "i");
  CHECK(m->remove("i").names == 0);
  CHECK(m->dead() == std::vector<file_id>{f.id});
}

TEST_CASE("a removed file is used on by who removed it, until it lets go") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry f = m.make("f");
  CHECK(m->unlink({1, "f"}, false).names == 0);
  CHECK(failure_code([&] { m->lookup("f"); }) == ENOENT);
  CHECK(m->list("").empty());
  CHECK(m->files().empty());
  CHECK(m->dead().empty());
  CHECK(m->unfinished() == std::vector<file_id>{f.id});
  CHECK(m->lookup(f.id).names == 0);
  CHECK(m->find(f.id).id == f.id);
  CHECK(set_size(*m.service, f.id, 20, {}, 0));
  CHECK(m->lookup(f.id).size == 20);
  CHECK(failure_code([&] { m->link(f.id, {1, "again"}); }) == ENOENT);
  CHECK(failure_code([&] { m->commit(f.id); }, "is not being made") == ENOENT);
  CHECK(m->list("").empty());
  m.make("f");  // its name is free
  m->abandon(f.id);
  CHECK(failure_code([&] { m->lookup(f.id); }) == ENOENT);
  CHECK(m->dead() == std::vector<file_id>{f.id});
  CHECK(failure_code([&] { m->unlink({1, "f"}, true); }) == ENOTDIR);
  m->mkdir("d/e", 0755, true);
  CHECK(failure_code([&] { m->unlink({1, "d"}, false); }) == EISDIR);
  CHECK(failure_code([&] { m->unlink({1, "d"}, true); }) == ENOTEMPTY);
  CHECK(m->unlink({m->lookup("d").id, "e"}, true).names == 0);
}

TEST_CASE("a name moves onto another one in one step") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry f = m.make("f"), g = m.make("g");
  m->mkdir("d", 0755, false);
  m->mkdir("e", 0755, false);
  m->mkdir("full/x", 0755, true);
  const file_id d = m->lookup("d").id;
  CHECK(failure_code([&] { m->move({1, "f"}, {1, "g"}, false); }, "g") == EEXIST);
  const entry replaced = m->move({1, "f"}, {1, "g"}, true);
  CHECK(replaced.id == g.id);
  CHECK(replaced.names == 0);
  CHECK(m->lookup("g").id == f.id);
  CHECK(failure_code([&] { m->lookup("f"); }) == ENOENT);
  m->abandon(g.id);
  CHECK(m->dead() == std::vector<file_id>{g.id});
  CHECK(m->move({1, "g"}, {d, "h"}, true).id == 0);
  m->link(f.id, {d, "i"});
  CHECK(m->move({d, "h"}, {d, "i"}, true).id == 0);  // the same file: both names stay
  CHECK(failure_code([&] { m->move({d, "h"}, {d, "i"}, false); }, "i") == EEXIST);
  CHECK(m->move({d, "h"}, {d, "h"}, false).id == 0);
  CHECK(m->lookup("d/h").names == 2);
  CHECK(m->move({d, "i"}, {1, "j"}, true).id == 0);
  CHECK(m->lookup("j").id == f.id);
  CHECK(failure_code([&] { m->move({1, "j"}, {1, "e"}, true); }) == EISDIR);
  CHECK(failure_code([&] { m->move({1, "e"}, {1, "j"}, true); }) == ENOTDIR);
  CHECK(failure_code([&] { m->move({1, "e"}, {1, "full"}, true); }) == ENOTEMPTY);
  CHECK(failure_code([&] { m->move({1, "d"}, {d, "k"}, true); }, "itself") == EINVAL);
  CHECK(m->move({1, "e"}, {1, "d2"}, true).id == 0);
  m->mkdir("e", 0755, false);
  CHECK(m->move({1, "d2"}, {1, "e"}, true).kind == entry_kind::folder);
}

TEST_CASE("times, owners and reserved space change by themselves") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry f = m.make("f", 10);
  entry_change c;
  c.data_changed_ns = 1'234'567'890'123'456'789;
  c.data_read_ns = -5;
  c.mode = 0600;
  CHECK(m->change(f.id, c).mode == 0600);
  m.open();
  CHECK(m->lookup(f.id).data_changed_ns == 1'234'567'890'123'456'789);
  CHECK(m->lookup(f.id).data_read_ns == -5);
  CHECK(m->lookup(f.id).owner == me.uid);
  entry_change longer;
  longer.size_at_least = 11;
  CHECK(failure_code([&] { m->change(f.id, longer); }, "11") == EINVAL);
  CHECK(set_size(*m.service, f.id, 10, {}, 0, 100));
  CHECK(m->lookup(f.id).reserved == 100);
  CHECK(m->lookup(f.id).size == 10);
  CHECK(m->change(f.id, longer).size == 11);
  longer.size_at_least = 5;  // somebody has made it longer: that stays
  CHECK(m->change(f.id, longer).size == 11);
  CHECK(m->lookup(f.id).reserved == 100);
  CHECK(set_size(*m.service, f.id, 11, {}, 0));
  CHECK(m->lookup(f.id).reserved == 0);
  m->set_mode("", 0777);
  const auto other = m.as({2000, 2000});
  CHECK(failure_code([&] { other->change(f.id, c); }, "f") == EACCES);
  new_entry gift = kind_of(entry_kind::file);
  gift.owner = me.uid;
  CHECK(failure_code([&] { other->make({1, "gift"}, gift); }, "gift") == EPERM);
  const auto root = m.as({0, 0});
  gift.owner = 3000;
  gift.group = 3001;
  CHECK(root->make({1, "gift"}, gift).owner == 3000);
  CHECK(m->lookup("gift").group == 3001);
}

TEST_CASE("a generation is not taken of who does not know all stripe objects") {
  const auto space = make_name_space();
  name_space& m = *space;
  new_file f;
  f.size = 100;
  f.striping = {0, 2, 4096};
  const file_id id = m->create("f", f).id;
  m->commit(id);
  REQUIRE(set_size(*m.service, id, 10'000, {}, 1));
  CHECK_FALSE(m->set_generation(id, 2, 100));
  CHECK(m->find(id).generation == 1);
  CHECK(m->set_generation(id, 2, 10'000));
  CHECK(m->set_generation(id, 2, 100));  // another has said so
  CHECK(m->set_generation(id, 3, 5'000));
  CHECK(m->find(id).generation == 3);
}

TEST_CASE("attributes by id keep any bytes") {
  const auto space = make_name_space();
  name_space& m = *space;
  const entry f = m.make("f");
  const std::string bytes("a\0b\xff\0", 5);
  m->set_attribute(f.id, "k", "text");
  m->set_attribute(f.id, "k", bytes);
  m.open();
  CHECK(m->lookup(f.id).attributes.at("k") == bytes);
  CHECK(m->list("")[0].attributes.at("k") == bytes);
  m->remove_attribute(f.id, "k");
  CHECK(failure_code([&] { m->remove_attribute(f.id, "k"); }, "k") == ENODATA);
}

TEST_CASE("the attributes of an entry are counted in bytes, whatever they are as text") {
  const auto space = make_name_space();
  name_space& m = *space;
  for (const std::string character : {"\xF0\x9F\x98\x80", "\xC0\x80", "x"}) {
    CAPTURE(character);
    const entry f = m.make(character);
    std::string value;
    while (value.size() < 1 << 20) value += character;
    for (const char* key : {"a", "b", "c"}) m->set_attribute(f.id, key, value);
    CHECK(failure_code([&] { m->set_attribute(f.id, "d", value); }, "4 MiB") == EINVAL);
    CHECK(m->find(f.id).attributes.size() == 3);
  }
}
