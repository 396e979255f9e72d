#include "storage/namespace/local_metadata.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "storage/base/file_descriptor.hpp"
#include "storage/base/process_identity.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/served_metadata.hpp"
#include "storage/namespace/sqlite.hpp"
#include "support/metadata_suite.hpp"
#include "support/small_space.hpp"
#include "support/soon.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::testing;
using namespace std::chrono_literals;

namespace {

struct local_name_space final : name_space {
  local_name_space() {
    make_metadata_database(file(), "uuid-1", me);
    open();
  }
  void open() override { service = std::make_shared<local_metadata>(file(), "uuid-1", me); }
  std::shared_ptr<metadata_service> as(credentials who) override {
    return dynamic_cast<local_metadata&>(*service).as(who);
  }
  std::filesystem::path file() const { return folder / "metadata.sqlite"; }

  temporary_folder folder;
};

/// `body` in a folder with little space; what it throws fails the test.
void in_little_space(const std::function<int(const std::filesystem::path& folder, bool mounted)>& body) {
  temporary_folder folder;
  CHECK(in_small_space(folder.path(), [&](bool mounted) {
          try {
            return body(folder.path(), mounted);
          } catch (const std::exception& e) {
            std::cerr << e.what() << std::endl;
            return 255;
          }
        }) == 0);
}

}  // namespace

std::unique_ptr<name_space> ooc::testing::make_name_space() { return std::make_unique<local_name_space>(); }

TEST_CASE("on a full disk every file can be removed, also by who opens the store only then") {
  for (const bool opened_before : {false, true})
    in_little_space([&](const auto& folder, bool mounted) {
      constexpr int files = 300;
      const auto file = folder / "metadata.sqlite";
      make_metadata_database(file, "uuid-1", me);
      auto m = std::make_unique<local_metadata>(file, "uuid-1", me);
      for (int i = 0; i < files; ++i) {
        const std::string name = "f" + std::to_string(i);
        m->commit(m->create(name, plain()).id);
        m->set_attribute(name, "long", std::string(i == 7 ? 600'000 : 500, 'x'));
      }
      if (!opened_before) m.reset();
      if (mounted) fill_up(folder);
      if (!opened_before) m = std::make_unique<local_metadata>(file, "uuid-1", me);
      for (int i = 0; i < files; ++i) m->forget(m->remove("f" + std::to_string(i)).id);
      EXPECT(m->list("").empty());
      return 0;
    });
}

TEST_CASE("on a full disk what is there goes on being changed, and what needs more room is refused and nothing else") {
  in_little_space([&](const auto& folder, bool mounted) {
    if (!mounted) return 0;
    const auto file = folder / "metadata.sqlite";
    make_metadata_database(file, "uuid-1", me);
    local_metadata m(file, "uuid-1", me);
    const file_id first = m.create("first", plain()).id;
    m.commit(first);
    fill_up(folder);
    int made = 0;
    std::error_code refused;
    try {
      for (; made < 10'000; ++made) m.commit(m.create("f" + std::to_string(made), plain()).id);
    } catch (const io_error& e) {
      refused = e.code();
    }
    EXPECT(refused == std::errc::no_space_on_device);
    for (std::uint64_t size = 1; size <= 2000; ++size) m.set_size(first, size, {}, 0);
    EXPECT(m.lookup("first").size == 2000);
    for (int i = 0; i < made; ++i) m.forget(m.remove("f" + std::to_string(i)).id);
    return 0;
  });
}

TEST_CASE("who empties the log takes no room away that another has just made for its transaction") {
  temporary_folder folder;
  const auto file = folder / "metadata.sqlite";
  make_metadata_database(file, "uuid-1", me);
  sqlite::connection grows(file, sqlite::open_as::existing), empties(file, sqlite::open_as::existing);
  const auto write = [](sqlite::connection& c, const char* what, std::uint64_t bytes) {
    sqlite::transaction t(c, sqlite::transaction_kind::write);
    sqlite::run(c, "CREATE TABLE IF NOT EXISTS filler (name TEXT, bytes BLOB)");
    sqlite::run(c, "INSERT INTO filler VALUES (?, zeroblob(?))", what, bytes);
    t.commit();
  };
  write(empties, "in the log", 1);

  struct moment {  // in the middle of a commit, when the database has been grown for it
    sqlite::connection& other;
    const std::filesystem::path& file;
    std::uintmax_t before = 0, after = 0;
    bool emptied = true;
  } m{empties, file};
  sqlite3_commit_hook(
      sqlite3_db_handle(grows.prepared("SELECT 1")),
      [](void* self) {
        auto& now = *static_cast<moment*>(self);
        now.before = std::filesystem::file_size(now.file);
        now.emptied = now.other.empty_log();
        now.after = std::filesystem::file_size(now.file);
        return 0;
      },
      &m);
  write(grows, "more", 600'000);
  CHECK(m.before > 600'000);
  CHECK(m.after == m.before);
  CHECK_FALSE(m.emptied);
  CHECK(std::filesystem::file_size(file) >= 600'000);
  CHECK(empties.empty_log());
}

TEST_CASE("the ids of files in parts are those of all files, in ascending order") {
  local_name_space m;
  auto& local = *m.service;
  const served_metadata server(m.file(), "uuid-1", [](const client_key&) { return false; });
  served_call served = server.of(me, {});
  const auto above = [&](file_id after) {
    return std::get<id_part>(served.answer(calls::ids{file_state::committed, after})).ids;
  };
  CHECK(above(0).empty());
  local.mkdir("d", 0755, false);
  for (int i = 0; i < 25; ++i) m.make((i % 2 == 0 ? "d/f" : "f") + std::to_string(i));
  const file_id unfinished = local.create("unfinished", plain()).id;
  const std::vector<file_id> all = above(0);
  CHECK(all.size() == 25);
  CHECK(std::is_sorted(all.begin(), all.end()));
  CHECK(all == local.files());
  CHECK(std::find(all.begin(), all.end(), unfinished) == all.end());
  CHECK(above(all[9]) == std::vector<file_id>(all.begin() + 10, all.end()));
  CHECK(above(~file_id{0}).empty());
}

TEST_CASE("what a server keeps of an answer is without the attributes, which the answer itself has") {
  local_name_space m;
  const entry f = m.make("f");
  m->set_attribute("f", "k", "v");
  const served_metadata server(m.file(), "uuid-1", [](const client_key&) { return true; });
  entry kept;
  served_call served = server.of(me, {{1}, 1, [&](const metadata_answer& a) {
                                        kept = std::get<entry>(a);
                                        return std::string();
                                      }});
  const entry answered = std::get<entry>(served.answer(calls::change{"f", mode_change(0600)}));
  CHECK(answered.attributes.at("k") == "v");
  CHECK(kept.id == f.id);
  CHECK(kept.attributes.empty());
}

TEST_CASE("of two processes that create one path, one wins") {
  local_name_space m;
  m.service.reset();
  for (int round = 0; round < 10; ++round) {
    const std::string path = "f" + std::to_string(round);
    int wins = 0;
    std::vector<pid_t> children;
    for (int i = 0; i < 2; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        int status = 9;
        try {
          local_metadata mine(m.file(), "uuid-1", me);
          status = failure_code([&] { mine.commit(mine.create(path, plain()).id); });
        } catch (...) {
        }
        ::_exit(status == 0 ? 0 : status == EEXIST ? 1 : 9);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      REQUIRE(WIFEXITED(status));
      REQUIRE(WEXITSTATUS(status) <= 1);
      wins += WEXITSTATUS(status) == 0;
    }
    CHECK(wins == 1);
  }
  m.open();
  CHECK(m->list("").size() == 10);
}

TEST_CASE("what a killed process was making is dead, before and after it is waited for") {
  local_name_space m;
  m.service.reset();
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    local_metadata mine(m.file(), "uuid-1", me);
    mine.create("half", plain());
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char x = 0;
  REQUIRE(::read(ready[0], &x, 1) == 1);
  m.open();
  CHECK(m->dead().empty());
  CHECK(m->unfinished().size() == 1);
  ::kill(child, SIGKILL);
  siginfo_t info;
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(m->unfinished().empty());
  CHECK(m->dead().size() == 1);
  ::waitpid(child, nullptr, 0);
  m->forget(m->dead()[0]);
  CHECK(m->dead().empty());
  m.make("half");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("a process is told from another with its id") {
  process_identity p = this_process();
  CHECK(p.start != 0);
  CHECK(may_be_alive(p));
  p.start += 1;
  CHECK_FALSE(may_be_alive(p));
  p = this_process();
  p.boot = "another";
  CHECK_FALSE(may_be_alive(p));
  p = this_process();
  p.pid_space = "pid:[1]";
  p.start += 1;
  CHECK(may_be_alive(p));
}

TEST_CASE("the size lock keeps out threads and processes, and dies with its holder") {
  local_name_space m;
  const entry a = m.make("a"), b = m.make("b");
  auto guard = m->lock_size(a.id);
  { const auto other = m->lock_size(b.id); }
  std::atomic<bool> got{false};
  std::thread t([&] {
    const auto mine = m->lock_size(a.id);
    got = true;
  });
  CHECK(never_within(std::chrono::milliseconds(50), [&] { return got.load(); }));
  guard.reset();
  t.join();
  CHECK(got);
  const std::string file = m.file();
  CHECK(in_child([&] {
          local_metadata mine(file, "uuid-1", me);
          static std::shared_ptr<void> held;
          held = mine.lock_size(a.id);
          ::kill(::getpid(), SIGKILL);
          return 0;
        }) == 128 + SIGKILL);
  CHECK(m->lock_size(a.id));
}

TEST_CASE("locks and claims end with their guards, though a process that was forked meanwhile lives on") {
  local_name_space m;
  const entry a = m.make("a");
  auto size = m->lock_size(a.id);
  auto claim = m->claim_writer(a.id, false);
  const bool child_lets_go = GENERATE(true, false);
  int end[2];
  REQUIRE(::pipe(end) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (child_lets_go) size.reset(), claim.reset();  // its parent's still
    char c = 0;
    ::close(end[1]);
    (void)!::read(end[0], &c, 1);
    ::_exit(0);
  }
  ::close(end[0]);
  local_metadata other(m.file(), "uuid-1", me);
  CHECK(never_within(100ms, [&] { return other.claim_writer(a.id, false) != nullptr; }));
  size.reset();
  claim.reset();
  CHECK(other.claim_writer(a.id, false));
  auto locked = std::async(std::launch::async, [&] { (void)other.lock_size(a.id); });
  CHECK(locked.wait_for(5s) == std::future_status::ready);
  ::close(end[1]);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("committed changes survive a killed process") {
  local_name_space m;
  m.service.reset();
  const std::string file = m.file();
  CHECK(in_child([&] {
          local_metadata mine(file, "uuid-1", me);
          for (int i = 0; i < 50; ++i) mine.commit(mine.create("f" + std::to_string(i), plain()).id);
          ::kill(::getpid(), SIGKILL);
          return 0;
        }) == 128 + SIGKILL);
  m.open();
  CHECK(m->list("").size() == 50);
  m->sync();
}

TEST_CASE("foreign, damaged and missing databases are told apart") {
  temporary_folder folder;
  const auto file = folder / "metadata.sqlite";
  CHECK_THROWS_AS(local_metadata(file, "u", me), io_error);
  CHECK_FALSE(std::filesystem::exists(file));

  std::ofstream(file) << std::string(10000, 'x');
  CHECK_THROWS_AS(local_metadata(file, "u", me), integrity_error);
  std::filesystem::remove(file);

  { sqlite::connection(file, sqlite::open_as::fresh).execute("CREATE TABLE t (x)"); }
  CHECK_THROWS_AS(local_metadata(file, "u", me), usage_error);
  std::filesystem::remove(file);

  make_metadata_database(file, "u", me);
  CHECK_THROWS_AS(local_metadata(file, "another", me), usage_error);
  { sqlite::connection(file, sqlite::open_as::existing).execute("PRAGMA user_version = 99"); }
  try {
    local_metadata(file, "u", me);
    FAIL("opened");
  } catch (const usage_error& e) {
    CHECK(std::string(e.what()).find("version 99") != std::string::npos);
    CHECK(e.code() == errc::not_a_store);
  }
}

TEST_CASE("who grows the database waits for the one who empties its log, and not for ever") {
  temporary_folder folder;
  const std::string log = folder / "log";
  std::ofstream(log) << "x";
  const file_descriptor stopped(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::flock(stopped.get(), LOCK_EX) == 0);
  try {
    (void)sqlite::log_lock::shared(log, 100ms);
    FAIL("locked");
  } catch (const io_error& e) {
    CHECK(e.code() == std::errc::timed_out);
    CHECK(std::string(e.what()).find(log) != std::string::npos);
    CHECK(std::string(e.what()).find("look for one that is stopped") != std::string::npos);
  }
  auto waits = std::async(std::launch::async, [&] { return sqlite::log_lock::shared(log, 30s).refused(); });
  CHECK(waits.wait_for(100ms) == std::future_status::timeout);
  REQUIRE(::flock(stopped.get(), LOCK_UN) == 0);
  CHECK_FALSE(waits.get());
}

TEST_CASE("creates run at thousands a second", "[.][speed]") {
  local_name_space m;
  const auto start = std::chrono::steady_clock::now();
  constexpr int files = 10000;
  for (int i = 0; i < files; ++i) m.make("f" + std::to_string(i));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  WARN(files / took.count() << " creates a second");
}

TEST_CASE("the id of a file whose entry was lost with the power is not given to another") {
  local_name_space n;
  new_file f;
  f.striping = {0, 1, 4096};
  const file_id lost = n.service->create("f", f).id;
  n.service.reset();
  {
    // As the database is without its last changes, in another boot.
    sqlite::connection c(n.file(), sqlite::open_as::existing);
    c.execute("DELETE FROM entry WHERE id = " + std::to_string(lost));
    c.execute("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'entry'");
    c.execute("UPDATE store SET value = 'another' WHERE key = 'ids_boot'");
  }
  n.open();
  CHECK(n.service->create("g", f).id > lost);
  const file_id last = n.service->create("h", f).id;
  n.open();
  // In the same boot ids go on one by one.
  CHECK(n.service->create("i", f).id == last + 1);
}
