// Programs that live on while the machine of one of their servers loses its power and comes back.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "epoch_file.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/service/removals.hpp"
#include "storage/service/store_core.hpp"
#include "support/cluster_fixture.hpp"
#include "support/node_fixture.hpp"
#include "support/thread_group.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

constexpr std::size_t length = 16 << 10;
constexpr std::uint64_t memory = 1_MiB;

using plate = ooc_array<double, 1>;

void fill(plate& a, double value) {
  for (std::size_t i = 0; i < length; ++i) a[i] = value;
}

/// A store on one node, whose servers are of two machines.
class two_machines {
 public:
  std::string url() const { return servers_.url(); }
  fs::path meta() const { return servers_.folder().path() / "meta"; }
  fs::path node() const { return servers_.folder().path() / "node0"; }
  std::shared_ptr<storage::remote_metadata> client() const { return servers_.client(); }

  /// What the metadata server has now is what will be left of its database.
  void note_database() {
    servers_.metad().stop();
    copied_.emplace();
    for (const auto& f : fs::directory_iterator(meta()))
      if (is_of_database(f.path())) fs::copy_file(f.path(), copied_->path() / f.path().filename());
    servers_.metad().start();
  }
  void lose_power_of_metadata() {
    servers_.metad().kill();
    for (const auto& f : fs::directory_iterator(meta()))
      if (is_of_database(f.path())) fs::remove(f.path());
    for (const auto& f : fs::directory_iterator(copied_->path())) fs::copy_file(f.path(), meta() / f.path().filename());
    pretend_to_restart(meta());
    servers_.metad().start();
  }
  /// The stripe object of the file stays, and what was not synced of it may be lost.
  void lose_power_of_node(file_id id) {
    servers_.iod(0).kill();
    change_boot(node(), id);
    pretend_to_restart(node());
    servers_.iod(0).start();
  }
  /// Both machines are shut down and started.
  void restart_as_planned() {
    for (const fs::path& folder : {meta(), node()}) {
      server_process& s = folder == meta() ? servers_.metad() : servers_.iod(0);
      REQUIRE(s.stop() == 0);
      pretend_to_restart(folder);
      s.start();
    }
  }
  void kill_and_start() {
    servers_.metad().restart();
    servers_.iod(0).restart();
  }

 private:
  static bool is_of_database(const fs::path& p) { return p.filename().string().starts_with("metadata.sqlite"); }

  cluster servers_{{.nodes = 1, .io_servers = 1}};
  std::optional<temporary_folder> copied_;
};

file_id id_of(const store& s, const std::string& path) { return s.core()->metadata().lookup(path).id; }

/// What it throws; empty: nothing.
std::string thrown_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return (e.code() == std::errc::io_error ? "EIO: " : "another: ") + std::string(e.what());
  }
  return {};
}

bool tells_of_the_loss(const std::string& thrown) {
  return thrown.starts_with("EIO: ") && thrown.find("has lost its power") != thrown.npos;
}

}  // namespace

TEST_CASE("what a program wrote and a node's machine lost is not said to be durable, until the array is opened again") {
  two_machines m;
  runtime rt({.memory = memory});
  const store s = store::open(m.url());
  {
    plate a(rt, s, "a", ooc::create, {length}), b(rt, s, "b", ooc::create, {length});
    fill(a, 1);
    a.writeback();
    fill(b, 2);
    b.writeback(ooc::durable);
    m.lose_power_of_node(id_of(s, "a"));
    const std::string thrown = thrown_by([&] { a.writeback(ooc::durable); });
    INFO(thrown);
    CHECK(tells_of_the_loss(thrown));
    CHECK(thrown.find("array 'a'") != thrown.npos);
    CHECK(thrown.find("node 0 (127.0.0.1:") != thrown.npos);
    a.invalidate(ooc::discard);
    CHECK(thrown_by([&] { b.writeback(ooc::durable); }).empty());
    b.invalidate();
    CHECK(b[length - 1] == 2);
  }
  plate again(rt, s, "a", ooc::open);
  fill(again, 3);
  again.writeback(ooc::durable);
  again.invalidate();
  CHECK(again[0] == 3);
}

TEST_CASE("a program is told nothing of servers that were killed, and of machines that were restarted as planned") {
  const bool planned = GENERATE(false, true);
  CAPTURE(planned);
  two_machines m;
  runtime rt({.memory = memory});
  const store s = store::open(m.url());
  plate a(rt, s, "a", ooc::create, {length});
  fill(a, 1);
  a.writeback();
  s.core()->metadata().mkdir("folder", 0755, false);
  if (planned)
    m.restart_as_planned();
  else
    m.kill_and_start();
  a.invalidate();
  CHECK(a[length - 1] == 1);
  CHECK(thrown_by([&] { a.writeback(ooc::durable); }).empty());
  CHECK(thrown_by([&] { s.core()->metadata().sync(); }).empty());
}

TEST_CASE("a file that the metadata server's machine has lost is not said to be durable") {
  two_machines m;
  m.note_database();
  runtime rt({.memory = memory});
  const store s = store::open(m.url());
  plate a(rt, s, "a", ooc::create, {length});
  fill(a, 1);
  a.writeback();
  m.lose_power_of_metadata();
  for (int i = 0; i < 2; ++i) {
    const std::string thrown = thrown_by([&] { a.writeback(ooc::durable); });
    INFO(thrown);
    CHECK(tells_of_the_loss(thrown));
    CHECK(thrown.find("metadata server 127.0.0.1:") != thrown.npos);
  }
  CHECK(storage::lookup_if_there(s.core()->metadata(), "a") == std::nullopt);
}

TEST_CASE("a file that was durable before stays so, although others went with the metadata server's power") {
  two_machines m;
  runtime rt({.memory = memory});
  const store s = store::open(m.url());
  plate a(rt, s, "a", ooc::create, {length});
  fill(a, 1);
  a.writeback(ooc::durable);
  m.note_database();
  plate b(rt, s, "b", ooc::create, {length});
  m.lose_power_of_metadata();
  fill(a, 2);
  CHECK(thrown_by([&] { a.writeback(ooc::durable); }).empty());
  CHECK(tells_of_the_loss(thrown_by([&] { b.writeback(ooc::durable); })));
}

TEST_CASE("names that the metadata server's machine has lost are told of by the next sync, once") {
  two_machines m;
  m.note_database();
  const auto client = m.client();
  client->mkdir("folder", 0755, false);
  m.lose_power_of_metadata();
  CHECK(tells_of_the_loss(thrown_by([&] { client->sync(); })));
  CHECK(thrown_by([&] { client->sync(); }).empty());
  client->mkdir("folder", 0755, false);
  client->sync();
  m.lose_power_of_metadata();  // what was synced is no loss that a client could know of
  CHECK(thrown_by([&] { client->sync(); }).empty());
}

TEST_CASE("the bytes of a removed file stay where its name has come back with the power") {
  two_machines m;
  const store s = store::open(m.url());
  storage::store_core& core = *s.core();
  const std::vector<std::byte> data(length, std::byte{7});
  storage::new_file f;
  f.size = length;
  f.striping = {0, 1, 64 << 10};
  const storage::opened_file made = core.create("f", f);
  throw_if(made.file->write(request::contiguous(0, length), data.data()));
  core.sync(made);
  m.note_database();
  const storage::entry gone = core.metadata().remove("f");
  m.lose_power_of_metadata();
  CHECK(storage::remove_files(core, {gone}).size() == 1);
  std::vector<std::byte> back(length);
  const storage::opened_file again = core.open("f", storage::open_mode::read);
  throw_if(again.file->read(request::contiguous(0, length), back.data()));
  CHECK((back == data));
}

namespace {

/// What a rank does before its servers are touched, and after that.
using step = std::function<void(const store& s, plate& a, int rank)>;

/// Two ranks in processes of their own, which share the array "a".  What each of them throws in `after`.
class two_ranks {
 public:
  two_ranks(const std::string& url, const step& before, const step& after) {
    int between[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, between) == 0);
    for (int rank = 0; rank < 2; ++rank) {
      int parent[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, parent) == 0);
      children_[rank] = ::fork();
      if (children_[rank] == 0) {
        ::close(between[1 - rank]);
        ::_exit(run(url, rank, between[rank], parent[1], before, after));
      }
      ::close(parent[1]);
      sockets_[rank] = parent[0];
    }
    for (const int fd : between) ::close(fd);
  }
  ~two_ranks() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    for (const int fd : sockets_) ::close(fd);
  }
  void wait_until_before() {
    for (const int fd : sockets_) {
      char c = 0;
      REQUIRE(::read(fd, &c, 1) == 1);
      REQUIRE(c == 'o');
    }
  }
  std::array<std::string, 2> go_on() {
    for (const int fd : sockets_) REQUIRE(::write(fd, "g", 1) == 1);
    std::array<std::string, 2> said;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      said[rank].resize(4096);
      const ssize_t n = ::read(sockets_[rank], said[rank].data(), said[rank].size());
      said[rank].resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    }
    return said;
  }

 private:
  static int run(const std::string& url, int rank, int socket, int parent, const step& before, const step& after) {
    std::string said;
    try {
      runtime rt({.memory = memory});
      const store s = store::open(url);
      plate a(rt, s, "a", ooc::create, {length}, {.group = std::make_shared<process_pair>(rank, socket)});
      before(s, a, rank);
      char c = 'o';
      if (::write(parent, &c, 1) != 1 || ::read(parent, &c, 1) != 1) return 1;
      said = thrown_by([&] { after(s, a, rank); });
      said = said.empty() ? "nothing" : said;
      (void)!::write(parent, said.data(), said.size());
      ::_exit(0);  // closing the array would wait for the other rank
    } catch (const std::exception& e) {
      said = std::string("not as planned: ") + e.what();
      (void)!::write(parent, said.data(), said.size());
      return 2;
    }
  }

  pid_t children_[2]{};
  int sockets_[2]{-1, -1};
};

file_id id_of_array(const two_machines& m) { return m.client()->lookup("a").id; }

}  // namespace

TEST_CASE("no rank takes for durable what another one had written when the power went") {
  const bool of_node = GENERATE(true, false);
  CAPTURE(of_node);
  two_machines m;
  if (!of_node) m.note_database();
  // Rank 0 makes the entry and rank 1 writes; rank 0 syncs the nodes, and rank 1 the metadata.
  const step write_by_one = [](const store&, plate& a, int rank) {
    if (rank == 1) fill(a, 2);
    a.sync();
  };
  two_ranks ranks(m.url(), write_by_one, [](const store&, plate& a, int) { a.sync(ooc::durable); });
  ranks.wait_until_before();
  if (of_node)
    m.lose_power_of_node(id_of_array(m));
  else
    m.lose_power_of_metadata();
  for (const std::string& said : ranks.go_on()) {
    INFO(said);
    CHECK(tells_of_the_loss(said));
  }
}

TEST_CASE("what a durable sync of all ranks has covered is no loss to any of them") {
  two_machines m;
  const step written = [](const store&, plate& a, int rank) {
    if (rank == 1) fill(a, 2);
    a.sync(ooc::durable);
  };
  two_ranks ranks(m.url(), written, [](const store&, plate& a, int rank) {
    a.invalidate();
    if (rank == 1 && a[length - 1] != 2) throw usage_error(errc::conflict, "another value");
    a.sync(ooc::durable);
  });
  ranks.wait_until_before();
  m.lose_power_of_node(id_of_array(m));
  for (const std::string& said : ranks.go_on()) CHECK(said == "nothing");
}
