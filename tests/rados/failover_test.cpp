// What programs see when parts of a cluster of Ceph, a metadata server or a program that has the store die, or a pool
// is full.  Most cases take half a minute: RADOS gives as long to who had a lock and was killed.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "oocarray/store.hpp"
#include "storage/rados/possession.hpp"
#include "storage/rados/rados_url.hpp"
#include "support/faulty_proxy.hpp"
#include "support/random_seed.hpp"
#include "support/run_command.hpp"
#include "support/server_process.hpp"
#include "support/soon.hpp"
#include "support/temporary_folder.hpp"
#include "support/thread_group.hpp"

using namespace ooc;
using namespace std::chrono_literals;

namespace {

std::string url_of(const std::string& name) { return "rados:ooc/" + name + "-" + std::to_string(::getpid()); }

std::string ooc_command() { return std::getenv("OOC_COMMAND"); }

testing::outcome ceph(const std::string& arguments) {
  testing::temporary_folder folder;
  return testing::run_command("ceph " + arguments, folder / "ceph");
}

std::string folder_of_cluster() {
  const std::string conf = std::getenv("CEPH_CONF");
  return conf.substr(0, conf.rfind('/'));
}

/// One OSD of the cluster is killed, and there again when this goes.
class killed_osd {
 public:
  explicit killed_osd(int osd) : osd_(osd) {
    const std::string pid = testing::contents(folder_of_cluster() + "/osd." + std::to_string(osd) + ".pid");
    REQUIRE(::kill(std::stoi(pid), SIGKILL) == 0);
    // It holds its files until it is gone.
    REQUIRE(testing::soon([&] { return ::kill(std::stoi(pid), 0) != 0; }));
  }
  ~killed_osd() {
    const std::string log = folder_of_cluster() + "/start.log";
    (void)std::system(
        ("setsid timeout 3600 ceph-osd -i " + std::to_string(osd_) + " --foreground </dev/null >>" + log + " 2>&1 &")
            .c_str());
    (void)testing::soon([] {
      const auto o = ceph("pg stat");
      return o.out.find("33 active+clean") != o.out.npos || o.out.find("32 active+clean") != o.out.npos;
    });
  }

 private:
  const int osd_;
};

/// The case "[.told]" of this program in a process of its own, which can use RADOS as no child of a fork can.
class other_program {
 public:
  /// `rank`, `group`: one of two, and its socket to the other one (process_pair).
  explicit other_program(const std::string& url, int rank = 0, int group = -1) {
    int both[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::setenv("OOC_TEST_URL", url.c_str(), 1);
      ::setenv("OOC_TEST_SOCKET", std::to_string(both[1]).c_str(), 1);
      ::setenv("OOC_TEST_RANK", std::to_string(rank).c_str(), 1);
      ::setenv("OOC_TEST_GROUP", std::to_string(group).c_str(), 1);
      ::close(both[0]);
      ::execl("/proc/self/exe", ::program_invocation_short_name, "[.told]", nullptr);
      ::_exit(127);
    }
    ::close(both[1]);
    socket_ = both[0];
  }
  ~other_program() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(socket_);
  }
  other_program(const other_program&) = delete;
  other_program& operator=(const other_program&) = delete;

  std::string said() const {
    std::string text(4096, '\0');
    const ssize_t n = ::read(socket_, text.data(), text.size());
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
  }
  void go_on() const { REQUIRE(::write(socket_, "g", 1) == 1); }
  /// Ends the scope of its array, alone.
  void let_go() const { REQUIRE(::write(socket_, "e", 1) == 1); }
  void send(int signal) const { REQUIRE(::kill(child_, signal) == 0); }

 private:
  pid_t child_ = -1;
  int socket_ = -1;
};

}  // namespace

TEST_CASE(
    "a program that opens a store, claims an array, stores what it has changed and makes a folder, each when it is "
    "told to",
    "[.told]") {
  const auto number = [](const char* name) { return std::stoi(std::getenv(name)); };
  const int socket = number("OOC_TEST_SOCKET"), group = number("OOC_TEST_GROUP");
  const auto say = [&](const std::string& what) { REQUIRE(::write(socket, what.data(), what.size()) > 0); };
  const auto wait = [&] {
    char c = 0;
    if (::read(socket, &c, 1) != 1) ::_exit(1);
    return c;
  };
  runtime rt({.memory = 8_MiB});
  const store s = store::open(std::getenv("OOC_TEST_URL"));
  say("opened");
  wait();
  array_options<int> how;
  if (group >= 0) how.group = std::make_shared<testing::process_pair>(number("OOC_TEST_RANK"), group);
  std::optional<ooc_array<int, 1>> a(std::in_place, rt, s, "a", open, how);
  for (int& v : *a) v = 2;
  say("claimed");
  if (wait() == 'e') {
    a.reset();
    say("let go");
    wait();
    ::_exit(0);
  }
  const auto attempt = [&](auto call) {
    try {
      call();
      say("done");
    } catch (const error& e) {
      say((e.code() == std::error_code(ESHUTDOWN, std::generic_category()) ? "shut out: " : "") +
          std::string(e.what()));
    }
  };
  attempt([&] { a->writeback(); });
  wait();
  attempt([&] { s.mkdir("by-other"); });
  ::_exit(0);
}

namespace {

/// A store with a metadata server that soon takes programs for lost, and an array of ones.
struct quickly_lost {
  explicit quickly_lost(const std::string& name) : url(url_of(name)) {
    REQUIRE(testing::soon([&] { return !storage::find_rados_server(*pool).empty(); }));
    ooc_array<int, 1> a(rt, store::open(url), "a", create, {100'000});
    for (int& v : a) v = 1;
  }
  /// Claims the array when that can be had, and stores other elements; then `late`, after which they must be there.
  template <class F>
  void take_over(F late) {
    ooc_array<int, 1> a(rt, store::open(url), "a", open, {.wait_for_writer = 60s});
    for (int& v : a) v = 3;
    a.writeback();
    late();
    a.invalidate();
    const auto& seen = a;
    CHECK(std::all_of(seen.begin(), seen.end(), [](int v) { return v == 3; }));
  }

  testing::temporary_folder folder;
  std::string url;
  testing::server_process metad{std::getenv("OOC_METAD"),
                                {"--folder", (folder / "m").string(), "--database", url, "--grace", "2"},
                                folder / "log"};
  runtime rt{{.memory = 8_MiB}};
  std::shared_ptr<storage::rados_pool> pool =
      storage::rados_pool::connect(storage::parse_rados_url(url.substr(url.find(':') + 1)).where);
};

}  // namespace

TEST_CASE("a program that was lost while it held nothing is shut out when it is lost with what it has claimed since") {
  quickly_lost there("idle");
  const auto has_client = [&] {
    bool any = false;
    there.pool->for_each_object([&](const std::string& name) { return !(any = name.starts_with("oocarray-client.")); });
    return any;
  };
  REQUIRE(testing::soon([&] { return !has_client(); }));  // ours has gone
  testing::faulty_proxy network(there.metad.address());
  there.pool->put("oocarray-server", network.address() + "\n");
  const other_program other(there.url);
  REQUIRE(other.said() == "opened");
  REQUIRE(has_client());
  network.cut_off();
  REQUIRE(testing::soon([&] { return !has_client(); }));
  network.restore();
  other.go_on();
  REQUIRE(other.said() == "claimed");
  other.send(SIGSTOP);
  network.cut_off();
  there.pool->put("oocarray-server", there.metad.address() + "\n");
  there.take_over([&] {
    other.send(SIGCONT);
    other.go_on();
    CHECK_THAT(other.said(), Catch::StartsWith("shut out: "));
    other.go_on();  // the metadata server cannot help it
    CHECK_THAT(other.said(), Catch::StartsWith("shut out: "));
  });
}

namespace {

/// Two ranks of one program, with the array open.
struct two_ranks {
  explicit two_ranks(const std::string& url) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, between) == 0);
    first.emplace(url, 0, between[0]);
    second.emplace(url, 1, between[1]);
    for (const auto* rank : {&first, &second}) REQUIRE((*rank)->said() == "opened");
    for (const auto* rank : {&first, &second}) (*rank)->go_on();
    for (const auto* rank : {&first, &second}) REQUIRE((*rank)->said() == "claimed");
  }
  ~two_ranks() {
    for (const int fd : between) ::close(fd);
  }
  void second_is_shut_out() const {
    second->go_on();
    CHECK_THAT(second->said(), Catch::StartsWith("shut out: "));
  }

  int between[2];
  std::optional<other_program> first, second;
};

}  // namespace

TEST_CASE("ranks whose rank 0 was killed are shut out before another program may have their array") {
  quickly_lost there("ranks");
  const two_ranks ranks(there.url);
  ranks.first->send(SIGKILL);
  there.take_over([&] { ranks.second_is_shut_out(); });
}

TEST_CASE("ranks whose rank 0 was killed with the metadata server are shut out when another server is there") {
  quickly_lost there("both");
  const two_ranks ranks(there.url);
  ranks.first->send(SIGKILL);
  there.metad.kill();
  const testing::server_process next(
      std::getenv("OOC_METAD"), {"--folder", (there.folder / "2").string(), "--database", there.url, "--grace", "2"},
      there.folder / "log2");
  there.take_over([&] { ranks.second_is_shut_out(); });
}

TEST_CASE("ranks whose rank 0 has let go of their array alone are shut out before another program may have it") {
  quickly_lost there("left");
  const two_ranks ranks(there.url);
  ranks.first->let_go();
  REQUIRE(ranks.first->said() == "let go");
  there.take_over([&] { ranks.second_is_shut_out(); });
}

TEST_CASE("a program that has a store alone and is stopped until another has it is shut out") {
  const std::string url = url_of("alone");
  runtime rt({.memory = 8_MiB});
  {
    ooc_array<int, 1> a(rt, store::open(url), "a", create, {100'000});
    for (int& v : a) v = 1;
  }
  const other_program other(url);
  REQUIRE(other.said() == "opened");
  other.go_on();
  REQUIRE(other.said() == "claimed");
  other.send(SIGSTOP);
  ooc_array<int, 1> a(rt, store::open(url), "a", open);
  for (int& v : a) v = 3;
  a.writeback();
  other.send(SIGCONT);
  other.go_on();
  CHECK_THAT(other.said(), Catch::StartsWith("shut out: "));
  a.invalidate();
  const auto& seen = a;
  CHECK(std::all_of(seen.begin(), seen.end(), [](int v) { return v == 3; }));
}

TEST_CASE("an OSD that is killed while an array is swept costs time, and no element") {
  const std::uint64_t seed = testing::random_seed("killed_osd");
  runtime rt({.memory = 8_MiB});
  auto s = store::open(url_of("osd"));
  constexpr std::size_t n = 4 << 20;
  ooc_array<std::uint64_t, 1> a(rt, s, "a", create, {n});
  for (std::size_t i = 0; i < n; ++i) a[i] = i;
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round, seed);
    std::optional<killed_osd> dead;
    const std::size_t when = (seed + static_cast<std::size_t>(round) * 7919) % n;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == when) dead.emplace(static_cast<int>((seed + static_cast<std::size_t>(round)) % 3));
      a[i] += 1;
    }
    a.writeback(durable);
    a.invalidate();
    for (std::size_t i = 0; i < n; ++i)
      if (a[i] != i + static_cast<std::size_t>(round) + 1) FAIL("element " << i << " is " << a[i]);
  }
}

TEST_CASE("when a metadata server is killed another takes its place, and programs go on") {
  const std::string url = url_of("standby");
  testing::temporary_folder folder;
  const std::string metad = std::getenv("OOC_METAD");
  testing::server_process first(metad, {"--folder", (folder / "1").string(), "--database", url}, folder / "log1");
  auto s = store::open(url);
  runtime rt({.memory = 8_MiB});
  ooc_array<int, 1> a(rt, s, "a", create, {100'000});
  a[7] = 1;
  std::optional<testing::server_process> second;
  std::thread standby([&] {  // its constructor returns when it listens
    second.emplace(metad, std::vector<std::string>{"--folder", (folder / "2").string(), "--database", url},
                   folder / "log2");
  });
  first.kill();
  s.mkdir("x");  // waits
  standby.join();
  a[8] = 2;
  a.writeback(durable);
  a.close();
  const auto seen = testing::run_command(ooc_command() + " --store '" + url + "' ls", folder / "ls");
  CHECK(seen.out == "a\nx/\n");
  CHECK(second->stop() == 0);
}

TEST_CASE("a metadata server that was stopped until another had its place ends, and programs stay with the other") {
  const std::string url = url_of("stopped");
  testing::temporary_folder folder;
  const std::string metad = std::getenv("OOC_METAD");
  testing::server_process first(metad, {"--folder", (folder / "1").string(), "--database", url}, folder / "log1");
  auto s = store::open(url);
  runtime rt({.memory = 8_MiB});
  ooc_array<int, 1> a(rt, s, "a", create, {100'000});
  a[7] = 1;
  first.pause();
  testing::server_process second(metad, {"--folder", (folder / "2").string(), "--database", url}, folder / "log2");
  s.mkdir("x");
  first.resume();
  CHECK(testing::soon([&] { return first.logged("another process has its metadata now"); }));
  CHECK(first.wait() == 1);
  a[8] = 2;
  a.writeback(durable);
  a.close();
  CHECK(testing::run_command(ooc_command() + " --store '" + url + "' ls", folder / "ls").out == "a\nx/\n");
  CHECK(second.stop() == 0);
}

TEST_CASE("a program that is killed loses the store to the next one after a while, and nothing that was acknowledged") {
  const std::string url = url_of("killed");
  testing::temporary_folder folder;
  const auto made = testing::run_command(ooc_command() + " --store '" + url + "' init", folder / "init");
  REQUIRE(made.status == 0);
  REQUIRE(testing::run_command(ooc_command() + " --store '" + url + "' mkdir kept", folder / "mkdir").status == 0);
  // Killed while it waits for more to copy.
  const auto killed = testing::run_command(
      "(head -c 64000000 /dev/zero; sleep 4) | timeout -s KILL 3 " + ooc_command() + " --store '" + url + "' cp - big",
      folder / "cp");
  CHECK(killed.status != 0);
  const auto seen = testing::run_command(ooc_command() + " --store '" + url + "' ls", folder / "ls");
  CAPTURE(seen.err);
  CHECK(seen.status == 0);
  CHECK(seen.out == "kept/\n");
  CHECK_THAT(seen.err, Catch::Contains("which another process has open, or had when it died"));
  CHECK(testing::run_command(ooc_command() + " --store '" + url + "' verify", folder / "verify").status == 0);
}

TEST_CASE("a second program is told who has the store, after waiting as long as a dead one would keep it") {
  const std::string url = url_of("second");
  auto s = store::open(url);
  testing::temporary_folder folder;
  const auto other = testing::run_command(ooc_command() + " --store '" + url + "' ls", folder / "ls");
  CHECK(other.status == 1);
  CHECK_THAT(other.err,
             Catch::Contains("is open in another process (client.") && Catch::Contains("ooc-metad --database " + url));
}

TEST_CASE("a pool whose quota is used up says so at once, and takes writes again when it is raised") {
  REQUIRE(ceph("osd pool create quota 1").status == 0);
  {
    auto s = store::open("rados:quota/q");
    auto f = file::create(s, "f", {.sparse = true});
    const auto bytes = std::vector<std::byte>(64 << 10);
    f.write(bytes);
    REQUIRE(ceph("osd pool set-quota quota max_bytes 1000").status == 0);
    // The cluster finds that out when its statistics come.
    std::string why;
    const auto says = [&] {
      try {
        f.write(bytes);
        why.clear();
      } catch (const error& e) {
        why = e.what();
      }
      return !why.empty();
    };
    CHECK(testing::soon(says));
    CHECK_THAT(why, Catch::Contains("'f'") && Catch::Contains("the pool's quota is used up"));
    REQUIRE(ceph("osd pool set-quota quota max_bytes 0").status == 0);
    CHECK(testing::soon([&] { return !says(); }));
  }
  REQUIRE(ceph("osd pool delete quota quota --yes-i-really-really-mean-it").status == 0);
}
