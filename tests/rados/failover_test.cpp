// What programs see when parts of a cluster of Ceph, a metadata server or a program that has the store die, or a pool
// is full.  Most cases take half a minute: RADOS gives as long to who had a lock and was killed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "oocarray/store.hpp"
#include "support/random_seed.hpp"
#include "support/run_command.hpp"
#include "support/server_process.hpp"
#include "support/soon.hpp"
#include "support/temporary_folder.hpp"

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

}  // namespace

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
