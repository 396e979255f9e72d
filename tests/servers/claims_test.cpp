// Claims to write an array on a served store, clients that are out of touch with the metadata server, and those that
// were stopped.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "oocarray/commit.hpp"
#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/service/store_core.hpp"
#include "support/cluster_fixture.hpp"
#include "support/faulty_proxy.hpp"
#include "support/pauses.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t length = 4096;
constexpr std::uint64_t memory = 1_MiB;

using array = ooc_array<double, 1>;

void fill(array& a, double value) {
  for (std::size_t i = 0; i < length; ++i) a[i] = value;
}

/// Opens the array in a process of its own, changes it, and goes on only when told so.
class other_writer {
 public:
  /// `last`: what it does then; its text is what an exception said.
  other_writer(const std::string& url, const array_options<double>& how, const std::function<void(array&)>& last) {
    if (::pipe(to_) != 0 || ::pipe(from_) != 0) throw std::runtime_error("no pipes");
    child_ = ::fork();
    if (child_ != 0) return;
    std::string said = "nothing";
    try {
      runtime rt({.memory = memory});
      array a(rt, store::open(url, {.create = false}), "plate", ooc::open, how);
      fill(a, 2);
      char c = 'o';
      if (::write(from_[1], &c, 1) != 1 || ::read(to_[0], &c, 1) != 1) ::_exit(1);
      try {
        last(a);
      } catch (const error& e) {
        said = e.what();
      }
      a.invalidate(ooc::discard);
    } catch (const std::exception& e) {
      said = std::string("not as planned: ") + e.what();
    }
    (void)!::write(from_[1], said.data(), said.size());
    ::_exit(0);
  }
  ~other_writer() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    for (const int fd : {to_[0], to_[1], from_[0], from_[1]}) ::close(fd);
  }
  void wait_until_open() {
    char c = 0;
    REQUIRE(::read(from_[0], &c, 1) == 1);
    REQUIRE(c == 'o');
  }
  /// From now on the metadata server does not hear of it.
  void lose(server_process& metad) {
    ::kill(child_, SIGSTOP);
    metad.restart();
  }
  void kill() { ::kill(child_, SIGKILL); }
  /// Lets it go on; returns what it said at its end.
  std::string end() {
    ::kill(child_, SIGCONT);
    REQUIRE(::write(to_[1], "g", 1) == 1);
    std::string said(4096, '\0');
    const ssize_t n = ::read(from_[0], said.data(), said.size());
    said.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return said;
  }

 private:
  int to_[2], from_[2];
  pid_t child_ = -1;
};

struct served_plate {
  served_plate() {
    runtime rt({.memory = memory});
    array a(rt, store::open(servers.url()), "plate", create, {length}, {.fill = 1.0});
    a.writeback(ooc::durable);
  }
  double first_of_all_equal() {
    runtime rt({.memory = memory});
    const array a(rt, store::open(servers.url()), "plate", open_read_only);
    for (std::size_t i = 0; i < length; ++i) CHECK(a[i] == a[0]);
    return a[0];
  }

  cluster servers{{.nodes = 2, .io_servers = 2, .metad = {"--grace", "2"}}};
};

}  // namespace

TEST_CASE("who has lost his claim to an array stores nothing over the bytes of the one who has it now") {
  served_plate plate;
  for (const bool closed_again : {true, false})
    for (const bool shared : {true, false}) {
      CAPTURE(closed_again, shared);
      other_writer lost(plate.servers.url(), {}, [](array& a) { a.writeback(); });
      lost.wait_until_open();
      lost.lose(plate.servers.metad());
      std::string said;
      {
        runtime rt({.memory = memory});
        array a(rt, store::open(plate.servers.url()), "plate", ooc::open, {.shared = shared, .wait_for_writer = 30s});
        fill(a, 3);
        a.writeback();
        if (closed_again) a.close();
        said = lost.end();
        INFO(said);
        CHECK(said.find("'plate'") != std::string::npos);
        CHECK(said.find("ended its claim") != std::string::npos);
        CHECK(said.find("--grace") != std::string::npos);
      }
      CHECK(plate.first_of_all_equal() == 3);
    }
}

TEST_CASE("who loses his claim while he opens an array ends no claim of the one who has it now, and does not open it") {
  const bool looked_up = GENERATE(false, true);
  CAPTURE(looked_up);
  served_plate plate;
  faulty_proxy way(plate.servers.metad().address());
  const auto late = store::open("ooc://" + way.address()).core(), other = store::open(plate.servers.url()).core();
  const std::vector<std::byte> threes(length * sizeof(double), std::byte{3});
  std::shared_ptr<void> lost, kept;
  storage::opened_file theirs;
  const auto write = [&] { throw_if(theirs.file->write(request::contiguous(0, threes.size()), threes.data())); };
  const auto lose_claim = [&] {
    way.cut_off();
    const storage::claim_taker take{[&](const storage::entry& e) {
                                      return soon([&] {
                                        kept = other->metadata().claim_writer(e.id, false);
                                        return kept != nullptr;
                                      });
                                    },
                                    true};
    theirs = other->open("plate", storage::open_mode::read_write, false, take);
    write();
    way.restore();
  };
  const storage::claim_taker take{[&](const storage::entry& e) {
                                    lost = late->metadata().claim_writer(e.id, false);
                                    if (!looked_up) lose_claim();
                                    return true;
                                  },
                                  true, false,
                                  [&](const storage::entry&) {
                                    if (looked_up) lose_claim();
                                  }};
  CHECK_THROWS_WITH(late->open("plate", storage::open_mode::read_write, false, take),
                    Catch::Contains("'plate' was not opened for writing") && Catch::Contains("--grace"));
  REQUIRE(kept);
  write();
  std::vector<std::byte> found(threes.size());
  throw_if(theirs.file->read(request::contiguous(0, found.size()), found.data()));
  CHECK(found == threes);
  // Once the other has closed it, it opens.
  theirs = {};
  kept.reset();
  const storage::claim_taker again{[&](const storage::entry& e) {
                                     lost = late->metadata().claim_writer(e.id, false);
                                     return true;
                                   },
                                   true};
  CHECK(late->open("plate", storage::open_mode::read_write, false, again).meta.id != 0);
}

TEST_CASE("who has lost his claim to an array with commits makes none of what another writes there") {
  served_plate plate;
  {
    runtime rt({.memory = memory});
    array a(rt, store::open(plate.servers.url()), "plate", create, {length}, {.commits = true, .replace = true});
    fill(a, 1);
    commit({&a});
  }
  other_writer lost(plate.servers.url(), {}, [](array& a) { commit({&a}); });
  lost.wait_until_open();
  lost.lose(plate.servers.metad());
  {
    runtime rt({.memory = memory});
    const store s = store::open(plate.servers.url());
    array a(rt, s, "plate", ooc::open, {.wait_for_writer = 30s});
    CHECK(a[0] == 1);
    fill(a, 3);
    a.writeback();
    const std::string said = lost.end();
    CHECK(said.find("'plate'") != std::string::npos);
    // As if it had prepared the nodes before.
    const store other = store::open(plate.servers.url());
    auto& metadata = other.core()->metadata();
    const auto id = metadata.lookup("plate").id;
    CHECK_THROWS_WITH(metadata.ask(storage::calls::decide{{{id, 1}}, 1, {}}), Catch::Contains("the claim to write it"));
    CHECK_THROWS_WITH(metadata.ask(storage::calls::roll_back{id}), Catch::Contains("the claim to write it"));
    commit({&a});
    CHECK(a.last_commit()->number == 2);
  }
  CHECK(plate.first_of_all_equal() == 3);
}

TEST_CASE("who shares an array and has lost his claim stores nothing where another writes it alone") {
  served_plate plate;
  other_writer lost(plate.servers.url(), {.shared = true}, [](array& a) { a.writeback(); });
  lost.wait_until_open();
  lost.lose(plate.servers.metad());
  {
    runtime rt({.memory = memory});
    array a(rt, store::open(plate.servers.url()), "plate", ooc::open, {.wait_for_writer = 30s});
    fill(a, 3);
    a.writeback();
    CHECK(lost.end().find("ended its claim") != std::string::npos);
  }
  CHECK(plate.first_of_all_equal() == 3);
}

TEST_CASE("who comes back within the grace period, or before anybody else has come, goes on") {
  served_plate plate;
  other_writer stopped(plate.servers.url(), {}, [](array& a) { a.writeback(); });
  stopped.wait_until_open();
  stopped.lose(plate.servers.metad());
  let_pass(3s);  // past the grace period
  CHECK(stopped.end() == "nothing");
  CHECK(plate.first_of_all_equal() == 2);
}

TEST_CASE("who finds an array of a dead client is told when it will be free, and gets it then if he waits") {
  served_plate plate;
  {
    other_writer dies(plate.servers.url(), {}, [](array&) {});
    dies.wait_until_open();
    dies.kill();
  }
  const store s = store::open(plate.servers.url());
  runtime rt({.memory = memory});
  std::string said;
  CHECK(soon([&] {
    try {
      array(rt, s, "plate", ooc::open);
      said = "opened";
    } catch (const usage_error& e) {
      CHECK(e.code() == errc::busy);
      said = e.what();
    }
    return said.find("is open for writing in another process") == said.npos;  // its connection has not ended yet
  }));
  INFO(said);
  CHECK(said.find("'plate' was open for writing in a process") != std::string::npos);
  CHECK(said.find("has lost its connection") != std::string::npos);
  CHECK((said.find("is free in 1 s") != said.npos || said.find("is free in 2 s") != said.npos));
  CHECK(said.find("options.wait_for_writer") != std::string::npos);
  array a(rt, s, "plate", ooc::open, {.wait_for_writer = 30s});
  for (std::size_t i = 0; i < length; ++i) REQUIRE(a[i] == 1);  // what it had not written back
}

TEST_CASE("a program that only computes keeps its claim when the metadata server is started again") {
  served_plate plate;
  other_writer silent(plate.servers.url(), {}, [](array& a) { a.writeback(); });
  silent.wait_until_open();
  plate.servers.metad().restart();
  let_pass(4s);  // twice the grace period
  {
    runtime rt({.memory = memory});
    CHECK_THROWS_WITH(array(rt, store::open(plate.servers.url()), "plate", ooc::open),
                      Catch::Contains("is open for writing in another process"));
  }
  CHECK(silent.end() == "nothing");
  CHECK(plate.first_of_all_equal() == 2);
}

TEST_CASE("a program that was stopped for longer than its deadline goes on, also where its server was started again") {
  const bool metadata = GENERATE(false, true), restarted = GENERATE(false, true);
  CAPTURE(metadata, restarted);
  cluster servers{{.io_servers = 1}};
  (void)store::open(servers.url());
  int ready[2], go[2];
  REQUIRE(::pipe(ready) == 0);
  REQUIRE(::pipe(go) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      file f = file::create(store::open(servers.url() + "?deadline=1s"), "f", {.size = 4096});
      const std::vector<std::byte> some(4096);
      f.write_at(0, some);
      char c = 'r';
      if (::write(ready[1], &c, 1) != 1 || ::read(go[0], &c, 1) != 1) ::_exit(2);
      if (metadata)
        (void)f.size();
      else
        f.write_at(0, some);
    } catch (const std::exception& e) {
      std::cout << e.what() << std::endl;
      ::_exit(1);
    }
    ::_exit(0);
  }
  char c = 0;
  REQUIRE(::read(ready[0], &c, 1) == 1);
  server_process& server = metadata ? servers.metad() : servers.iod(0);
  server.pause();
  REQUIRE(::write(go[1], &c, 1) == 1);
  let_pass(200ms);  // it has asked, and waits
  ::kill(child, SIGSTOP);
  if (restarted)
    server.restart();
  else
    server.resume();
  let_pass(3s);
  ::kill(child, SIGCONT);
  int status = 0;
  ::waitpid(child, &status, 0);
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
  CHECK(status == 0);
}
