// Programs, mounts and servers that are killed while something is written.
#include <sqlite3.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <random>

#include "mounted.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

// Adds row after row to a database, each in a transaction of its own, and says so after each.
[[noreturn]] void insert_for_ever(const std::string& path, int told) {
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) ::_exit(1);
  sqlite3_exec(db, "PRAGMA synchronous = FULL", nullptr, nullptr, nullptr);
  for (;;) {
    if (sqlite3_exec(db, "INSERT INTO t (y) VALUES (randomblob(3000))", nullptr, nullptr, nullptr) != SQLITE_OK)
      ::_exit(2);
    if (::write(told, "+", 1) != 1) ::_exit(3);
  }
}

// The first column of the first row.
std::string ask(const std::string& path, const char* what) {
  sqlite3* db = nullptr;
  sqlite3_stmt* s = nullptr;
  std::string answer = "no answer";
  if (sqlite3_open(path.c_str(), &db) == SQLITE_OK && sqlite3_prepare_v2(db, what, -1, &s, nullptr) == SQLITE_OK &&
      sqlite3_step(s) == SQLITE_ROW)
    answer = reinterpret_cast<const char*>(sqlite3_column_text(s, 0));
  else
    answer = sqlite3_errmsg(db);
  sqlite3_finalize(s);
  sqlite3_close(db);
  return answer;
}

}  // namespace

TEST_CASE("a database is whole after its writer or the mount was killed in the middle of writing") {
  if (!can_mount()) return;
  mountable_store s(false);
  std::mt19937_64 dice(random_seed("mount_kills"));
  auto mount = std::make_unique<mount_process>(s.url, s.folder / "mount");
  const std::string file = *mount / "db";
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db, "CREATE TABLE t (x INTEGER PRIMARY KEY, y BLOB)", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
  unsigned long rows = 0;
  for (unsigned round = 0, all = static_cast<unsigned>(rounds(4, 50)); round < all; ++round) {
    CAPTURE(round);
    int told[2];
    REQUIRE(::pipe2(told, O_CLOEXEC) == 0);
    const pid_t writer = ::fork();
    if (writer == 0) insert_for_ever(file, told[1]);
    ::close(told[1]);
    char one;
    for (auto n = 1 + dice() % 20; n > 0 && ::read(told[0], &one, 1) == 1; --n) ++rows;
    random_pause(std::chrono::microseconds(dice() % 20'000));
    if (round % 2 == 0) {
      ::kill(writer, SIGKILL);
    } else {
      mount->kill();  // the writer fails
      ::kill(writer, SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(writer, &status, 0) == writer);
    while (::read(told[0], &one, 1) == 1) ++rows;
    ::close(told[0]);
    if (round % 2 != 0) mount = std::make_unique<mount_process>(s.url, s.folder / "mount");
    REQUIRE(ask(file, "PRAGMA integrity_check") == "ok");
    // One more may have been committed and not told.
    const unsigned long there = std::stoul(ask(file, "SELECT count(*) FROM t"));
    CHECK(there >= rows);
    CHECK(there <= rows + 1);
    rows = there;
  }
}

namespace {

constexpr int makers = 3;

/// Processes that make files tell each other this.
struct made_files {
  std::atomic<bool> enough{false};
  std::atomic<int> done{0};
  std::array<int, makers> made{};
  char failed[makers][80] = {};
};

// Makes, renames and removes files until there are enough.  In a process of its own: who forks while he has files of
// the mount open, to start a server, has the child wait for that server before it has begun.
void make_files(const fs::path& folder, int who, made_files& told) {
  const auto may_fail = [&](const char* what, long result) {
    if (result < 0 && told.failed[who][0] == 0)
      std::snprintf(told.failed[who], sizeof told.failed[who], "%s: %s", what, std::strerror(errno));
    return result;
  };
  for (int i = 0; !told.enough && told.failed[who][0] == 0; ++i) {
    const std::string mine = std::to_string(who) + "-" + std::to_string(i);
    const std::string name = folder / mine, other = folder / ("new-" + mine);
    const int fd = static_cast<int>(may_fail("open", ::open(other.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644)));
    if (fd < 0) return;
    may_fail("write", ::write(fd, mine.data(), mine.size()));
    may_fail("close", ::close(fd));
    may_fail("rename", ::rename(other.c_str(), name.c_str()));
    struct stat st {};
    may_fail("stat", ::stat(name.c_str(), &st));
    if (i % 4 == 3)
      may_fail("unlink", ::unlink((folder / (std::to_string(who) + "-" + std::to_string(i - 1))).c_str()));
    told.made[who] = i + 1;
    ++told.done;
  }
}

}  // namespace

TEST_CASE("a metadata server that is killed under load is waited for, and no call that it had answered is lost") {
#ifdef OOC_WITH_SERVERS
  if (!can_mount()) return;
  mountable_store s(true);
  mount_process m(s.url, s.folder / "mount");
  constexpr int kills = 3;
  void* const shared = ::mmap(nullptr, sizeof(made_files), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  made_files& told = *new (shared) made_files;
  std::vector<pid_t> load;
  for (int w = 0; w < makers; ++w) {
    load.push_back(::fork());
    if (load.back() == 0) {
      make_files(m.folder(), w, told);
      ::_exit(0);
    }
  }
  for (int k = 0; k <= kills; ++k) {
    const int before = told.done;
    const bool goes_on = soon([&] { return told.done >= before + 20; });
    INFO((goes_on ? "" : s.running->logs()));
    CHECK(goes_on);
    if (k == kills || !goes_on) break;
    CHECK(s.running->send("metad", SIGKILL));
    CHECK(s.running->up().status == 0);
  }
  told.enough = true;
  for (const pid_t p : load) CHECK(::waitpid(p, nullptr, 0) == p);
  std::size_t expected = 0;
  for (int w = 0; w < makers; ++w) {
    CAPTURE(w);
    CHECK(std::string(told.failed[w]) == "");
    for (int i = 0; i < told.made[w]; ++i) {
      const std::string name = std::to_string(w) + "-" + std::to_string(i);
      const bool removed = i % 4 == 2 && i + 1 < told.made[w];
      if (contents(m / name) != (removed ? "" : name)) FAIL_CHECK(name << " holds '" << contents(m / name) << "'");
      expected += !removed;
    }
  }
  CHECK(static_cast<std::size_t>(std::distance(fs::directory_iterator(m.folder()), {})) == expected);
  ::munmap(shared, sizeof(made_files));
#endif
}

TEST_CASE("cp, tar and fio on a mount go on when an I/O server is killed and started again") {
#ifdef OOC_WITH_SERVERS
  if (!can_mount()) return;
  mountable_store s(true);
  mount_process m(s.url, s.folder / "mount");
  std::mt19937_64 dice(random_seed("mount_kills"));
  const fs::path source = s.folder / "source";
  fs::create_directories(source / "below");
  for (int i = 0; i < 24; ++i) {
    std::string text(200'000 + dice() % 400'000, ' ');
    for (char& c : text) c = static_cast<char>(dice());
    std::ofstream(source / (i % 2 ? "below" : ".") / std::to_string(i), std::ios::binary) << text;
  }
  const std::string to = m / "copy", archive = m / "a.tar";
  std::vector<std::string> commands{
      "cp -r " + source.string() + " " + to + " && sync " + to + "/below/23",
      "tar cf " + archive + " -C " + source.string() + " . && tar tf " + archive + " > /dev/null"};
  std::vector<fs::path> begins{to, archive};
  if (run_command("command -v fio", s.folder / "fio").status == 0) {
    commands.push_back("fio --name=verify --filename=" + (m / "blocks").string() +
                       " --rw=randwrite --bs=64k --size=8m --verify=crc32c --do_verify=1 --verify_fatal=1"
                       " --fsync=64 --end_fsync=1 > " +
                       (s.folder / "fio.log").string());
    begins.push_back(m / "blocks");
  } else {
    std::cout << "fio is not installed: cp and tar alone" << std::endl;
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string& command = commands[i];
    CAPTURE(command);
    const fs::path& begun = begins[i];
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    REQUIRE(soon([&] { return fs::exists(begun); }));
    REQUIRE(s.running->send("iod-1", SIGKILL));
    REQUIRE(s.running->up().status == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(run_command("diff -r " + source.string() + " " + to, s.folder / "diff").status == 0);
  CHECK(run_command("tar df " + archive + " -C " + source.string(), s.folder / "tar").status == 0);
#endif
}
