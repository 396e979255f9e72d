// ooc up, down, ping, df, top: the servers of a store on this machine.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <future>
#include <nlohmann/json.hpp>
#include <string>

#include "support/shell.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;

namespace {

/// A shell that also has a served store.
struct cluster_shell : shell {
  explicit cluster_shell(unsigned nodes, const std::string& options = "")
      : served(folder / "cluster", nodes, options) {}

  std::string on(const std::string& arguments) { return ok("--store " + served.url() + " " + arguments); }
  nlohmann::json json(const std::string& arguments) {
    return nlohmann::json::parse(run(arguments + " --json " + served.url()).out);
  }

  servers served;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("one command makes a store served by several servers, and all of them answer") {
  cluster_shell sh(3);
  CHECK(sh.served.url().starts_with("ooc://127.0.0.1:"));
  const auto up = sh.json("ping");
  CHECK(up.at("up") == true);
  REQUIRE(up.at("servers").size() == 4);
  CHECK(up.at("servers")[0].at("server") == "metad");
  for (const auto& s : up.at("servers")) {
    CHECK(s.at("up") == true);
    CHECK(s.at("round_trip_us") > 0.0);
    CHECK(s.at("incarnation") != 0);
    CHECK(contains(sh.ok("--version"), s.at("version").get<std::string>()));
  }
  CHECK(contains(sh.ok("ping " + sh.served.url()), "iod 2"));

  const auto df = sh.json("df");
  REQUIRE(df.at("nodes").size() == 3);
  CHECK(df.at("disk_bytes") > df.at("available_bytes"));
  CHECK(contains(sh.on("df"), "total"));
  CHECK(contains(sh.ok("df"), "total"));  // of the local store

  const auto top = sh.json("top --once --interval 0.1");
  REQUIRE(top.at("nodes").size() == 3);
  CHECK(top.at("nodes")[1].at("buffer_limit") > 0);
  CHECK(contains(sh.ok("top --once --interval 0.1 " + sh.served.url()), "requests/s"));
}

TEST_CASE("up again says that the servers are up, and starts only what is missing") {
  cluster_shell sh(2);
  const pid_t metad = sh.served.pid("metad"), killed = sh.served.pid("iod-1");
  outcome o = sh.served.up();
  CHECK(o.status == 0);
  CHECK(o.out == "already up\n" + sh.served.url() + "\n");
  REQUIRE(sh.served.send("iod-1", SIGKILL));
  o = sh.run("ping " + sh.served.url());
  CHECK(o.status == 1);
  CHECK(contains(o.out, "down"));
  o = sh.run("df " + sh.served.url());
  CHECK(o.status == 1);
  CHECK(contains(o.out, "Connection refused"));
  CHECK_FALSE(contains(o.out, "No route to host"));
  o = sh.served.up();
  INFO(o.err);
  CHECK(o.status == 0);
  CHECK(o.out == "1 servers started\n" + sh.served.url() + "\n");
  CHECK(sh.served.pid("metad") == metad);
  CHECK(sh.served.pid("iod-1") != killed);
  CHECK(sh.run("ping " + sh.served.url()).status == 0);
}

TEST_CASE("a server that is about to end when up finds it running is started again") {
  cluster_shell sh(2);
  // Stopped, it is there and does not answer, as one that was just killed and has not ended yet.
  const std::string victim = GENERATE("metad", "iod-1");
  const pid_t killed = sh.served.pid(victim);
  REQUIRE(sh.served.send(victim, SIGSTOP));
  auto up = std::async(std::launch::async, [&] { return sh.served.up(); });
  CHECK(up.wait_for(std::chrono::milliseconds(500)) == std::future_status::timeout);
  REQUIRE(sh.served.send(victim, SIGKILL));
  const outcome o = up.get();
  INFO(o.err << sh.served.logs());
  CHECK(o.status == 0);
  CHECK(o.out == "1 servers started\n" + sh.served.url() + "\n");
  CHECK(sh.served.pid(victim) != killed);
  CHECK(sh.run("ping " + sh.served.url()).status == 0);
}

TEST_CASE("up writes cluster.json only where it has changed, and once more where it is damaged") {
  shell sh;
  servers s(sh.folder / "cluster", 2);
  const fs::path file = s.dir() / "cluster.json";
  const std::string settings = contents(file);
  const auto inode = [&] {
    struct ::stat st {};
    REQUIRE(::stat(file.c_str(), &st) == 0);
    return st.st_ino;
  };
  const auto before = inode();
  REQUIRE(s.down().status == 0);
  REQUIRE(s.up().status == 0);
  CHECK(inode() == before);
  REQUIRE(s.down().status == 0);

  // As a loss of power left it where it had not been synced.
  for (const std::string& damaged : {std::string(), std::string(settings.size(), '\0'),
                                     settings.substr(0, settings.size() / 2), std::string("{}")}) {
    write(file, damaged);
    const outcome refused = s.up();
    CHECK(refused.status == 1);
    CHECK(contains(refused.err, file.string()));
    CHECK(contains(refused.err, "--nodes 2"));
    CHECK(contents(file) == damaged);
  }
  const std::string port = s.url().substr(s.url().rfind(':') + 1);
  const outcome again = sh.run("up --dir cluster --nodes 2 --port " + port.substr(0, port.find('/')));
  INFO(again.err);
  CHECK(again.status == 0);
  CHECK(servers::last_line(again.out) == s.url());
  CHECK(contents(file) == settings);
  write(file, "");
  CHECK(contains(s.down().out, "iod-1"));
  CHECK(s.pid("iod-1") == 0);
  write(file, settings);
}

TEST_CASE("names are served while an I/O server is down; its data come when it is back") {
  cluster_shell sh(2);
  const std::string data = numbered(3'000'000);
  write(sh.folder / "a", data);
  sh.on("import --type u1 --shape 3000000 a a");
  REQUIRE(sh.served.send("iod-1", SIGKILL));
  // A call that waited for the server would fail at this deadline.
  const std::string store = "--store " + sh.served.url() + "?deadline=10s ";
  CHECK(contains(sh.ok(store + "ls"), "a"));
  sh.ok(store + "mkdir d");
  sh.ok(store + "mv a d/b");
  sh.ok(store + "attr set d/b unit kelvin");
  CHECK(contains(sh.ok(store + "stat d/b"), "kelvin"));

  std::future<outcome> exported = std::async(
      std::launch::async, [&] { return sh.run("--store " + sh.served.url() + " export --format raw d/b c"); });
  CHECK(exported.wait_for(std::chrono::seconds(1)) == std::future_status::timeout);
  REQUIRE(sh.served.up().status == 0);
  const outcome o = exported.get();
  INFO(o.err);
  CHECK(o.status == 0);
  CHECK(contents(sh.folder / "c") == data);
}

namespace {

/// A served store of two nodes with an array on node 0 and one on both.
struct two_node_store : cluster_shell {
  two_node_store() : cluster_shell(2) {
    write(folder / "bytes", numbered(20'000));
    for (const char* import : {"--nn 1 --sn 0 bytes first", "--sn 0 --sf 4096 bytes both"})
      on("import -q --type u1 --shape 20000 " + std::string(import));
    CHECK(served.down().status == 0);
  }
  fs::path lost() const { return served.dir() / "iod-1"; }
  /// Without waiting for anybody: the deadline is longer than a test may take.
  outcome read(const std::string& array) {
    return run("export -q -f --format raw --store " + served.url() + "?deadline=1h " + array + " back");
  }
  void check_first_is_whole() {
    const outcome o = read("first");
    INFO(o.err);
    CHECK(o.status == 0);
    CHECK(contents(folder / "back") == numbered(20'000));
  }
};

}  // namespace

TEST_CASE(
    "a store with a lost folder comes up without that node, makes no new one, and forgets it when it is told to") {
  two_node_store s;
  const fs::path own = s.folder / "own";
  fs::rename(s.lost(), own);
  if (GENERATE(false, true)) fs::create_directory(s.lost());  // the place of a disk that is not mounted
  const bool there = fs::exists(s.lost());
  outcome o = s.served.up();
  INFO(o.err);
  CHECK(o.status == 1);
  CHECK(o.out == "2 servers started\n" + s.served.url() + "\n");
  CHECK(o.err.starts_with("ooc: iod-1: folder '" + s.lost().string() + "' is missing, empty or cannot be read"));
  CHECK(contains(o.err, "ooc up --forget-node 1"));
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
  CHECK(fs::exists(s.lost()) == there);
  CHECK((!there || fs::is_empty(s.lost())));
  s.check_first_is_whole();
  CHECK(contains(s.read("both").err, "the folder of node 1 was missing"));
  CHECK(s.served.up().status == 1);  // it still is not there

  if (there) {  // as when the disk is mounted later
    fs::remove_all(s.lost());
    fs::rename(own, s.lost());
    CHECK(s.served.up().status == 0);
    CHECK(s.read("both").status == 0);
    CHECK(s.served.send("iod-1", SIGKILL));
    fs::remove_all(s.lost());
  }

  CHECK(contains(s.served.up("--forget-node 2").err, "nodes 0 to 1"));
  o = s.served.up("--forget-node 1");
  INFO(o.err);
  CHECK(o.status == 0);
  s.check_first_is_whole();
  o = s.read("both");
  CHECK(o.status == 1);
  CHECK(contains(o.err, "both"));
  CHECK(contains(o.err, "node 1"));
  o = s.run("verify -q --store " + s.served.url());
  CHECK(o.status == 2);
  CHECK(contains(o.out, "0 corrupt, 2 lost, 0 torn; stripe objects: 1 lost, 0 unreadable, 0 orphaned"));
  CHECK(contains(o.out, "; lost are bytes ["));
  CHECK(s.served.up().status == 0);

  // Its files can be written again.
  for (int again = 0; again < 2; ++again) {
    o = s.run("replace-node -q 1 --store " + s.served.url());
    INFO(o.err);
    CHECK(o.status == 0);
    CHECK(contains(o.out, "1 files have bytes on node 1"));
  }
  CHECK(contains(s.run("replace-node 1 /x --store " + s.served.url()).err, "ooc up --forget-node N"));
  CHECK(contains(s.run("replace-node 2 --store " + s.served.url()).err, "the store has nodes 0 to 1"));
  CHECK(contains(s.run("replace-node one --store " + s.served.url()).err, "'one' is no number of a node"));
  o = s.read("both");
  CHECK(o.status == 1);
  CHECK(contains(o.err, "are lost"));
  o = s.run("import -q --type u1 --shape 20000 --at 0 bytes both --store " + s.served.url());
  INFO(o.err);
  CHECK(o.status == 0);
  CHECK(s.read("both").status == 0);
  CHECK(contents(s.folder / "back") == numbered(20'000));
  CHECK(s.run("verify -q --store " + s.served.url()).status == 0);
}

TEST_CASE("a node with a new folder is refused at once, by up and to programs, and goes on when its own is back") {
  two_node_store s;
  const fs::path identity = s.lost() / "oocarray-iod";
  const std::string own = contents(identity);
  std::string other = own.substr(0, own.find("store "));
  std::swap(other[other.find("folder ") + 7], other[other.find("folder ") + 8]);
  other[other.find("folder ") + 9] = other[other.find("folder ") + 9] == '0' ? '1' : '0';
  fs::rename(s.lost(), s.folder / "own");
  fs::create_directory(s.lost());
  write(identity, other);

  outcome o = s.served.up("--wait 600");
  INFO(o.err);
  CHECK(o.status == 1);
  CHECK(contains(o.err, "iod-1: node 1 has its stripe objects in folder"));
  CHECK(contains(o.err, "--forget-node 1"));
  CHECK(contains(s.run("ping " + s.served.url()).out, "down: node 1 has its stripe objects in folder"));
  s.check_first_is_whole();
  o = s.read("both");
  INFO(o.err);
  CHECK(o.status == 1);
  CHECK(contains(o.err, "both"));
  CHECK(contains(o.err, "node 1 has its stripe objects in folder"));

  CHECK(s.served.down().status == 0);
  fs::remove_all(s.lost());
  fs::rename(s.folder / "own", s.lost());
  CHECK(s.served.up().status == 0);
  CHECK(s.read("both").status == 0);
}

TEST_CASE("the folder of another store in the place of a node's is named, and not served") {
  two_node_store s;
  {
    servers other(s.folder / "other", 2);
    REQUIRE(other.down().status == 0);
  }
  fs::rename(s.lost(), s.folder / "own");
  fs::rename(s.folder / "other" / "iod-1", s.lost());
  const outcome o = s.served.up("--wait 600");
  CHECK(o.status == 1);
  CHECK(contains(o.err, "iod-1: folder '" + s.lost().string() + "' belongs to store "));
  s.check_first_is_whole();
  CHECK(contains(s.read("both").err, "the folder of node 1 was missing, or another one"));
}

TEST_CASE("no new store is made beside I/O servers' folders whose metadata folder is missing") {
  two_node_store s;
  fs::rename(s.served.dir() / "metad", s.folder / "metad");
  const std::string store = contents(s.served.dir() / "iod-0" / "oocarray-iod");
  const outcome o = s.served.up();
  CHECK(o.status == 1);
  CHECK(contains(o.err, "iod-0 belongs to store " + store.substr(store.find("store ") + 6, 36)));
  CHECK_FALSE(fs::exists(s.served.dir() / "metad" / "metadata.sqlite"));
  fs::remove_all(s.served.dir() / "metad");
  fs::rename(s.folder / "metad", s.served.dir() / "metad");
  CHECK(s.served.up().status == 0);
  CHECK(s.read("both").status == 0);
}

TEST_CASE("start waits until the server listens, and says what the log says where it has ended") {
  shell sh;
  const outcome o = sh.run("start --dir c metad");
  CHECK(o.status == 1);
  CHECK(o.out.empty());
  CHECK(contains(o.err, "metad has ended"));
  CHECK(contains(o.err, "'--folder' is required"));
  const std::string address = "127.0.0.1:" + free_port();
  sh.ok("start --dir c metad -- --nodes 1 --listen " + address + " --folder " + (sh.folder / "c/metad").string());
  CHECK(contains(contents(sh.folder / "c/log/metad.log"), "listening on " + address));
  sh.ok("stop --dir c metad");
}

TEST_CASE("a server whose process id cannot be written down is not started") {
  shell sh;
  fs::create_directories(sh.folder / "c/run");
  fs::create_symlink("/dev/full", sh.folder / "c/run/metad.pid.new");
  const std::string address = "127.0.0.1:" + free_port();
  const std::string start =
      "start --dir c metad -- --nodes 1 --listen " + address + " --folder " + (sh.folder / "metad").string();
  const outcome o = sh.run(start);
  CHECK(o.status == 1);
  CHECK(o.err.starts_with("ooc: metad: its process id: "));
  CHECK(contains(o.err, "No space left on device"));
  const auto runs = [&] {
    for (const auto& e : fs::directory_iterator("/proc"))
      if (contains(contents(e.path() / "cmdline"), address)) return true;
    return false;
  };
  CHECK(soon([&] { return !runs(); }, std::chrono::seconds(10)));
  fs::remove(sh.folder / "c/run/metad.pid.new");
  sh.ok(start);
  CHECK(runs());
  sh.ok("stop --dir c metad");
}

TEST_CASE("down stops every server and loses nothing") {
  cluster_shell sh(2);
  const std::string data = numbered(3'000'000);
  write(sh.folder / "a", data);
  sh.on("import --type u1 --shape 3000000 a a");
  const std::string url = sh.served.url();
  outcome o = sh.served.down();
  CHECK(o.status == 0);
  for (const char* name : {"metad", "iod-0", "iod-1"}) {
    CHECK(contains(o.out, name));
    CHECK(sh.served.pid(name) == 0);
  }
  CHECK(sh.run("ping " + url).status == 1);
  o = sh.served.down();
  CHECK(o.status == 0);
  CHECK(contains(o.out, "was not running"));
  o = sh.served.up();
  INFO(o.err);
  REQUIRE(o.status == 0);
  CHECK(servers::last_line(o.out) == url);  // the same ports
  sh.on("export --format raw a b");
  CHECK(contents(sh.folder / "b") == data);
}

TEST_CASE("down says which server does not stop") {
  cluster_shell sh(1);
  REQUIRE(sh.served.send("iod-0", SIGSTOP));
  const outcome o = sh.served.down("--wait 1");
  CHECK(o.status == 1);
  CHECK(contains(o.err, "iod-0"));
  CHECK(contains(o.err, std::to_string(sh.served.pid("iod-0"))));
}

TEST_CASE("arrays are copied between a local and a served store") {
  cluster_shell sh(3);
  const std::string data = numbered(301 * 203 * 4);
  write(sh.folder / "a", data);
  sh.ok("mkdir d");
  sh.ok("import --type f4 --shape 301x203 --tile 64x32 a d/a");
  sh.ok("attr set d/a unit kelvin");
  sh.ok("cp -r --to " + sh.served.url() + " d /");
  CHECK(sh.on("attr get d/a unit") == "kelvin\n");
  CHECK(contains(sh.on("stat d/a"), "nn 3"));
  sh.ok("cp -r --from " + sh.served.url() + " d e");
  sh.ok("export --format raw e/a b");
  CHECK(contents(sh.folder / "b") == data);
  CHECK(contains(sh.on("verify --json"), "\"clean\": true"));
}

TEST_CASE("several addresses and a key") {
  shell sh;
  sh.ok("keygen key");
  servers s(sh.folder / "keyed", 2,
            "--direct-io --iod-memory 16 --addresses 127.0.0.1,127.0.0.2 --key " + (sh.folder / "key").string());
  CHECK(contains(contents(sh.folder / "keyed" / "cluster.json"), "\"direct_io\": true"));
  CHECK(contains(contents(sh.folder / "keyed" / "cluster.json"), "\"iod_memory\": 16"));
  const outcome with = sh.run("ping --key key --json " + s.url());
  INFO(with.err << with.out);
  CHECK(with.status == 0);
  CHECK(nlohmann::json::parse(with.out).at("servers").size() == 5);
  const outcome without = sh.run("ping " + s.url(), "HOME=/nonexistent");
  CHECK(without.status == 1);
  CHECK(contains(without.out, "key"));
}

TEST_CASE("what up and down cannot do is refused in one line") {
  shell sh;
  sh.refused("up", "--dir");
  sh.refused("up --dir c", "--nodes");
  sh.refused("up --dir c --nodes 0", "--nodes");
  sh.refused("up --dir c --nodes 1 --port 70000", "--port");
  sh.refused("up --dir c --nodes 1 --addresses 192.0.2.1", "192.0.2.1");  // not loopback, no key
  sh.refused("down --dir nowhere", "nowhere");
  CHECK_FALSE(fs::exists(sh.folder / "nowhere"));
  sh.refused("down", "--dir");
  sh.refused("ping local:/tmp", "local:/tmp");
  sh.refused("top --once local:/tmp", "local:/tmp");
  {
    servers s(sh.folder / "s", 1);
    s.down();
    sh.refused("up --dir s --nodes 2", "1 nodes");
  }
  // A port that somebody has.
  servers s(sh.folder / "t", 1);
  const std::string port = s.url().substr(s.url().rfind(':') + 1);
  sh.refused("up --dir u --nodes 1 --wait 5 --port " + port.substr(0, port.find('/')), "in use");
}

namespace {

/// Another program that listens at a port of this machine.
class listener {
 public:
  explicit listener(unsigned port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(static_cast<std::uint16_t>(port));
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
    REQUIRE(::listen(fd_, 1) == 0);
  }
  ~listener() { ::close(fd_); }
  listener(const listener&) = delete;

 private:
  const int fd_;
};

}  // namespace

TEST_CASE("an I/O server whose port another program has is named, and the others of a store that is there serve") {
  cluster_shell sh(2);
  const unsigned port = static_cast<unsigned>(std::stoul(sh.served.url().substr(sh.served.url().rfind(':') + 1)));
  const auto says = [](const outcome& o, const std::string& server, unsigned at) {
    INFO(o.out << o.err);
    CHECK(o.status == 1);
    CHECK(o.err.starts_with("ooc: " + server + " cannot have 127.0.0.1:" + std::to_string(at)));
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
  };
  {
    // That of a node that the store is to get: it stays as it is.
    const listener other(port + 3);
    const pid_t metad = sh.served.pid("metad");
    says(sh.served.up("--nodes +1"), "iod-2", port + 3);
    CHECK(sh.served.pid("metad") == metad);
    CHECK(sh.run("ping " + sh.served.url()).status == 0);
    CHECK(sh.served.up().out == "already up\n" + sh.served.url() + "\n");
  }
  REQUIRE(sh.served.up("--nodes +1").status == 0);
  REQUIRE(sh.served.down().status == 0);
  {
    const listener other(port + 2);
    const outcome o = sh.served.up();
    says(o, "iod-1", port + 2);
    CHECK(o.out == "3 servers started\n" + sh.served.url() + "\n");
    const auto ping = sh.json("ping");
    for (const auto& s : ping.at("servers")) CHECK(s.at("up") == (s.at("server") != "iod 1"));
  }
  CHECK(sh.served.up().out == "1 servers started\n" + sh.served.url() + "\n");
  CHECK(sh.run("ping " + sh.served.url()).status == 0);
}

TEST_CASE("servers on several hosts are started and stopped through a launcher") {
  shell sh;
  // "Hosts" that are this machine, and a launcher that writes down where it was sent.
  const fs::path launcher = sh.folder / "launcher";
  write(launcher, "#!/bin/sh\necho \"$1\" >> " + (sh.folder / "visited").string() + "\nshift\nexec sh -c \"$*\"\n");
  fs::permissions(launcher, fs::perms::owner_all);
  const std::string address = "127.0.0.1:" + free_port();
  write(sh.folder / "hosts", "# a cluster\nhead metad " + (sh.folder / "head").string() + " " + address + "\nn1 iod " +
                                 (sh.folder / "n1").string() + " 127.0.0.1:" + free_port() + "\nn2 iod " +
                                 (sh.folder / "n2").string() + " 127.0.0.1:" + free_port() +
                                 " 127.0.0.2:" + free_port() + "  # two channels\n");
  const std::string options = " --hosts hosts --launcher " + launcher.string() + " --ooc " OOC_COMMAND;
  const std::string out = sh.ok("up" + options);
  CHECK(servers::last_line(out) == "ooc://" + address + "/");
  CHECK(contains(out, "n2: iod-1 started"));
  // It is new everywhere, and is then started.
  CHECK(contents(sh.folder / "visited") == "head\nn1\nn2\nhead\nn1\nn2\n");
  CHECK(sh.run("ping ooc://" + address).status == 0);
  CHECK(contains(sh.ok("up" + options), "n1: iod-0 is running already"));
  const std::string stopped = sh.ok("down" + options);
  CHECK(contains(stopped, "head: metad stopped"));
  CHECK(contains(stopped, "n2: iod-1 stopped"));
  CHECK(contains(sh.ok("down" + options), "was not running"));

  // A lost folder on a host.
  fs::remove_all(sh.folder / "n2" / "iod-1");
  const outcome partly = sh.run("up" + options);
  CHECK(partly.status == 1);
  CHECK(servers::last_line(partly.out) == "ooc://" + address + "/");
  CHECK(contains(partly.err, "iod 1"));
  CHECK(contains(partly.out, "n1: iod-0 started"));
  CHECK(contains(partly.out, "n2: iod-1 does not serve"));
  CHECK(contains(partly.err, "node 1 has its stripe objects in folder"));
  CHECK(contains(sh.run("up --forget-node 2" + options).err, "nodes 0 to 1"));
  CHECK(contains(sh.ok("up --forget-node 1" + options), "head: metad started"));
  sh.ok("down" + options);

  // The metadata are lost, or their disk is not mounted.
  fs::rename(sh.folder / "head" / "metad", sh.folder / "head" / "kept");
  sh.refused("up" + options, "iod-0 on n1 belongs to store");
  CHECK_FALSE(fs::exists(sh.folder / "head" / "metad"));
  fs::rename(sh.folder / "head" / "kept", sh.folder / "head" / "metad");
  sh.ok("up" + options);
  sh.ok("down" + options);

  sh.refused("up --hosts nowhere", "nowhere");
  write(sh.folder / "bad", "a metad /x\nb disk /y\n");
  sh.refused("up --hosts bad", "line 2");
  write(sh.folder / "bad", "a iod /x\n");
  sh.refused("up --hosts bad", "metad");
  write(sh.folder / "bad", "a metad /x\nb iod y\n");
  sh.refused("up --hosts bad", "absolute");
  write(sh.folder / "bad", "a metad /x\nb iod /y\n");
  sh.refused("up --hosts bad --launcher false", "host a");
  sh.refused("up --hosts bad --launcher srun", "--dir");
}

TEST_CASE("a host that cannot be reached is named, and the servers of the others are started and stopped") {
  shell sh;
  const fs::path launcher = sh.folder / "launcher", dead = sh.folder / "dead";
  write(launcher,
        "#!/bin/sh\nif [ \"$1\" = \"$(cat " + dead.string() +
            ")\" ]; then echo \"connect to $1: No route to host\" >&2; exit 255; fi\nshift\nexec sh -c \"$*\"\n");
  fs::permissions(launcher, fs::perms::owner_all);
  write(dead, "none");
  const std::string address = "127.0.0.1:" + free_port();
  write(sh.folder / "hosts", "head metad " + (sh.folder / "head").string() + " " + address + "\nn1 iod " +
                                 (sh.folder / "n1").string() + " 127.0.0.1:" + free_port() + "\nn2 iod " +
                                 (sh.folder / "n2").string() + " 127.0.0.1:" + free_port() + "\n");
  const std::string options = " --hosts hosts --launcher " + launcher.string() + " --ooc " OOC_COMMAND;
  const auto partly = [&](const std::string& command, const std::string& named) {
    const outcome o = sh.run(command + options);
    INFO(command << ": " << o.out << o.err);
    CHECK(o.status == 1);
    CHECK(o.err.starts_with("ooc: " + named));
    CHECK(contains(o.err, "No route to host"));
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
    return o.out;
  };
  write(dead, "n2");
  sh.refused("up" + options, "host n2");  // a new store begins with all its nodes
  CHECK_FALSE(fs::exists(sh.folder / "head"));
  write(dead, "none");
  sh.ok("up" + options);
  sh.ok("down" + options);

  write(dead, "n1");
  const std::string up = partly("up --wait 600", "iod-0: host n1: ");
  CHECK(servers::last_line(up) == "ooc://" + address + "/");
  CHECK(contains(up, "n1: iod-0 does not serve"));
  CHECK(contains(up, "n2: iod-1 started"));
  const std::string ping = sh.run("ping ooc://" + address).out;
  CHECK(std::count(ping.begin(), ping.end(), '\n') == 3);
  CHECK(contains(ping, "iod 0"));

  write(dead, "n2");
  const std::string down = partly("down", "iod-1: host n2: ");
  CHECK(contains(down, "n1: iod-0 was not running"));
  CHECK(contains(down, "head: metad stopped"));
  write(dead, "none");
  CHECK(contains(sh.ok("down" + options), "n2: iod-1 stopped"));
}

TEST_CASE("a Unix socket that is another server's on this host is no reason to wait") {
  shell sh;
  // As seen from n1: n2's server has its socket at the same path, on its own host.
  const std::string sock = "unix:" + (sh.folder / "iod.sock").string();
  const std::string head = "127.0.0.1:" + free_port(), n1 = "127.0.0.1:" + free_port(), n2 = "127.0.0.1:" + free_port();
  const fs::path launcher = sh.folder / "launcher";
  write(launcher, "#!/bin/sh\nif [ $1 = n2 ]; then elsewhere=\"s#'--listen' 'unix:#'--announce' '" + n2 +
                      "' '--announce' 'unix:#\"; fi\nshift\n"
                      "exec sh -c \"$(printf '%s' \"$*\" | sed \"$elsewhere\")\"\n");
  fs::permissions(launcher, fs::perms::owner_all);
  write(sh.folder / "hosts", "head metad " + (sh.folder / "head").string() + " " + head + "\nn1 iod " +
                                 (sh.folder / "n1").string() + " " + n1 + " " + sock + "\nn2 iod " +
                                 (sh.folder / "n2").string() + " " + n2 + " " + sock + "\n");
  const std::string options = " --hosts hosts --launcher " + launcher.string() + " --ooc " OOC_COMMAND;
  sh.ok("up" + options);
  const std::string pulses = sh.ok("ping ooc://" + head);
  CHECK(contains(pulses, "iod 0  " + sock));
  CHECK(contains(pulses, "iod 1  " + n2));
  CHECK_FALSE(contains(pulses, "iod 1  " + sock));
  sh.ok("down" + options);
}
