#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <optional>
#include <set>
#include <thread>

#include "storage/namespace/sqlite.hpp"
#include "support/cluster_fixture.hpp"
#include "support/faulty_proxy.hpp"
#include "support/name_space.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::testing;
using namespace std::chrono_literals;

namespace {

/// Runs `body` in a child process that ends without a goodbye.
void in_lost_process(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      body();
      status = 0;
    } catch (const std::exception& e) {
      std::cerr << "child: " << e.what() << std::endl;
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(status == 0);
}

/// Creates, renames and removes files of its own; every call must succeed, and once.
void work(metadata_service& m, const std::string& name, int files, std::atomic<int>& failures) {
  try {
    m.mkdir(name, 0755, false);
    for (int i = 0; i < files; ++i) {
      const std::string path = name + "/" + std::to_string(i);
      const entry e = m.create(path, plain());
      m.commit(e.id);
      m.rename(path, path + "x");
      if (i % 3 == 0) {
        if (m.remove(path + "x").id != e.id) ++failures;
        m.forget(e.id);
      }
    }
  } catch (const std::exception& e) {
    std::cout << name << ": " << e.what() << std::endl;
    ++failures;
  }
}

/// The state that work() must have left.
void check_work(metadata_service& m, const std::string& name, int files) {
  std::set<std::string> expected;
  for (int i = 0; i < files; ++i)
    if (i % 3 != 0) expected.insert(name + "/" + std::to_string(i) + "x");
  std::set<std::string> there;
  for (const entry& e : m.list(name)) there.insert(e.path);
  CHECK(there == expected);
}

/// Makes a file "f".
file_id file_made_by(metadata_service& m) {
  m.commit(m.create("f", plain()).id);
  return m.lookup("f").id;
}

/// Of a client that reaches the metadata server by this way.
remote_metadata_options options_by(const faulty_proxy& way, const cluster& servers) {
  auto o = servers.client_options({0, 0});
  o.address = way.address();
  return o;
}

}  // namespace

TEST_CASE("a call whose reply is lost is answered again and never run twice") {
  cluster servers;
  const std::uint64_t seed = random_seed("lost replies");
  faulty_proxy proxy(servers.metad().address(), {.flip = 0.01, .drop = 0.0005, .cut = 0.03, .delay = 0.02}, seed);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto o = servers.client_options(me, 20s);
      o.client.who = {0, 0};
      o.address = proxy.address();
      std::shared_ptr<remote_metadata> m;
      while (!m) try {
          m = std::make_shared<remote_metadata>(o);
        } catch (const io_error&) {  // the first connection is not tried for long
        }
      work(*m, "t" + std::to_string(t), 100, failures);
    });
  for (auto& t : threads) t.join();
  CHECK(proxy.faults() > 20);
  CHECK(failures == 0);
  const auto m = servers.client({0, 0});
  for (int t = 0; t < 4; ++t) check_work(*m, "t" + std::to_string(t), 100);
  CHECK(m->dead().empty());
  CHECK(m->unfinished().empty());
}

TEST_CASE("a server killed in the middle of creates and renames loses nothing that it acknowledged") {
  cluster servers;
  std::atomic<int> failures{0}, running{4};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      work(*servers.client({0, 0}), "t" + std::to_string(t), 250, failures);
      --running;
    });
  std::mt19937_64 random(random_seed("killed metadata server"));
  for (int i = 0; i < 4; ++i) {
    random_pause(std::chrono::milliseconds(between(random, 20, 200)));
    servers.metad().restart();
  }
  for (auto& t : threads) t.join();
  CHECK(failures == 0);
  servers.metad().restart();
  const auto m = servers.client({0, 0});
  for (int t = 0; t < 4; ++t) check_work(*m, "t" + std::to_string(t), 250);
  CHECK(m->dead().empty());
}

TEST_CASE("what a lost client was making is abandoned, and its locks end, after the grace period") {
  cluster servers({.metad = {"--grace", "2"}});
  const auto m = servers.client({0, 0});
  const file_id id = file_made_by(*m);
  in_lost_process([&] {
    static auto lost = servers.client({0, 0});
    lost->create("half", plain());
    static auto size = lost->lock_size(id);
    static auto claim = lost->claim_writer(id, false);
    if (!claim) throw std::runtime_error("no claim");
  });
  CHECK(m->claim_writer(id, true) == nullptr);
  CHECK(m->unfinished().size() == 1);
  CHECK(m->dead().empty());
  CHECK(soon([&] { return m->claim_writer(id, true) != nullptr; }));
  CHECK(m->unfinished().empty());
  CHECK(m->dead().size() == 1);
  CHECK(m->lock_size(id));
  m->commit(m->create("half", plain()).id);
}

TEST_CASE("who is refused a claim learns whose it is, and how long a lost client keeps it") {
  cluster servers({.metad = {"--grace", "20"}});
  const auto m = servers.client({0, 0});
  const file_id id = file_made_by(*m);
  claim_holder other;
  {
    auto o = servers.client_options({0, 0});
    o.client.name = "jacobi 4711";
    remote_metadata alive(o);
    const auto claim = alive.claim_writer(id, false);
    CHECK(m->claim_writer(id, true, &other) == nullptr);
    CHECK(other.name == "jacobi 4711");
    CHECK(other.ends.count() == 0);
  }
  in_lost_process([&] {
    static auto lost = servers.client({0, 0});
    static auto claim = lost->claim_writer(id, false);
    if (!claim) throw std::runtime_error("no claim");
  });
  CHECK(soon([&] { return m->claim_writer(id, true, &other) == nullptr && other.ends.count() != 0; }));
  CHECK(other.name == "test");
  CHECK(other.ends <= 20s);
  CHECK(other.ends > 1s);
}

TEST_CASE("a client that leaves takes its locks and unfinished files with it at once") {
  cluster servers;
  const auto m = servers.client({0, 0});
  const file_id id = file_made_by(*m);
  {
    const auto other = servers.client({0, 0});
    other->create("half", plain());
    const auto claim = other->claim_writer(id, false);
    CHECK(m->claim_writer(id, false) == nullptr);
  }
  CHECK(m->claim_writer(id, false));
  CHECK(m->dead().size() == 1);
}

TEST_CASE("locks and files being made outlive a killed server") {
  cluster servers;
  const auto m = servers.client({0, 0}), other = servers.client({0, 0});
  const file_id id = file_made_by(*m);
  const entry half = m->create("half", plain());
  auto size = m->lock_size(id);
  auto claim = m->claim_writer(id, false);
  servers.metad().restart();
  CHECK(other->claim_writer(id, false) == nullptr);
  CHECK(other->unfinished() == std::vector<file_id>{half.id});
  CHECK(other->dead().empty());
  m->commit(half.id);
  CHECK(other->lookup("half").id == half.id);
  size.reset();
  claim.reset();
  CHECK(other->claim_writer(id, false));
  CHECK(other->lock_size(id));
}

TEST_CASE("a client with nothing to ask keeps its locks and unfinished files past a restart of the server") {
  cluster servers({.metad = {"--grace", "2"}});
  const auto silent = servers.client({0, 0});
  const file_id id = file_made_by(*silent);
  const entry half = silent->create("half", plain());
  const auto claim = silent->claim_writer(id, false);
  const auto size = silent->lock_size(id);
  servers.metad().restart();
  let_pass(4s);  // twice the grace period
  const auto other = servers.client({0, 0});
  CHECK(other->claim_writer(id, false) == nullptr);
  CHECK(other->unfinished() == std::vector<file_id>{half.id});
  CHECK(other->dead().empty());
  silent->commit(half.id);
}

TEST_CASE("a client with nothing to ask keeps its locks past the loss of its connection") {
  cluster servers({.metad = {"--grace", "2"}});
  const auto other = servers.client({0, 0});
  const file_id id = file_made_by(*other);
  faulty_proxy way(servers.metad().address());
  remote_metadata silent(options_by(way, servers));
  const auto claim = silent.claim_writer(id, false);
  way.cut_off();
  let_pass(300ms);
  way.restore();
  let_pass(4s);  // twice the grace period
  CHECK(other->claim_writer(id, false) == nullptr);
}

TEST_CASE(
    "a lock that ends while the server is away is free once the server is back, though its client asks nothing more") {
  cluster servers;
  const auto silent = servers.client({0, 0}), other = servers.client({0, 0});
  const file_id id = file_made_by(*silent);
  const auto claim = silent->claim_writer(id, true);  // held on
  for (const bool stopped : {false, true}) {
    CAPTURE(stopped);
    auto size = silent->lock_size(id);
    if (stopped)
      servers.metad().pause();
    else
      servers.metad().kill();
    size.reset();
    if (stopped)
      servers.metad().resume();
    else
      servers.metad().start();
    CHECK(other->lock_size(id));
    CHECK(other->claim_writer(id, false) == nullptr);
  }
}

namespace {

/// The database of the metadata server, as a full disk would be: what this says fails.
class failing_database {
 public:
  /// `what`: "DELETE" or "INSERT".
  failing_database(const cluster& servers, const std::string& what)
      : database_(servers.folder() / "meta" / "metadata.sqlite", sqlite::open_as::existing) {
    database_.execute("CREATE TRIGGER failing BEFORE " + what + " ON lease BEGIN SELECT RAISE(ABORT, 'no room'); END");
  }
  void heal() { database_.execute("DROP TRIGGER failing"); }
  std::int64_t locks() {
    sqlite::query q(database_, "SELECT count(*) FROM lease");
    q.next();
    return q.integer(0);
  }

 private:
  sqlite::connection database_;
};

}  // namespace

TEST_CASE("a lock that the server cannot take back now keeps its client from nothing, and is free later") {
  cluster servers;
  const auto a = servers.client({0, 0}), other = servers.client({0, 0});
  const file_id id = file_made_by(*a);
  auto claim = a->claim_writer(id, false);
  failing_database full(servers, "DELETE");
  claim.reset();
  CHECK(a->lookup("f").id == id);
  a->mkdir("folder", 0755, false);
  full.heal();
  CHECK(soon([&] { return other->claim_writer(id, false) != nullptr; }, 10s));
}

TEST_CASE("what a client has that leaves ends later where the server cannot end it at once") {
  cluster servers({.metad = {"--grace", "1"}});
  const auto other = servers.client({0, 0});
  const file_id id = file_made_by(*other);
  std::optional<failing_database> full;
  {
    const auto a = servers.client({0, 0});
    const auto claim = a->claim_writer(id, false);
    full.emplace(servers, "DELETE");
  }
  full->heal();
  CHECK(soon([&] { return other->claim_writer(id, false) != nullptr; }, 10s));
}

TEST_CASE("locks that the server cannot give back at once to who was away are given back later") {
  cluster servers({.metad = {"--grace", "1"}});
  const auto other = servers.client({0, 0});
  const file_id id = file_made_by(*other);
  faulty_proxy way(servers.metad().address());
  remote_metadata a(options_by(way, servers));
  const auto claim = a.claim_writer(id, false);
  way.cut_off();
  CHECK(soon([&] { return other->claim_writer(id, false) != nullptr; }));
  failing_database full(servers, "INSERT");
  way.restore();
  CHECK(soon([&] { return a.lookup("f").id == id; }));
  full.heal();
  // Looked up, not tried out: who tries may get the lock just before it is given back.
  CHECK(soon([&] { return full.locks() == 1; }));
  CHECK(other->claim_writer(id, false) == nullptr);
}

TEST_CASE("a call that comes again after the grace period of its client is not run twice") {
  cluster servers({.metad = {"--grace", "1"}});
  const auto other = servers.client({0, 0});
  faulty_proxy way(servers.metad().address());
  const auto a = std::make_shared<remote_metadata>(options_by(way, servers));
  const file_id id = a->create("f", plain()).id;
  a->commit(id);
  const auto claim = a->claim_writer(id, false);
  way.deafen();
  auto removed = std::async(std::launch::async, [&] { return a->remove("f"); });
  CHECK(soon([&] { return failure_code([&] { other->lookup("f"); }) == ENOENT; }));
  way.cut_off();
  const entry fresh = other->create("f", plain());
  other->commit(fresh.id);
  // Its claim ends with the grace period.
  CHECK(soon([&] { return other->statistics().leases == 0; }));
  let_pass(500ms);
  const bool killed = GENERATE(false, true);
  if (killed) servers.metad().restart();
  way.restore();
  CHECK(removed.get().id == id);
  CHECK(other->lookup("f").id == fresh.id);
}

TEST_CASE("who loses the lock of a size while it changes it does not take back what others have made of it") {
  cluster servers({.metad = {"--grace", "1"}});
  const auto other = servers.client({0, 0});
  const file_id id = file_made_by(*other);
  faulty_proxy way(servers.metad().address());
  remote_metadata a(options_by(way, servers));
  const auto lock = a.lock_size(id);
  way.cut_off();
  {
    const auto now = other->lock_size(id);  // waits for the grace period to end
    CHECK(other->set_size(id, 100, {}, 0));
  }
  way.restore();
  CHECK_THROWS_AS(a.set_size(id, 50, {}, 0), io_error);
  CHECK(other->lookup("f").size == 100);
}

TEST_CASE(
    "who takes the lock of a size that somebody has lost owes the file a new generation, also from a server that was "
    "killed") {
  cluster servers({.metad = {"--grace", "1"}});
  const auto other = servers.client({0, 0});
  const file_id id = file_made_by(*other);
  const auto owes = [&] { return other->lock_size(id)->owes_fence; };
  CHECK_FALSE(owes());
  faulty_proxy way(servers.metad().address());
  remote_metadata a(options_by(way, servers));
  const auto lose_lock = [&] {
    const auto lock = a.lock_size(id);
    way.cut_off();
    CHECK(soon([&] { return other->statistics().leases == 0; }));
    way.restore();
  };
  lose_lock();
  CHECK(owes());
  servers.metad().restart();
  CHECK(owes());
  CHECK(a.lock_size(id)->owes_fence);  // whoever it is
  REQUIRE(other->set_generation(id, 2, plain().size));
  CHECK_FALSE(owes());
  servers.metad().restart();
  CHECK_FALSE(owes());
  // Nobody has heard from the nodes.
  a.lock_size(id)->unsettled = true;
  CHECK(owes());
  REQUIRE(other->set_generation(id, 3, plain().size));
  CHECK_FALSE(owes());
  lose_lock();
  other->remove("f");
  sqlite::connection database(servers.folder() / "meta" / "metadata.sqlite", sqlite::open_as::existing);
  sqlite::query marks(database, "SELECT file FROM unsettled");
  CHECK_FALSE(marks.next());
}

TEST_CASE(
    "threads of one client that change the size of a file take turns, also where it has lost the lock meanwhile") {
  cluster servers({.metad = {"--grace", "1"}});
  const auto other = servers.client({0, 0});
  const file_id id = file_made_by(*other);
  faulty_proxy way(servers.metad().address());
  remote_metadata a(options_by(way, servers));
  auto lost = a.lock_size(id);
  way.cut_off();
  CHECK(soon([&] { return other->statistics().leases == 0; }));
  way.restore();
  std::atomic<bool> locked{false};
  std::thread next([&] {
    const auto lock = a.lock_size(id);
    locked = true;
  });
  CHECK(never_within(200ms, [&] { return locked.load(); }));
  CHECK(failure_code([&] { a.size_capability(id, 0); }) == EINVAL);
  lost.reset();
  next.join();
  CHECK(locked);
}

TEST_CASE("writers together share a file, a writer alone does not, and a size has one changer") {
  cluster servers;
  const auto a = servers.client({0, 0}), b = servers.client({0, 0});
  const file_id id = file_made_by(*a);
  auto one = a->claim_writer(id, true), two = b->claim_writer(id, true);
  CHECK(one);
  CHECK(two);
  CHECK_FALSE(b->claim_writer(id, false));
  one.reset();
  CHECK_FALSE(a->claim_writer(id, false));
  two.reset();
  CHECK(a->claim_writer(id, false));

  auto guard = a->lock_size(id);
  std::atomic<bool> got{false};
  std::thread t([&] {
    const auto mine = b->lock_size(id);
    got = true;
  });
  CHECK(never_within(100ms, [&] { return got.load(); }));
  CHECK(a->lookup("f").id == id);  // the server goes on
  guard.reset();
  t.join();
  CHECK(got);
}

TEST_CASE("a stopped server makes a call fail in time, with its name and a remedy") {
  cluster servers;
  const auto m = servers.client({0, 0}, 1500ms);
  servers.metad().pause();
  try {
    m->mkdir("a", 0755, false);
    FAIL("answered");
  } catch (const io_error& e) {
    const std::string what = e.what();
    INFO(what);
    CHECK(e.code() == std::errc::timed_out);
    CHECK(what.find(servers.metad().address()) != what.npos);
    CHECK(what.find("mkdir") != what.npos);
    CHECK(what.find("start the server") != what.npos);
    CHECK(what.find("not known") != what.npos);
    CHECK(what.find("within 1.5 s") != what.npos);
  }
  servers.metad().resume();
  // It counts as gone until somebody who asks after it is answered.
  CHECK(soon([&] {
    try {
      return m->lookup("").kind == entry_kind::folder;
    } catch (const io_error&) {
      return false;
    }
  }));
}

TEST_CASE("one verdict on a metadata server that is gone: later calls fail at once until it is back") {
  cluster servers;
  const auto m = servers.client({0, 0}, 1500ms);
  servers.metad().kill();
  const auto call = [&] {
    try {
      m->lookup("");
      return std::string("answered");
    } catch (const io_error& e) {
      CHECK(e.code() == std::errc::timed_out);
      return std::string(e.what());
    }
  };
  CHECK(call().find("no answer within 1.5 s") != std::string::npos);
  int at_once = 0;  // but for those that look whether it is back
  for (int i = 0; i < 20; ++i) at_once += call().find("at once") != std::string::npos;
  CHECK(at_once >= 15);
  servers.metad().start();
  CHECK(soon([&] { return call() == "answered"; }));
}

TEST_CASE("a call long after one that was given up early has its whole deadline") {
  cluster servers;
  const auto m = servers.client({0, 0}, 4s);
  servers.metad().kill();
  CHECK_THROWS_AS(m->abandon(1), io_error);  // after 2 s
  let_pass(2500ms);
  auto found = std::async(std::launch::async, [&] { return m->lookup("").kind; });
  CHECK(found.wait_for(1s) == std::future_status::timeout);
  servers.metad().start();
  CHECK(found.get() == entry_kind::folder);
}

TEST_CASE("who connects while the metadata server restarts waits for it") {
  cluster servers;
  servers.metad().kill();
  auto client = std::async(std::launch::async, [&] { return servers.client({0, 0}, 30s); });
  CHECK(client.wait_for(4s) == std::future_status::timeout);
  servers.metad().start();
  CHECK(client.get()->lookup("").kind == entry_kind::folder);
}

TEST_CASE("rights are renewed at half their life while they are held, and only then") {
  cluster servers({.metad = {"--capability-life", "2"}});
  const auto m = servers.client({0, 0});
  m->commit(m->create("f", plain()).id);
  capability_ptr held = m->open("f", true).capability;
  REQUIRE(held);
  const std::string first = held->bytes();
  CHECK(soon([&] { return held->bytes() != first; }));
  const std::string second = held->bytes();
  servers.metad().kill();
  CHECK(never_within(1500ms, [&] { return held->bytes() != second; }));
  servers.metad().start();
  CHECK(soon([&] { return held->bytes() != second; }));
  // A user who may only read keeps what it has, too.
  const auto reader = servers.client({2000, 2000});
  const capability_ptr look = reader->find(m->lookup("f").id).capability;
  REQUIRE(look);
  const std::string granted = look->bytes();
  CHECK(soon([&] { return look->bytes() != granted; }));
}

TEST_CASE("a long folder is listed in parts") {
  cluster servers;
  const auto m = servers.client({0, 0});
  m->mkdir("d", 0755, false);
  new_file f = plain(0);
  f.finished = true;
  for (int i = 0; i < 2500; ++i) m->create("d/" + std::to_string(i), f);
  m->set_attribute("d/7", "big", std::string(1 << 20, 'x'));
  m->set_attribute("d/8", "big", std::string(1 << 20, 'y'));
  const auto all = m->list("d");
  CHECK(all.size() == 2500);
  CHECK(std::is_sorted(all.begin(), all.end(), [](const entry& a, const entry& b) { return a.path < b.path; }));
  CHECK(m->lookup("d/8").attributes.at("big").size() == 1 << 20);
  for (const char* key : {"a", "b"}) m->set_attribute("d/7", key, std::string(1 << 20, 'x'));
  CHECK(failure_code([&] { m->set_attribute("d/7", "c", std::string(1 << 20, 'x')); }, "4 MiB") == EINVAL);
  CHECK(m->files().size() == 2500);
}
