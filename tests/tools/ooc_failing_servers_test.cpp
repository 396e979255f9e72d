// Servers that are killed, stopped and started again while an example program runs on their store.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/shell.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;

namespace {

/// Jacobi on a plate of four times its memory.
constexpr const char* run_options = " --size 1201 --memory 6M --keep --json ";

/// The program, running beside the test.
class jacobi_run {
 public:
  jacobi_run(const std::string& store, unsigned iterations, const fs::path& files)
      : said_(files.string() + ".stdout"), thread_([this, store, iterations, files] {
          result_ = run_command(
              JACOBI + std::string(run_options) + "--iterations " + std::to_string(iterations) + " --store " + store,
              files.string());
          ended_ = true;
        }) {}
  ~jacobi_run() {
    if (thread_.joinable()) thread_.join();
  }
  bool ended() const { return ended_; }
  /// Its first phase is over: both plates are made, and it computes.
  bool computes() const {
    return soon([&] { return !contents(said_).empty(); });
  }
  outcome wait() {
    thread_.join();
    return result_;
  }

 private:
  const fs::path said_;
  std::atomic<bool> ended_{false};
  outcome result_;
  std::thread thread_;
};

struct run_on_servers : shell {
  std::string plate(const std::string& store, const std::string& name) {
    ok("export -f --store " + store + " --format raw " + name + " bytes");
    return contents(folder / "bytes");
  }
  /// Both plates, as they are after so many iterations on a local store.
  std::string expected(unsigned iterations) {
    jacobi_run local(url(), iterations, folder / "local");
    const outcome o = local.wait();
    INFO(o.out << o.err);
    REQUIRE(o.status == 0);
    return plate(url(), "jacobi.a") + plate(url(), "jacobi.b");
  }
};

}  // namespace

TEST_CASE("an I/O server killed in the middle of a run and started again: the same result") {
  constexpr unsigned iterations = 100;
  run_on_servers sh;
  const std::string right = sh.expected(iterations);
  servers s(sh.folder / "cluster", 3);
  jacobi_run run(s.url(), iterations, sh.folder / "run");
  std::mt19937_64 random(random_seed("killed I/O servers"));
  REQUIRE(run.computes());
  unsigned kills = 0;
  for (; !run.ended() && kills < 3; ++kills) {
    random_pause(std::chrono::milliseconds(between(random, 0, 500)));
    REQUIRE(s.send("iod-" + std::to_string(kills), SIGKILL));
    random_pause(std::chrono::milliseconds(between(random, 0, 400)));
    const outcome again = s.up();
    INFO(again.err);
    REQUIRE(again.status == 0);
  }
  CHECK(kills > 0);
  const outcome o = run.wait();
  INFO(o.out << o.err << s.logs());
  REQUIRE(o.status == 0);
  CHECK(sh.plate(s.url(), "jacobi.a") + sh.plate(s.url(), "jacobi.b") == right);
  sh.ok("verify --store " + s.url());
}

TEST_CASE("the metadata server killed while arrays are open: the run goes on to its end") {
  constexpr unsigned iterations = 50;
  run_on_servers sh;
  const std::string right = sh.expected(iterations);
  servers s(sh.folder / "cluster", 2);
  // At its end it tries until the deadline to give back what it has claimed.
  jacobi_run run(s.url() + "?deadline=10s", iterations, sh.folder / "run");
  REQUIRE(run.computes());
  REQUIRE(s.send("metad", SIGKILL));
  const outcome o = run.wait();
  INFO(o.out << o.err << s.logs());
  CHECK(o.status == 0);
  const outcome again = s.up();
  INFO(again.err);
  REQUIRE(again.status == 0);
  CHECK(sh.plate(s.url(), "jacobi.a") + sh.plate(s.url(), "jacobi.b") == right);
  sh.ok("verify --store " + s.url());
}

TEST_CASE("a run that --stage compute goes on with gives the right result, as often as it is asked to") {
  run_on_servers sh;
  const std::string run = std::string(JACOBI " --size 301 --memory 6M --store ") + sh.url();
  const auto ends_right = [&](const std::string& more) {
    const outcome o = run_command(run + more, (sh.folder / "run").string());
    INFO(more << o.out << o.err);
    CHECK(o.status == 0);
  };
  ends_right(" --iterations 3 --keep");
  ends_right(" --iterations 4 --stage compute --keep");
  ends_right(" --iterations 2 --stage compute --keep");
  ends_right(" --iterations 2 --stage create");
  ends_right(" --iterations 3 --stage compute");
}

// Each says which deadline it kept; how much later than that it ends is what the attack measures.
TEST_CASE("a program whose I/O server does not come back says that it waits, and ends in time") {
  run_on_servers sh;
  servers s(sh.folder / "cluster", 2);
  const int how = GENERATE(SIGKILL, SIGSTOP);
  CAPTURE(how);
  jacobi_run run(s.url() + "?deadline=4s", 100'000, sh.folder / "run");
  REQUIRE(run.computes());
  REQUIRE(s.send("iod-1", how));
  const outcome o = run.wait();
  INFO(o.out << o.err);
  CHECK((o.status == 74 || o.status == 1));
  CHECK(o.err.find("waiting for node 1") != std::string::npos);
  CHECK(o.err.find("until") != std::string::npos);
  CHECK(o.err.find("4 s") != std::string::npos);
}

TEST_CASE("a copy to a store that loses a server ends in time, with one line on what it waited for") {
  run_on_servers sh;
  servers s(sh.folder / "cluster", 2);
  const std::string victim = GENERATE("iod-0", "metad");
  CAPTURE(victim);
  write(sh.folder / "a", std::string(3'000'000, 'a'));
  sh.ok("import --type u1 --shape 3000000 a a");
  REQUIRE(s.send(victim, SIGSTOP));
  const outcome o = sh.run("cp -q --to " + s.url() + "?deadline=4s a b");
  INFO(o.err);
  CHECK(o.status == 1);
  CHECK(o.err.find(victim == "metad" ? "waiting for metadata server" : "waiting for node 0") != std::string::npos);
  // As the environment says, where the URL says nothing.
  CHECK(sh.run("ls --store " + s.url(), "OOC_DEADLINE=soon").err.find("OOC_DEADLINE") != std::string::npos);
  if (victim == "metad")
    CHECK(sh.run("ls --store " + s.url(), "OOC_DEADLINE=300ms").err.find("within 0.3 s") != std::string::npos);
}

TEST_CASE(
    "an I/O server silent beyond the deadline ends the program, which names it; a second run "
    "works") {
  run_on_servers sh;
  servers s(sh.folder / "cluster", 2);
  {
    jacobi_run run(s.url() + "?deadline=5s", 100'000, sh.folder / "run");
    REQUIRE(run.computes());
    REQUIRE(s.send("iod-1", SIGSTOP));
    const outcome o = run.wait();
    INFO(o.out << o.err);
    // Who meets the error first: an element access, which cannot throw, or a call, which does.
    CHECK((o.status == 74 || o.status == 1));
    CHECK(o.err.find("node 1") != std::string::npos);
    CHECK(o.err.find("jacobi") != std::string::npos);
  }
  REQUIRE(s.send("iod-1", SIGCONT));
  jacobi_run second(s.url(), 5, sh.folder / "run");
  const outcome o = second.wait();
  INFO(o.out << o.err << s.logs());
  CHECK(o.status == 0);
}
