// Stores that get further nodes and lose some, and files that get other stripe objects while they are read.
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/file.hpp"
#include "oocarray/store.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/service/commits.hpp"
#include "storage/service/file_move.hpp"
#include "storage/service/file_moves.hpp"
#include "storage/service/store_core.hpp"
#include "storage/service/unpublished_file.hpp"
#include "storage/store/node_drain.hpp"
#include "storage/store/store_check.hpp"
#include "storage/store/store_folders.hpp"
#include "support/random_seed.hpp"
#include "support/soon.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::testing;
namespace fs = std::filesystem;

namespace {

namespace calls = storage::calls;
using storage::open_mode;
using storage::opened_file;

/// A local store in folders of its own, which gets more of them.
struct growing_store {
  explicit growing_store(std::uint32_t nodes) {
    for (std::uint32_t i = 0; i < nodes; ++i) folders.push_back(folder / ("disk" + std::to_string(i)));
    (void)open();
  }
  std::string url() const {
    std::string text;
    for (const fs::path& f : folders) text += (text.empty() ? "local:" : ",") + f.string();
    return text;
  }
  store open() const { return store::open(url()); }
  void grow(std::uint32_t more) {
    std::vector<fs::path> fresh;
    for (std::uint32_t i = 0; i < more; ++i)
      fresh.push_back(folder / ("disk" + std::to_string(folders.size() + fresh.size())));
    storage::add_folders(folders, fresh);
    folders.insert(folders.end(), fresh.begin(), fresh.end());
  }

  const temporary_folder folder;
  std::vector<fs::path> folders;
};

std::vector<std::byte> random_bytes(std::mt19937_64& random, std::uint64_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::byte& b : all) b = static_cast<std::byte>(random());
  return all;
}

opened_file make(const store& s, const std::string& name, const std::vector<std::byte>& bytes, striping how,
                 const storage::node_list& nodes = {}) {
  storage::new_file f;
  f.size = bytes.size();
  f.striping = how;
  f.nodes = nodes;
  opened_file made = s.core()->create(name, f);
  throw_if(made.file->write(request::contiguous(0, f.size), bytes.data()));
  s.core()->sync(made);
  return made;
}

std::vector<std::byte> read(const opened_file& f) {
  std::vector<std::byte> bytes(f.meta.size);
  throw_if(f.file->read(request::contiguous(0, bytes.size()), bytes.data()));
  return bytes;
}

/// `name` gets stripe objects with this striping.
void move(const store& s, const std::string& name, striping how, const storage::node_list& nodes = {}) {
  auto& core = *s.core();
  const storage::entry e = core.metadata().lookup(name);
  const auto alone = core.claim_unused(e, "moved");
  REQUIRE(alone);
  const auto size = storage::lock_size(core, e.id);
  const opened_file fenced = storage::end_writes(core, core.metadata().find(e.id));
  const std::vector<std::byte> bytes = read(fenced);
  storage::new_file f;
  f.size = e.size;
  f.striping = how;
  f.nodes = nodes;
  const opened_file next = core.make(".next", f);
  throw_if(next.file->write(request::contiguous(0, f.size), bytes.data()));
  throw_if(next.file->sync());
  storage::take_over(core, next, fenced.meta);
}

storage::node_list nodes_of(const store& s, const std::string& name) {
  const storage::entry e = s.core()->metadata().lookup(name);
  return storage::nodes_of(e.striping, e.nodes, s.nodes());
}

void check_whole(const store& s) {
  const auto found = storage::check_store(*s.core(), "", [](std::uint64_t, std::uint64_t) {});
  for (const std::string& p : found.problems) FAIL_CHECK(p);
}

}  // namespace

TEST_CASE("files that begin at node 0 again stay where they are when a store gets further nodes") {
  std::mt19937_64 random(random_seed("wrapped"));
  growing_store g(3);
  const auto bytes = random_bytes(random, 100'000);
  const store before = g.open();
  const opened_file kept = make(before, "kept", bytes, {2, 3, 4096});
  g.grow(2);
  const store after = g.open();
  CHECK(after.nodes() == 5);
  CHECK(nodes_of(after, "kept") == storage::node_list{2, 0, 1});
  CHECK(read(after.core()->open("kept", open_mode::read)) == bytes);
  // Who opened the store before knows three nodes; what he makes is found by all, and what lies elsewhere is refused.
  make(before, "old", bytes, {1, 3, 4096});
  CHECK(read(after.core()->open("old", open_mode::read)) == bytes);
  CHECK(read(kept) == bytes);
  make(after, "new", bytes, {0, 5, 4096});
  CHECK_THROWS_WITH(before.core()->open("new", open_mode::read),
                    Catch::Contains("node 4") && Catch::Contains("open the store again"));
  make(after, "round", bytes, {4, 2, 4096});
  CHECK(nodes_of(after, "round") == storage::node_list{4, 0});
  g.grow(1);
  const store last = g.open();
  for (const char* name : {"kept", "old", "new", "round"})
    CHECK(read(last.core()->open(name, open_mode::read)) == bytes);
  check_whole(last);
}

TEST_CASE("a store is opened with all of its folders after it has got more, and adding them can be repeated") {
  growing_store g(2);
  const std::string few = g.url();
  // As one that was cut off before the store had the folder.
  CHECK_THROWS_AS(storage::add_folders(g.folders, {g.folder / "disk2", "/proc/none"}), error);
  CHECK(store::open(few).nodes() == 2);
  g.grow(1);
  CHECK(g.open().nodes() == 3);
  CHECK_THROWS_WITH(store::open(few), Catch::Contains("3 folders"));
  CHECK_THROWS_WITH(storage::add_folders(g.folders, {g.folders[1]}), Catch::Contains("not empty"));
}

TEST_CASE("of two that give a store another folder at the same time one is refused") {
  growing_store g(2);
  const auto is_first_folder = [&](const fs::directory_entry& fd) {
    std::error_code gone;
    return fs::read_symlink(fd, gone) == fs::canonical(g.folders[0]);
  };
  const auto openings = [&] { return std::ranges::count_if(fs::directory_iterator("/proc/self/fd"), is_first_folder); };
  const auto had = openings();
  std::future<void> adding[2];
  {
    const storage::file_descriptor kept(::open(g.folders[0].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(::flock(kept.get(), LOCK_EX) == 0);
    for (int i = 0; i < 2; ++i)
      adding[i] = std::async(std::launch::async, storage::add_folders, g.folders,
                             std::vector{g.folder / ("disk2" + std::string(1, static_cast<char>('a' + i)))});
    CHECK(soon([&] { return openings() == had + 3; }));  // both wait for the lock
  }
  int refused = 0;
  for (auto& a : adding) {
    try {
      a.get();
    } catch (const usage_error& e) {
      ++refused;
      CHECK_THAT(e.what(), Catch::Contains("3 folders"));
    }
  }
  CHECK(refused == 1);
  const bool first = fs::exists(g.folder / "disk2a");
  CHECK(fs::exists(g.folder / "disk2b") != first);
  g.folders.push_back(g.folder / (first ? "disk2a" : "disk2b"));
  CHECK(g.open().nodes() == 3);
}

TEST_CASE(
    "who has a file open for reading reads on when it gets other stripe objects, and then what is written there") {
  std::mt19937_64 random(random_seed("moved"));
  growing_store g(3);
  const auto bytes = random_bytes(random, 300'000);
  const store mover = g.open(), reading = g.open();  // each with open files of its own, as two processes
  make(mover, "a", bytes, {0, 2, 4096});
  const auto id = mover.core()->metadata().lookup("a").id;
  const opened_file first = reading.core()->open("a", open_mode::read);
  CHECK(read(first) == bytes);
  move(mover, "a", {1, 2, 8192});
  CHECK(read(first) == bytes);
  move(mover, "a", {0, 3, 4096});
  CHECK(read(first) == bytes);
  const auto later = random_bytes(random, bytes.size());
  const opened_file second = reading.core()->open("a", open_mode::read);
  {
    const opened_file w = mover.core()->open("a", open_mode::read_write);
    throw_if(w.file->write(request::contiguous(0, later.size()), later.data()));
  }
  CHECK(read(first) == later);
  CHECK(read(second) == later);
  // By its first number it is found as it is now.
  CHECK(read(reading.core()->open(id, open_mode::read)) == later);
  CHECK(mover.core()->metadata().dead().empty());
  check_whole(mover);
}

TEST_CASE("who reads an earlier commit of a file that gets other stripe objects is told that it is no longer kept") {
  std::mt19937_64 random(random_seed("moved commits"));
  growing_store g(2);
  const store mover = g.open(), reading = g.open();
  auto& core = *mover.core();
  storage::new_file f;
  f.size = 300'000;
  f.striping = {0, 1, 4096};
  f.array.extents = {f.size};
  f.commits = true;
  opened_file w = core.create("a", f);
  const auto write_and_commit = [&](const std::vector<std::byte>& bytes) {
    throw_if(w.file->write(request::contiguous(0, f.size), bytes.data()));
    w = storage::commit(core, {&w, 1}, {}).front();
  };
  const auto first = random_bytes(random, f.size), second = random_bytes(random, f.size);
  write_and_commit(first);
  const opened_file of_first = reading.core()->open("a", open_mode::read);
  CHECK(read(of_first) == first);
  write_and_commit(second);
  const opened_file of_second = reading.core()->open("a", open_mode::read);
  {
    const storage::file_move move(core, core.metadata().lookup("a"), "moved");
    f.striping.sn = 1;
    f.commit = move.from().meta.commit->number - 1;
    storage::unpublished_file made(core, "a", storage::passing_path("a"), f, storage::unpublished_file::named::at_last);
    throw_if(made.file.file->write(request::contiguous(0, f.size), read(move.from()).data()));
    made.take_over(move.from().meta);
  }
  CHECK(read(of_second) == second);
  std::vector<std::byte> b(f.size);
  const failure gone = of_first.file->read(request::contiguous(0, b.size()), b.data());
  CHECK(gone.code == errc::conflict);
  CHECK_THAT(gone.what, Catch::Contains("commit 1 is no longer kept"));
  CHECK(read(mover.core()->open("a", open_mode::read)) == second);
}

TEST_CASE("stripe objects that a mover left behind are gone before the file is written") {
  std::mt19937_64 random(random_seed("left behind"));
  growing_store g(2);
  const auto bytes = random_bytes(random, 100'000);
  const store s = g.open(), reading = g.open();
  make(s, "a", bytes, {0, 1, 4096});
  const opened_file reader = reading.core()->open("a", open_mode::read);
  {
    // A mover that dies when the file has its new place.
    const storage::entry e = s.core()->metadata().lookup("a");
    storage::new_file f;
    f.size = e.size;
    f.striping = {1, 1, 4096};
    const opened_file next = s.core()->make(".next", f);
    throw_if(next.file->write(request::contiguous(0, f.size), bytes.data()));
    throw_if(next.file->sync());
    CHECK(s.core()->metadata().ask(calls::take_over{next.meta.id, e.id, e.generation}).id == e.id);
  }
  CHECK(read(reader) == bytes);
  CHECK(s.core()->metadata().find(reader.meta.id).left_behind == std::vector<storage::file_id>{reader.meta.id});
  const auto later = random_bytes(random, bytes.size());
  const opened_file w = s.core()->open("a", open_mode::read_write);
  throw_if(w.file->write(request::contiguous(0, later.size()), later.data()));
  CHECK(read(reader) == later);
  CHECK(s.core()->metadata().dead().empty());
}

TEST_CASE("names, attributes and times of a file stay when another takes its place") {
  growing_store g(2);
  const store s = g.open();
  auto& names = s.core()->metadata();
  make(s, "a", std::vector<std::byte>(5000), {0, 1, 4096});
  names.set_attribute("a", "unit", "K");
  names.mkdir("below", 0755, false);
  const storage::entry before = names.lookup("a");
  names.link(before.id, "below/b");
  s.core()->set_mode("a", 0640);
  move(s, "a", {1, 1, 4096});
  const storage::entry after = names.lookup("a");
  CHECK(after.id != before.id);
  CHECK(names.lookup("below/b").id == after.id);
  CHECK(after.names == 2);
  CHECK(after.mode == 0640);
  CHECK(after.created_ns == before.created_ns);
  CHECK(after.attributes == before.attributes);
  CHECK(names.lookup(before.id).id == after.id);
  CHECK(lasting_number(after) == before.id);
  CHECK(lasting_number(names.list_part("/", "").entries.at(0)) == before.id);
  CHECK_THROWS_AS(names.lookup(".next"), error);
  s.core()->remove("below/b");
  s.core()->remove("a");
  CHECK_THROWS_AS(names.find(before.id), error);
}

TEST_CASE("a file takes the place of a file of the same kind only") {
  growing_store g(2);
  const store s = g.open();
  auto& names = s.core()->metadata();
  const auto a = make(s, "a", std::vector<std::byte>(5000), {0, 1, 4096}).meta.id;
  const auto longer = make(s, "longer", std::vector<std::byte>(5001), {0, 1, 4096}).meta.id;
  names.mkdir("d", 0755, false);
  CHECK_THROWS_WITH(names.ask(calls::take_over{longer, a, 2}), Catch::Contains("another size"));
  CHECK_THROWS_AS(names.ask(calls::take_over{a, a, 2}), usage_error);
  CHECK_THROWS_AS(names.ask(calls::take_over{a, names.lookup("d").id, 1}), usage_error);
  CHECK_THROWS_AS(names.ask(calls::take_over{names.lookup("d").id, a, 2}), usage_error);
  CHECK(names.lookup("a").id == a);
}

TEST_CASE("a node that is being emptied gets no new files") {
  growing_store g(3);
  const store s = g.open();
  storage::set_drained(*s.core(), 1, true);
  const std::vector<std::byte> bytes(50'000, std::byte{7});
  make(s, "all", bytes, {0, 0, 4096});
  CHECK(nodes_of(s, "all") == storage::node_list{0, 2});
  make(s, "some", bytes, {1, 2, 4096});
  CHECK(nodes_of(s, "some") == storage::node_list{2});
  CHECK_THROWS_WITH(make(s, "one", bytes, {1, 1, 4096}), Catch::Contains("being emptied (1)"));
  storage::set_drained(*s.core(), 0, true);
  CHECK_THROWS_WITH(storage::set_drained(*s.core(), 2, true), Catch::Contains("last one"));
  CHECK_THROWS_WITH(storage::set_drained(*s.core(), 3, true), Catch::Contains("nodes 0 to 2"));
  CHECK(storage::drained_nodes(*s.core()) == storage::node_list{0, 1});
  storage::set_drained(*s.core(), 0, false);
  storage::set_drained(*s.core(), 1, false);
  CHECK(s.core()->metadata().lookup("").attributes.empty());
  make(s, "three", bytes, {0, 0, 4096});
  CHECK(nodes_of(s, "three") == storage::node_list{0, 1, 2});
  for (const char* name : {"all", "some", "three"}) CHECK(read(s.core()->open(name, open_mode::read)) == bytes);
  CHECK_THROWS_AS(s.core()->metadata().set_attribute("", "ooc.drained", "two"), error);
}

TEST_CASE("a node is not retired under a file that is being made there") {
  growing_store g(3);
  const store s = g.open(), other = g.open();
  auto& core = *s.core();
  storage::new_file f;
  f.size = 50'000;
  f.striping = {0, 3, 4096};
  // Its maker has come no further when the node is to be emptied.
  const opened_file made = other.core()->opened(other.core()->metadata().create("a", f));
  storage::set_drained(core, 1, true);
  CHECK(storage::objects_on(core, 1) == 0);
  CHECK_THROWS_WITH(storage::retire(core, 1), Catch::Contains("is being made") && Catch::Contains("ooc drain 1"));
  CHECK(storage::retired_nodes(core).empty());
  CHECK(storage::retired_folders(g.folders).empty());
  throw_if(made.file->create_objects());
  other.core()->commit(made);
  CHECK_THROWS_AS(storage::retire(core, 1), usage_error);
  move(s, "a", {0, 2, 4096}, {0, 2});
  CHECK(storage::objects_on(core, 1) == 0);
  CHECK(storage::retire(core, 1));
  CHECK(storage::retired_folders(g.folders) == std::vector<std::size_t>{1});
  CHECK(read(core.open("a", open_mode::read)) == std::vector<std::byte>(f.size));
}

TEST_CASE("a retirement that was cut off is completed when the node is emptied again") {
  growing_store g(2);
  const store s = g.open();
  storage::set_drained(*s.core(), 1, true);
  s.core()->metadata().set_attribute("", storage::retired_key, "1");
  CHECK_THROWS_WITH(storage::set_drained(*s.core(), 1, true), Catch::Contains("retired"));
  CHECK(storage::retired_folders(g.folders) == std::vector<std::size_t>{1});
}

TEST_CASE("of 20 random stores that get nodes and lose others, every byte is read") {
  std::mt19937_64 random(random_seed("grown and emptied"));
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    growing_store g(static_cast<std::uint32_t>(between(random, 1, 4)));
    std::map<std::string, std::vector<std::byte>> files;
    const auto make_some = [&](const store& s) {
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t nodes = s.nodes();
        const std::string name = "f" + std::to_string(files.size());
        files[name] = random_bytes(random, between(random, 1, 200'000));
        const auto nn = static_cast<std::uint32_t>(between(random, 0, nodes));
        const auto sn = static_cast<std::uint32_t>(between(random, 0, nodes - 1));
        try {
          make(s, name, files[name], {sn, nn, std::uint64_t{4096} << between(random, 0, 3)});
        } catch (const usage_error&) {  // all of its nodes are being emptied
          files.erase(name);
          if (storage::drained_nodes(*s.core()).empty()) throw;
        }
      }
    };
    make_some(g.open());
    g.grow(static_cast<std::uint32_t>(between(random, 1, 2)));
    store s = g.open();
    make_some(s);
    const auto gone = static_cast<std::uint32_t>(between(random, 0, s.nodes() - 1));
    storage::set_drained(*s.core(), gone, true);
    make_some(s);
    const storage::node_list drained = storage::drained_nodes(*s.core());
    std::map<std::uint32_t, std::uint64_t> moved;
    for (const auto& [name, bytes] : files) {
      const storage::entry e = s.core()->metadata().lookup(name);
      if (!storage::lies_on(*s.core(), e, gone)) continue;
      const auto p = storage::place_without(*s.core(), e, drained, moved);
      move(s, name, p.striping, p.nodes);
    }
    CHECK(storage::objects_on(*s.core(), gone) == 0);
    if (storage::retire(*s.core(), gone)) {
      fs::remove_all(g.folders[gone]);
      s = g.open();
    }
    make_some(s);
    if (between(random, 0, 1) != 0) {
      g.grow(1);
      s = g.open();
      make_some(s);
    }
    for (const auto& [name, bytes] : files) {
      CAPTURE(name);
      CHECK(read(s.core()->open(name, open_mode::read)) == bytes);
    }
    check_whole(s);
  }
}

TEST_CASE("who writes a file with file calls while it gets other stripe objects loses nothing") {
  std::mt19937_64 random(random_seed("fenced"));
  growing_store g(3);
  const store mover = g.open(), writing = g.open();
  auto bytes = random_bytes(random, 200'000);
  make(mover, "a", bytes, {0, 2, 4096});
  file f = file::open(writing, "a", file_access::read_write);
  f.write_at(10, std::span(bytes).subspan(10, 50));
  move(mover, "a", {1, 2, 8192});
  for (std::size_t i = 5000; i < 90'000; ++i) bytes[i] = static_cast<std::byte>(random());
  f.write_at(5000, std::span(bytes).subspan(5000, 85'000));
  CHECK(read(mover.core()->open("a", open_mode::read)) == bytes);
  move(mover, "a", {0, 3, 4096});
  const auto tail = random_bytes(random, 70'000);
  f.write_at(bytes.size(), tail);
  bytes.insert(bytes.end(), tail.begin(), tail.end());
  CHECK(read(mover.core()->open("a", open_mode::read)) == bytes);
  f.sync();
  check_whole(mover);
}

TEST_CASE("writes that were refused for a move that came to nothing go on where the file is") {
  std::mt19937_64 random(random_seed("given up"));
  growing_store g(2);
  const store mover = g.open(), writing = g.open();
  auto bytes = random_bytes(random, 100'000);
  make(mover, "a", bytes, {0, 2, 4096});
  file f = file::open(writing, "a", file_access::read_write);
  {
    const auto id = mover.core()->metadata().lookup("a").id;
    const auto size = storage::lock_size(*mover.core(), id);
    (void)storage::end_writes(*mover.core(), mover.core()->metadata().find(id));
  }
  bytes[77] = std::byte{1};
  f.write_at(77, std::span(bytes).subspan(77, 1));
  f.write_at(78, std::span(bytes).subspan(78, 9000));
  CHECK(read(mover.core()->open("a", open_mode::read)) == bytes);
}

TEST_CASE("a file that is opened for writing while it is copied stays where it is") {
  std::mt19937_64 random(random_seed("opened meanwhile"));
  growing_store g(2);
  const store s = g.open(), other = g.open();
  auto bytes = random_bytes(random, 50'000);
  make(s, "a", bytes, {0, 1, 4096});
  auto& core = *s.core();
  const storage::entry e = core.metadata().lookup("a");
  {
    const auto size = storage::lock_size(core, e.id);
    const opened_file fenced = storage::end_writes(core, core.metadata().find(e.id));
    storage::new_file f;
    f.size = e.size;
    f.striping = {1, 1, 4096};
    const opened_file next = core.make(".next", f);
    file w = file::open(other, "a", file_access::read_write);
    bytes[1] = ~bytes[1];
    w.write_at(1, std::span(bytes).subspan(1, 1));
    CHECK_THROWS_WITH(storage::take_over(core, next, fenced.meta), Catch::Contains("opened for writing meanwhile"));
    core.abandon(next);
  }
  CHECK(core.metadata().lookup("a").id == e.id);
  CHECK(read(core.open("a", open_mode::read)) == bytes);
}
