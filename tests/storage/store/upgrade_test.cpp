// From version 1 of the disk format to version 2, killed at any step.
#include <signal.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "oocarray/file.hpp"
#include "oocarray/store.hpp"
#include "storage/base/whole_transfer.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/node/undo_journal.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/store_check.hpp"
#include "storage/store/store_upgrade.hpp"
#include "support/node_fixture.hpp"
#include "support/random_seed.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {


// The header of version 1, as its document had it.
struct header_1 {
  char magic[8] = {'O', 'O', 'C', 'S', 'U', 'M', '1', '\0'};
  std::uint32_t version = 1;
  std::uint32_t chunk_bytes = 4096;
  std::uint64_t id = 0;
  boot_id unsynced{};
  std::uint64_t syncs = 0;
  std::uint32_t flags = 0;
  std::uint32_t crc = 0;
  std::uint8_t reserved[4040] = {};
};
static_assert(sizeof(header_1) == 4096);

// Writes the checksums of a share as version 1 had them.
void downgrade_share(const fs::path& folder, file_id id) {
  std::vector<checksum_entry> entries;
  checksum_header h;
  {
    const checksum_file sums = open_sums(folder, id);
    REQUIRE(sums.read_header(h) == 0);
    entries.resize(h.chunks);
    REQUIRE(sums.read(0, entries) == 0);
  }
  header_1 old;
  old.id = id;
  old.unsynced = h.unsynced;
  old.syncs = h.syncs;
  old.flags = h.flags;
  old.crc = crc32c(&old, sizeof old);
  std::ofstream out(node_folder(folder).sums(id), std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(&old), sizeof old);
  out.write(reinterpret_cast<const char*>(entries.data()),
            static_cast<std::streamsize>(entries.size() * sizeof(checksum_entry)));
  REQUIRE(out.flush());
}

void downgrade_database(const fs::path& file) {
  sqlite::connection c(file, sqlite::open_as::existing);
  for (const char* column : {"generation", "in_progress", "target", "device", "data_changed_ns",
                             "data_read_ns", "reserved", "codec", "copies", "stripe_map"})
    c.execute(std::string("ALTER TABLE entry DROP COLUMN ") + column);
  c.execute("ALTER TABLE attribute DROP COLUMN binary");
  c.execute("DROP TABLE link");
  c.execute("DELETE FROM store WHERE key = 'required_features'");
  c.execute("PRAGMA user_version = 1");
}

void set_version(const fs::path& file, const std::string& version) {
  std::ifstream in(file);
  std::string magic, old, rest;
  in >> magic >> old;
  std::getline(in, rest, '\0');
  in.close();
  std::ofstream(file) << magic << " " << version << rest;
}

// A version 1 store on three nodes with files of all kinds.
struct old_store {
  old_store() {
    const store s = store::open(url());
    std::mt19937_64 random(5);
    for (int i = 0; i < 6; ++i) {
      const std::string name = "f" + std::to_string(i);
      const std::uint64_t size = (1 + static_cast<std::uint64_t>(i) * 37) * 11000;
      file f = file::create(s, name,
                            {.size = size,
                             .striping = {static_cast<std::uint32_t>(i % 3),
                                          static_cast<std::uint32_t>(1 + i % 3), 8192},
                             .sparse = i % 2 == 0,
                             .fill = {std::byte{'f'}, std::byte{'i'}}});
      bytes b(size / 3);
      for (std::byte& x : b) x = static_cast<std::byte>(random());
      f.write_at(size / 4, b);
      if (i != 3) f.sync();
      bytes all(size);
      f.read_at(0, all);
      contents.push_back(all);
      if (i == 4) f.write_at(size / 2, bytes(100, std::byte{'?'}));  // undone by the loss of power
      ids.push_back(s.core()->metadata().lookup(name).id);
    }
  }

  void downgrade() {
    for (int n = 0; n < 3; ++n) {
      std::vector<file_id> there;
      REQUIRE(node_folder(node(n)).list(there) == 0);
      for (const file_id id : there) {
        if (id == ids[4]) lose_power(n, id);
        downgrade_share(node(n), id);
      }
      set_version(node(n) / "oocarray-node", "1");
    }
    downgrade_database(node(0) / "metadata.sqlite");
  }

  // The stripe object's last writes are of another boot, and its undo log is as version 1 wrote it.
  void lose_power(int n, file_id id) {
    checksum_header h;
    REQUIRE(open_sums(node(n), id).read_header(h) == 0);
    if (h.unsynced == boot_id{}) return;
    change_boot(node(n), id);
    const fs::path path = node_folder(node(n)).undo(id);
    const file_descriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    undo_record r;
    for (std::uint64_t at = 0; at + sizeof r <= fs::file_size(path); at += sizeof r) {
      REQUIRE(read_whole(fd.get(), &r, sizeof r, at) == 0);
      r.crc = 0;
      r.crc = crc32c(&r, sizeof r);
      REQUIRE(write_whole(fd.get(), &r, sizeof r, at) == 0);
    }
  }

  void check_contents() const {
    const store s = store::open(url(), {.create = false});
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const file f = file::open(s, "f" + std::to_string(i), file_access::read_only);
      bytes b(f.size());
      f.read_at(0, b);
      INFO(i);
      CHECK((b == contents[i]));
    }
    const check_result r = check_store(*s.core(), "", [](std::uint64_t, std::uint64_t) {});
    INFO((r.problems.empty() ? "" : r.problems[0]));
    CHECK(r.clean());
  }

  std::vector<fs::path> folders() const { return {node(0), node(1), node(2)}; }
  fs::path node(int n) const { return folder.path() / std::to_string(n); }
  std::string url() const {
    return "local:" + node(0).string() + "," + node(1).string() + "," + node(2).string();
  }

  temporary_folder folder;
  std::vector<file_id> ids;
  std::vector<bytes> contents;
};

void no_step(const std::string&) {}

}  // namespace

TEST_CASE("a store of version 1 is refused by name of the command that converts it") {
  old_store s;
  s.downgrade();
  CHECK_THROWS_WITH(store::open(s.url()), Catch::Contains("version 1") &&
                                              Catch::Contains("ooc upgrade"));
}

TEST_CASE("a store of version 1 is converted in place, once") {
  old_store s;
  s.downgrade();
  const upgrade_result r = upgrade_store(s.folders(), {}, no_step);
  CHECK(r.problems.empty());
  CHECK(r.objects > 6);
  s.check_contents();
  CHECK(upgrade_store(s.folders(), {}, no_step).objects == 0);
  {
    const store st = store::open(s.url());
    file f = file::open(st, "f5", file_access::read_write);
    f.write_at(7, bytes(9000, std::byte{'n'}));
    f.truncate(f.size() + 50000);
    CHECK(check_store(*st.core(), "", [](std::uint64_t, std::uint64_t) {}).clean());
  }
}

TEST_CASE("an upgrade that is killed at any step goes on where it was") {
  std::mt19937_64 random(random_seed("upgrade"));
  const unsigned least_kills = std::getenv("OOC_TEST_LONG") ? 200 : 20;
  unsigned kills = 0;
  for (int round = 0; kills < least_kills; ++round) {
    old_store s;
    s.downgrade();
    const unsigned before = kills;
    for (;;) {
      // Between steps, or some microseconds into one.
      const auto after = between(random, 1, 30);
      const auto delay = round % 2 == 0 ? 0 : between(random, 0, 3000);
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        std::uint64_t steps = 0;
        upgrade_store(s.folders(), {}, [&](const std::string&) {
          if (++steps != after) return;
          if (delay == 0) ::raise(SIGKILL);
          struct sigevent how {};
          how.sigev_notify = SIGEV_SIGNAL;
          how.sigev_signo = SIGKILL;
          timer_t timer;
          const itimerspec when{{0, 0}, {0, static_cast<long>(delay) * 1000}};
          ::timer_create(CLOCK_MONOTONIC, &how, &timer);
          ::timer_settime(timer, 0, &when, nullptr);
        });
        ::_exit(0);
      }
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      if (WIFEXITED(status)) {
        REQUIRE(WEXITSTATUS(status) == 0);
        break;
      }
      ++kills;
    }
    INFO("killed " << kills - before << " times");
    s.check_contents();
    REQUIRE(round < 1000);  // else some moments are never met
  }
  CHECK(kills >= least_kills);
}

TEST_CASE("a store that is in use is not upgraded") {
  old_store s;
  s.downgrade();
  sqlite::connection user(s.node(0) / "metadata.sqlite", sqlite::open_as::existing);
  user.execute("SELECT count(*) FROM entry");
  CHECK_THROWS_WITH(upgrade_store(s.folders(), {}, no_step), Catch::Contains("in use"));
}

TEST_CASE("an upgrade needs all folders of one store") {
  old_store s;
  s.downgrade();
  CHECK_THROWS_WITH(upgrade_store({s.node(0), s.node(2)}, {}, no_step),
                    Catch::Contains("name all of them"));
  CHECK_THROWS_WITH(upgrade_store({s.folder.path()}, {}, no_step),
                    Catch::Contains("neither of a local store nor that of a server"));
}

TEST_CASE("folders of a metadata server and its I/O servers are upgraded together or one by one") {
  for (const bool together : {true, false}) {
    old_store s;
    s.downgrade();
    // The same files as servers have them.
    const fs::path m = s.folder.path() / "m";
    fs::create_directory(m);
    std::string uuid, line;
    {
      std::ifstream in(s.node(0) / "oocarray-node");
      while (in >> line)
        if (line == "store") in >> uuid;
    }
    {
      sqlite::connection c(s.node(0) / "metadata.sqlite", sqlite::open_as::existing);
      c.execute("PRAGMA journal_mode = DELETE");
    }
    fs::rename(s.node(0) / "metadata.sqlite", m / "metadata.sqlite");
    std::ofstream(m / "oocarray-metadata") << "oocarray-metadata 1\nstore " << uuid << "\nnodes 3\n";
    for (int n = 0; n < 3; ++n) {
      fs::remove(s.node(n) / "oocarray-node");
      std::ofstream(s.node(n) / "oocarray-iod")
          << "oocarray-iod 1\nfolder 1-2\nnode " << n << "\nstore " << uuid << " 00ff\n";
    }
    std::uint64_t objects = 0;
    if (together) {
      objects = upgrade_store({s.node(1), m, s.node(0), s.node(2)}, {}, no_step).objects;
    } else {
      CHECK_THROWS_WITH(upgrade_store({s.node(1)}, {}, no_step), Catch::Contains("--metadata"));
      upgrade_store({m}, {}, no_step);
      for (int n = 0; n < 3; ++n) objects += upgrade_store({s.node(n)}, m, no_step).objects;
    }
    CHECK(objects > 6);
    // Back to a local store, to look at it.
    fs::rename(m / "metadata.sqlite", s.node(0) / "metadata.sqlite");
    for (int n = 0; n < 3; ++n) {
      std::string first;
      std::ifstream iod(s.node(n) / "oocarray-iod");
      std::getline(iod, first);
      CHECK(first == "oocarray-iod 2");
      std::ofstream(s.node(n) / "oocarray-node")
          << "oocarray-node 2\nstore " << uuid << "\nnode " << n << " of 3\n";
    }
    s.check_contents();
  }
}
