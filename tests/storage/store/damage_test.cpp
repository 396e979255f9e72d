// Damage to checksum files, stripe objects and the database: each is an error that names file, node
// and cause, and `verify` says the same.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <utility>

#include "oocarray/file.hpp"
#include "oocarray/store.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/file_move.hpp"
#include "storage/service/store_core.hpp"
#include "storage/service/unpublished_file.hpp"
#include "storage/store/store_check.hpp"
#include "support/node_fixture.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr std::uint64_t damaged_size = 64 * chunk_size;

// A local store on two nodes with files "a" and "b", filled with 'a' and 'b' but for their second
// halves, which were never written.
struct damaged_store {
  damaged_store() {
    for (const char* name : {"a", "b"}) {
      file f = file::create(open(), name, {.size = damaged_size, .striping = {0, 2, chunk_size}});
      f.write_at(0, bytes(damaged_size / 2, std::byte(*name)));
      f.sync();
      ids.push_back(open().core()->metadata().lookup(name).id);
    }
  }

  store open() const { return store::open(url()); }
  std::string url() const { return "local:" + node(0).string() + "," + node(1).string(); }
  fs::path node(int n) const { return folder.path() / std::to_string(n); }
  fs::path sums(int n, int file = 0) const { return node_folder(node(n)).sums(ids.at(file)); }
  fs::path data(int n, int file = 0) const { return node_folder(node(n)).data(ids.at(file)); }

  // The message of reading all of "a" says; empty: nothing.
  std::string read_fault() const {
    try {
      bytes b(damaged_size);
      file::open(open(), "a", file_access::read_only).read_at(0, b);
    } catch (const integrity_error& e) {
      return e.what();
    }
    return {};
  }

  // Reading and verifying both name the file, the node and the cause.
  void check_found(int n, const std::string& cause) const {
    const std::string fault = read_fault();
    // Where both nodes are hit, reading names the first that answered.
    CHECK_THAT(fault,
               Catch::Contains("'a'") && Catch::Contains("node " + folder.path().string()) && Catch::Contains(cause));
    const store s = open();
    const check_result r = check_store(*s.core(), "", [](std::uint64_t, std::uint64_t) {});
    CHECK_FALSE(r.clean());
    bool named = false;
    for (const auto& d : r.damaged)
      named |= d.file == "a" && d.node == static_cast<std::uint32_t>(n) && d.node_name == node(n).string();
    CHECK(named);
    bool said = false;
    for (const std::string& p : r.problems)
      said |= p.find("'a' on node " + std::to_string(n) + " (" + node(n).string()) == 0 &&
              p.find(cause) != std::string::npos;
    INFO((r.problems.empty() ? "no problem" : r.problems[0]));
    CHECK(said);
  }

  void overwrite(const fs::path& path, std::uint64_t at, const std::string& text) const {
    std::fstream s(path, std::ios::in | std::ios::out | std::ios::binary);
    s.seekp(static_cast<std::streamoff>(at));
    s << text;
  }

  void exchange(const fs::path& x, const fs::path& y) const {
    fs::rename(x, folder.path() / "passing");
    fs::rename(y, x);
    fs::rename(folder.path() / "passing", y);
  }

  temporary_folder folder;
  std::vector<file_id> ids;
};

}  // namespace

TEST_CASE("a sound store reads and verifies clean, before and after it is opened for writing again") {
  const damaged_store s;
  CHECK(s.read_fault().empty());
  file::open(s.open(), "a", file_access::read_write).write_at(5, bytes(10, std::byte{'a'}));
  CHECK(s.read_fault().empty());
  CHECK(check_store(*s.open().core(), "", [](std::uint64_t, std::uint64_t) {}).clean());
}

TEST_CASE("a file that gets other stripe objects while a store is verified is verified where it lies now") {
  const std::uint32_t before = GENERATE(4, 2), after = 6 - before;
  CAPTURE(before, after);
  const temporary_folder folder;
  const auto node = [&](std::uint32_t n) { return folder.path() / std::to_string(n); };
  std::string url = "local:";
  for (std::uint32_t n = 0; n < 4; ++n) url += (n == 0 ? "" : ",") + node(n).string();
  const store st = store::open(url);
  for (const char* name : {"a", "b"})
    file::create(st, name, {.size = damaged_size, .striping = {0, before, chunk_size}})
        .write_at(0, bytes(damaged_size, std::byte{'x'}));
  store_core& core = *st.core();
  // After "a" was read, and "b" was listed.
  bool moved = false;
  const check_result r = check_store(core, "", [&](std::uint64_t done, std::uint64_t) {
    if (done == 0 || std::exchange(moved, true)) return;
    const file_move move(core, core.metadata().lookup("b"), "moved");
    new_file f;
    f.size = damaged_size;
    f.striping = {0, after, chunk_size};
    unpublished_file made(core, "b", passing_path("b"), f, unpublished_file::named::at_last);
    throw_if(made.file.file->write(request::contiguous(0, damaged_size), bytes(damaged_size, std::byte{'x'}).data()));
    made.take_over(move.from().meta);
    flip_byte(node_folder(node(after - 1)).data(made.file.meta.id), 0);
  });
  REQUIRE(moved);
  CHECK(r.files == 2);
  CHECK(r.objects == before + after);
  CHECK(r.chunks == 2 * damaged_size / chunk_size);
  CHECK(r.corrupt == 1);
  REQUIRE(r.damaged.size() == 1);
  CHECK(r.damaged[0].file == "b");
  CHECK(r.damaged[0].node == after - 1);
}

TEST_CASE("what a file had where it has been moved away from while it was verified is no damage of it") {
  const damaged_store s;
  flip_byte(s.data(0, 1), 0);  // of "b", whose bytes the mover has from elsewhere
  const store st = s.open();
  store_core& core = *st.core();
  bool moved = false;
  const check_result r = check_store(core, "b", [&](std::uint64_t done, std::uint64_t) {
    if (done == 0 || std::exchange(moved, true)) return;
    const file_move move(core, core.metadata().lookup("b"), "moved");
    new_file f;
    f.size = damaged_size;
    f.striping = {1, 1, chunk_size};
    unpublished_file made(core, "b", passing_path("b"), f, unpublished_file::named::at_last);
    throw_if(made.file.file->write(request::contiguous(0, damaged_size), bytes(damaged_size, std::byte{'b'}).data()));
    made.take_over(move.from().meta);
  });
  REQUIRE(moved);
  CHECK(r.clean());
  CHECK(r.files == 1);
  CHECK(r.objects == 1);
}

TEST_CASE("a truncated checksum file is lost data, not zeros") {
  const damaged_store s;
  fs::resize_file(s.sums(1), 4096 + 5 * 8);
  s.check_found(1, "are lost");
}

TEST_CASE("a checksum file that ends after its header is lost data, not zeros") {
  const damaged_store s;
  fs::resize_file(s.sums(0), 4096);
  s.check_found(0, "are lost");
}

TEST_CASE("an empty or zeroed checksum file is an error that says so") {
  const damaged_store s;
  const auto bytes_before = fs::file_size(s.sums(1));
  fs::resize_file(s.sums(1), 0);
  s.check_found(1, "header");
  fs::resize_file(s.sums(1), bytes_before);
  s.check_found(1, "header");
}

TEST_CASE("a zeroed part of a checksum file is lost data, and a whole overwrite mends it") {
  const damaged_store s;
  s.overwrite(s.sums(0), 4096 + 3 * 8, std::string(2 * 8, '\0'));
  s.check_found(0, "are lost");
  const check_result r = check_store(*s.open().core(), "a", [](std::uint64_t, std::uint64_t) {});
  CHECK(r.lost == 2);
  CHECK(r.corrupt == 0);
  file f = file::open(s.open(), "a", file_access::read_write);
  // Chunk 3 of node 0 is chunk 6 of the file.
  CHECK_THROWS_AS(f.write_at(6 * chunk_size + 1, bytes(10)), integrity_error);
  f.write_at(6 * chunk_size, bytes(chunk_size));
  f.write_at(8 * chunk_size, bytes(chunk_size));
  CHECK(s.read_fault().empty());
}

TEST_CASE("zeroed marks and entries of chunks that were never written are lost too") {
  const damaged_store s;
  fs::resize_file(s.sums(0), 512);
  s.check_found(0, "are lost");
}

TEST_CASE("stripe objects exchanged between two nodes are noticed") {
  const damaged_store s;
  SECTION("both files of each") {
    s.exchange(s.sums(0), s.sums(1));
    s.exchange(s.data(0), s.data(1));
  }
  SECTION("the checksum files only") { s.exchange(s.sums(0), s.sums(1)); }
  s.check_found(0, "two nodes were exchanged");
  s.check_found(1, "two nodes were exchanged");
}

TEST_CASE("stripe objects exchanged between two files are noticed") {
  const damaged_store s;
  s.exchange(s.sums(1, 0), s.sums(1, 1));
  s.exchange(s.data(1, 0), s.data(1, 1));
  s.check_found(1, "that of file number " + std::to_string(s.ids[1]));
}

TEST_CASE("entries of another file or place under a right header are corrupt") {
  const damaged_store s;
  std::string entries(8 * 16, '\0');
  std::ifstream other(s.sums(1, 1), std::ios::binary);
  other.seekg(4096);
  other.read(entries.data(), static_cast<std::streamsize>(entries.size()));
  // Never-written ones of the other file, over written ones of this.
  other.seekg(4096 + 16 * 8);
  std::string never(8, '\0');
  other.read(never.data(), 8);
  s.overwrite(s.sums(1), 4096, entries);
  s.check_found(1, "are damaged");
  s.overwrite(s.sums(1), 4096, never);
  s.check_found(1, "are damaged");
}

TEST_CASE("an old copy of a stripe object is noticed once the file was opened for writing again") {
  const damaged_store s;
  for (const auto& p : {s.sums(1), s.data(1)}) fs::copy_file(p, p.string() + ".old");
  file::open(s.open(), "a", file_access::read_write).write_at(0, bytes(damaged_size, std::byte{'n'}));
  for (const auto& p : {s.sums(1), s.data(1)}) fs::rename(p.string() + ".old", p);
  s.check_found(1, "old copy");
  CHECK_THROWS_AS(file::open(s.open(), "a", file_access::read_write), integrity_error);
}

TEST_CASE("an old copy of the database is noticed when a file is opened for writing") {
  const damaged_store s;
  const fs::path database = s.node(0) / "metadata.sqlite";
  {
    sqlite::connection c(database, sqlite::open_as::existing);
    c.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  fs::copy_file(database, s.folder.path() / "old");
  for (int i = 0; i < 3; ++i) file::open(s.open(), "a", file_access::read_write);
  fs::rename(s.folder.path() / "old", database);
  fs::remove(database.string() + "-wal");
  fs::remove(database.string() + "-shm");
  CHECK_THROWS_WITH(file::open(s.open(), "a", file_access::read_write), Catch::Contains("database is an old copy"));
}

TEST_CASE("a striping or fill value that was changed in the database is noticed") {
  const damaged_store s;
  const auto change = [&](const char* sql) {
    sqlite::connection c(s.node(0) / "metadata.sqlite", sqlite::open_as::existing);
    c.execute(sql);
  };
  change("UPDATE entry SET sf = 8192 WHERE name = 'a'");
  s.check_found(0, "another striping");
  change("UPDATE entry SET sf = 4096, sn = 1 WHERE name = 'a'");
  s.check_found(0, "exchanged");
  change("UPDATE entry SET sn = 0, fill = x'41' WHERE name = 'a'");
  s.check_found(0, "another fill value");
}

TEST_CASE("an opening for writing that died at any step leaves the file usable") {
  const damaged_store s;
  const store st = s.open();
  const entry e = st.core()->metadata().lookup("a");
  auto shape = std::make_shared<file_shape>();
  shape->id = e.id;
  shape->striping = e.striping;
  shape->size = e.size;
  shape->generation = e.generation + 1;
  REQUIRE_FALSE(advance(*st.core()->nodes()[0], shape, 0));  // and died
  CHECK(s.read_fault().empty());
  { file::open(s.open(), "a", file_access::read_write); }
  CHECK(s.read_fault().empty());
  const entry now = st.core()->metadata().lookup("a");
  CHECK(now.generation == e.generation + 1);
}

TEST_CASE("openings for writing at the same time, growth among them, all succeed") {
  const damaged_store s;
  { file::create(s.open(), "grows", {.size = 1, .striping = {0, 2, chunk_size}}); }
  std::vector<std::thread> all;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&, t] {
      try {
        const store st = s.open();
        for (int i = 0; i < 5; ++i) {
          file f = file::open(st, "grows", file_access::read_write);
          f.write_at(static_cast<std::uint64_t>(i * 4 + t) * chunk_size, bytes(chunk_size, std::byte{'g'}));
          if (t == 0) f.truncate(i % 2 == 0 ? 100 * chunk_size : 90 * chunk_size);
        }
      } catch (const error& e) {
        ++failures;
        WARN(e.what());
      }
    });
  for (auto& t : all) t.join();
  CHECK(failures == 0);
  CHECK(check_store(*s.open().core(), "grows", [](std::uint64_t, std::uint64_t) {}).clean());
}

TEST_CASE("a mark of an algorithm in progress and an unknown feature are refused by name") {
  const damaged_store s;
  const auto change = [&](const char* sql) {
    sqlite::connection c(s.node(0) / "metadata.sqlite", sqlite::open_as::existing);
    c.execute(sql);
  };
  change("UPDATE entry SET in_progress = 'transpose by ooc 9' WHERE name = 'a'");
  CHECK_THROWS_WITH(file::open(s.open(), "a"), Catch::Contains("transpose by ooc 9"));
  change("UPDATE store SET value = 'links,epochs' WHERE key = 'required_features'");
  CHECK_THROWS_WITH(s.open(), Catch::Contains("epochs"));
}

TEST_CASE(
    "of a file of another boot that was never synced, what went with the power reads as never written, removed "
    "objects do not") {
  const temporary_folder folder;
  const auto node = [&](int n) { return folder.path() / std::to_string(n); };
  const std::string url = "local:" + node(0).string() + "," + node(1).string();
  file::create(store::open(url), "a", {.size = 2 * chunk_size, .striping = {0, 2, chunk_size}})
      .write_at(0, bytes(2 * chunk_size, std::byte{'a'}));
  const auto e = store::open(url).core()->metadata().lookup("a");
  REQUIRE(e.generation == 1);
  const auto is_there = [&](int n) { return fs::exists(node_folder(node(n)).sums(e.id)); };
  for (const int n : {0, 1}) change_noted_boot(node(n));

  const store reading = store::open(url);
  const file f = file::open(reading, "a", file_access::read_only);
  bytes back(2 * chunk_size);
  const bool removed = GENERATE(false, true);
  CAPTURE(removed);
  if (removed) {
    store::open(url).remove("a");
    REQUIRE(soon([&] { return !is_there(0) && !is_there(1); }));
    CHECK_THROWS_WITH(f.read_at(0, back), Catch::Contains("'a'"));
    CHECK_FALSE(is_there(0));
    CHECK_FALSE(is_there(1));
  } else {
    for (const fs::path& file : node_folder(node(1)).files(e.id)) fs::remove(file);
    f.read_at(0, back);
    CHECK(back[0] == std::byte{'a'});
    CHECK(back[chunk_size] == std::byte{});
    CHECK(is_there(1));
  }
}
