#include "storage/local_metadata.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "storage/metadata_schema.hpp"
#include "storage/process_identity.hpp"
#include "storage/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::storage;
using ooc::testing::temporary_folder;

namespace {

constexpr credentials me{1000, 1000};

struct name_space {
  explicit name_space(credentials owner = me) {
    make_metadata_database(file(), "uuid-1", owner);
    open(owner);
  }
  void open(credentials who = me) {
    service = std::make_unique<local_metadata>(file(), "uuid-1", who);
  }
  std::filesystem::path file() const { return folder / "metadata.sqlite"; }
  local_metadata* operator->() { return service.get(); }

  entry make(std::string_view path, std::uint64_t size = 10) {
    new_file f;
    f.size = size;
    f.striping = {0, 1, 4096};
    const entry e = service->create(path, f);
    service->commit(e.id);
    return e;
  }

  temporary_folder folder;
  std::unique_ptr<local_metadata> service;
};

new_file plain(std::uint64_t size = 1) {
  new_file f;
  f.size = size;
  f.striping = {0, 1, 4096};
  return f;
}

/// The errno that a call fails with, 0 if it does not; its text must name `named`.
int failure_code(const std::function<void()>& call, const std::string& named = "") {
  try {
    call();
  } catch (const error& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find(named) != std::string::npos);
    return e.code().value();
  }
  return 0;
}

/// Runs `body` in a child process, which opens what it needs itself, and returns its exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> names(const std::vector<entry>& entries) {
  std::vector<std::string> v;
  for (const entry& e : entries) v.push_back(e.path);
  return v;
}

}  // namespace

TEST_CASE("an entry comes back as it was made") {
  name_space m;
  new_file f;
  f.size = (std::uint64_t{1} << 62) + 1;
  f.striping = {1, 2, 8000};
  f.sparse = true;
  f.fill = {std::byte{1}, std::byte{0}, std::byte{255}};
  f.array = {"f8", 8, {3, std::uint64_t{1} << 40, 5}, 7, {1, 512, 5}};
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
  name_space m;
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
  name_space m;
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
  name_space m;
  const entry e = m.make("a");
  CHECK(m->remove("a").id == e.id);
  CHECK(m->dead() == std::vector<file_id>{e.id});
  m->forget(e.id);
  m.open();
  CHECK(m.make("b").id > e.id);
}

TEST_CASE("folders nest, list by name and go only when empty") {
  name_space m;
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

TEST_CASE("a file is not a folder") {
  name_space m;
  m.make("f");
  CHECK(failure_code([&] { m->lookup("f/x"); }) == ENOTDIR);
  CHECK(failure_code([&] { m->create("f/x", plain()); }) == ENOTDIR);
  CHECK(failure_code([&] { m->mkdir("f/x", 0755, true); }) == ENOTDIR);
  CHECK(failure_code([&] { m->mkdir("f", 0755, true); }) == EEXIST);
  CHECK(failure_code([&] { m->rename("f", "f/x"); }) == ENOTDIR);
}

TEST_CASE("names that cannot be are refused") {
  name_space m;
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
  name_space m;
  CHECK(failure_code([&] { m->create("a", plain(std::uint64_t{1} << 63)); }, "a") == EINVAL);
  new_file f = plain();
  f.striping = {0, 4, std::uint64_t{1} << 62};
  CHECK(failure_code([&] { m->create("a", f); }, "a") == EINVAL);
  f.striping = {0, 0, 4096};
  CHECK(failure_code([&] { m->create("a", f); }, "a") == EINVAL);
  const entry e = m.make("a", (std::uint64_t{1} << 63) - 1);
  CHECK(m->find(e.id).size == (std::uint64_t{1} << 63) - 1);
  CHECK(failure_code([&] { m->set_size(e.id, std::uint64_t{1} << 63, {}); }) == EINVAL);
  m->set_size(e.id, 5, {5});
  CHECK(m->find(e.id).array.extents == std::vector<std::uint64_t>{5});
  m->remove("a");
  CHECK(failure_code([&] { m->set_size(e.id, 5, {5}); }) == ENOENT);
  CHECK(failure_code([&] { m->find(e.id); }) == ENOENT);
}

TEST_CASE("rename moves a tree and replaces nothing") {
  name_space m;
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

TEST_CASE("permissions are kept as in POSIX") {
  name_space m;
  m->mkdir("mine", 0755, false);
  m->mkdir("open", 0777, false);
  m->mkdir("closed", 0700, false);
  m.make("mine/f");
  m.make("closed/f");
  const auto other = dynamic_cast<local_metadata&>(*m.service).as({2000, 2000});
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
  const auto root = dynamic_cast<local_metadata&>(*m.service).as({0, 0});
  root->set_owner("mine/f", 2000, 2000);
  other->set_mode("mine/f", 0600);
  CHECK(m->lookup("mine/f").mode == 0600);
}

TEST_CASE("of two processes that create one path, one wins") {
  name_space m;
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
  name_space m;
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
  name_space m;
  const entry a = m.make("a"), b = m.make("b");
  auto guard = m->lock_size(a.id);
  { const auto other = m->lock_size(b.id); }
  std::atomic<bool> got{false};
  std::thread t([&] {
    const auto mine = m->lock_size(a.id);
    got = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK_FALSE(got);
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

TEST_CASE("committed changes survive a killed process") {
  name_space m;
  m.service.reset();
  const std::string file = m.file();
  CHECK(in_child([&] {
          local_metadata mine(file, "uuid-1", me);
          for (int i = 0; i < 50; ++i)
            mine.commit(mine.create("f" + std::to_string(i), plain()).id);
          ::kill(::getpid(), SIGKILL);
          return 0;
        }) == 128 + SIGKILL);
  m.open();
  CHECK(m->list("").size() == 50);
  m->sync();
}

TEST_CASE("many threads share one name space") {
  name_space m;
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

TEST_CASE("creates run at thousands a second", "[.][speed]") {
  name_space m;
  const auto start = std::chrono::steady_clock::now();
  constexpr int files = 10000;
  for (int i = 0; i < files; ++i) m.make("f" + std::to_string(i));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  WARN(files / took.count() << " creates a second");
}
