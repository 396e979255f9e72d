// Clients that change the size of a file, are out of touch with the metadata server for longer than the grace period,
// and go on then.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/node_replacement.hpp"
#include "support/cluster_fixture.hpp"
#include "support/faulty_io_service.hpp"
#include "support/faulty_proxy.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::testing;
using storage::entry;
using storage::file_shape;
using storage::opened_file;
using storage::striped_file;

namespace {

using bytes = std::vector<std::byte>;

constexpr std::uint64_t was = 30'000;  // on both nodes

bytes filled(std::size_t n, unsigned value) { return bytes(n, static_cast<std::byte>(value)); }

/// A file of `was` bytes 1 on a served store, which a program has open.
struct served_file {
  served_file() : own(store::open(servers.url())), f(file::create(own, "f", {.striping = {0, 2, 4096}})) {
    f.write_at(0, filled(was, 1));
    (void)f.size();
  }
  bytes found() const {
    const file other = file::open(store::open(servers.url()), "f");
    bytes b(other.size());
    CHECK(other.read_at(0, b) == b.size());
    return b;
  }
  /// As who opens it for writing, and finds nothing reserved that he would give back first.
  void open_anew() const {
    auto& core = *own.core();
    entry e = core.metadata().open("f", true);
    ++e.generation;
    REQUIRE_FALSE(core.opened(e).file->advance_objects());
    REQUIRE(core.metadata().set_generation(e.id, e.generation, allocated_size(e)));
  }
  std::uint64_t generation() const { return own.core()->metadata().lookup("f").generation; }

  cluster servers{{.nodes = 2, .io_servers = 2, .metad = {"--grace", "1"}}};
  store own;
  file f;
};

/// Another program, which does what store_core::resize() does until it would tell the I/O servers, and is then cut off
/// from the metadata server.
class slow_cutter {
 public:
  slow_cutter(cluster& servers, std::uint64_t end)
      : end_(end), way_(servers.metad().address()), core_(store::open("ooc://" + way_.address()).core()) {
    const auto id = core_->metadata().lookup("f").id;
    lock_ = storage::lock_size(*core_, id);
    now_ = core_->metadata().find(id);
    now_.capability = core_->metadata().size_capability(id, end);
  }
  ~slow_cutter() { way_.restore(); }

  void lose_touch() { way_.cut_off(); }
  void come_back() { way_.restore(); }
  failure cut() { return resize(end_, was, now_.cuts + 1); }
  failure take_back() { return resize(was, 0, now_.cuts); }
  void tell_metadata() { (void)core_->metadata().set_size(now_.id, end_, {}, 0); }

 private:
  failure resize(std::uint64_t size, std::uint64_t old_size, std::uint64_t cuts) {
    auto shape = std::make_shared<file_shape>(core_->opened(now_).file->shape());
    shape->size = size;
    shape->cuts = cuts;
    shape->cut = true;
    return striped_file(std::move(shape), core_->nodes()).resize_objects(old_size);
  }

  const std::uint64_t end_;
  faulty_proxy way_;
  std::shared_ptr<storage::store_core> core_;
  storage::size_lock_ptr lock_;
  entry now_;
};

}  // namespace

TEST_CASE("who loses the lock of a size in the middle of a cut cuts off nothing that others have written since") {
  served_file s;
  const std::uint64_t end = GENERATE(100, was - 1);
  CAPTURE(end);
  slow_cutter late(s.servers, end);
  late.lose_touch();
  bytes expected = filled(was, 1);
  SECTION("past the old end") {
    s.f.write_at(was, filled(500, 2));  // waits for the grace period to end
    expected.resize(was + 500, std::byte{2});
  }
  SECTION("after another cut") {
    s.f.truncate(20'000);
    s.f.write_at(19'000, filled(2'000, 2));
    expected.resize(19'000);
    expected.resize(21'000, std::byte{2});
  }
  CHECK(late.cut().code == errc::conflict);
  CHECK(s.found() == expected);
  CHECK(late.take_back().code == errc::conflict);
  late.come_back();
  CHECK_THROWS_AS(late.tell_metadata(), io_error);
  s.f.write_at(expected.size(), filled(9'000, 3));
  expected.resize(expected.size() + 9'000, std::byte{3});
  CHECK(s.found() == expected);
}

TEST_CASE("who has cut a file off and loses the lock of its size before he says so does it only once") {
  served_file s;
  slow_cutter late(s.servers, 100);
  REQUIRE_FALSE(late.cut());
  late.lose_touch();
  s.f.write_at(20'000, filled(8'000, 2));  // is refused, and ends what the other has begun
  bytes expected = filled(100, 1);
  expected.resize(20'000);
  expected.resize(28'000, std::byte{2});
  expected.resize(was);
  CHECK(s.found() == expected);
  CHECK(late.cut().code == errc::conflict);
  (void)late.take_back();  // to what there is
  CHECK(s.found() == expected);
}

TEST_CASE("who loses the lock of the size of an empty file takes back nothing of what others have made of it") {
  served_file s;
  s.f.truncate(0);
  slow_cutter late(s.servers, 0);  // as after a growth that has failed
  late.lose_touch();
  s.f.write_at(0, filled(was, 2));
  CHECK(late.cut().code == errc::conflict);
  CHECK(s.found() == filled(was, 2));
}

TEST_CASE("a lock of a size that was lost costs a new generation once, and one that was given back none") {
  served_file s;
  const std::uint64_t before = s.generation();
  s.f.write_at(was, filled(10, 2));
  CHECK(s.generation() == before);
  {
    slow_cutter late(s.servers, 100);
    late.lose_touch();
    s.f.write_at(was + 10, filled(10, 2));
    CHECK(s.generation() == before + 1);
  }
  for (int i = 2; i < 5; ++i) s.f.write_at(was + static_cast<std::uint64_t>(10 * i), filled(10, 2));
  CHECK(s.generation() == before + 1);
}

TEST_CASE("a cut that its client gives up, because a server does not answer, takes nothing from others later") {
  served_file s;
  file gives_up = file::open(store::open(s.servers.url() + "/?deadline=1s"), "f", file_access::read_write);
  s.servers.iod(1).pause();
  CHECK_THROWS_AS(gives_up.truncate(100), io_error);
  const std::uint64_t before = s.generation();
  s.servers.iod(1).resume();
  s.f.write_at(was, filled(9'000, 2));
  CHECK(s.generation() == before + 1);
  const bytes found = s.found();
  REQUIRE(found.size() == was + 9'000);
  CHECK(bytes(found.begin() + was, found.end()) == filled(9'000, 2));
}

TEST_CASE("a file whose lock of the size was lost gets its stripe object on a replaced node, and goes on") {
  served_file s;
  s.f.sync();
  slow_cutter late(s.servers, 100);
  late.lose_touch();
  s.servers.iod(1).kill();
  std::filesystem::remove_all(s.servers.folder() / "node1" / "shares");
  s.servers.iod(1).start();
  const auto replaced = storage::replace_objects(*s.own.core(), 1, [](std::uint64_t, std::uint64_t) {});
  for (const std::string& p : replaced.problems) FAIL_CHECK(p);
  CHECK(replaced.files == 1);
  CHECK(late.cut().code == errc::conflict);
  file other = file::open(store::open(s.servers.url()), "f", file_access::read_write);
  other.write_at(0, filled(was, 2));
  CHECK(s.found() == filled(was, 2));
}

namespace {

/// Another program whose requests to change sizes can be kept on their way to the I/O servers.
class slow_program {
 public:
  explicit slow_program(cluster& servers) : way_(servers.metad().address()) {
    const auto core = store::open("ooc://" + way_.address()).core();
    striped_file::nodes nodes;
    for (const auto& n : core->nodes())
      nodes.push_back(ways_.emplace_back(std::make_shared<storage::faulty_io_service>(n)));
    core_ = std::make_shared<storage::store_core>(
        core->url(), core->uuid(), std::shared_ptr<storage::metadata_service>(core, &core->metadata()), nodes);
  }

  /// Begins to give `f` a size; returns when that is done, or waits on its way to one of `held`.
  void begin(const char* name, std::uint64_t size, const std::vector<bool>& held) {
    for (std::size_t i = 0; i < held.size(); ++i)
      if (held[i]) ways_[i]->add({.call = storage::io_kind::resize, .times = 1, .hold = true});
    const opened_file f = core_->open(name, storage::open_mode::read_write);
    ended_ = failed_ = false;
    resizing_ = std::thread([this, f, size] {
      try {
        (void)core_->resize(f, size, {});
      } catch (const error&) {
        failed_ = true;
      }
      ended_ = true;
    });
    REQUIRE(soon([&] { return ended_ || waits(); }));
  }
  bool waits() const {
    return std::any_of(ways_.begin(), ways_.end(), [](const auto& w) { return w->held() != 0; });
  }
  ~slow_program() {
    come_back();
    if (resizing_.joinable()) end();
  }
  slow_program(const slow_program&) = delete;

  void lose_touch() { way_.cut_off(); }
  void come_back() { way_.restore(); }
  /// True where it has the size.
  bool end() {
    for (const auto& w : ways_) {
      w->clear();
      w->release();
    }
    resizing_.join();
    return !failed_;
  }

 private:
  faulty_proxy way_;
  std::vector<std::shared_ptr<storage::faulty_io_service>> ways_;
  std::shared_ptr<storage::store_core> core_;
  std::thread resizing_;
  std::atomic<bool> ended_{false}, failed_{false};
};

}  // namespace

TEST_CASE("resizes that are late, refused or beside openings leave what others have written whole") {
  served_file s;
  slow_program other(s.servers);
  const std::uint64_t seed = random_seed("late resizes");
  std::mt19937_64 random(seed);
  bytes expected = filled(was, 1);
  const int count = rounds(8, 60);
  for (int round = 0; round < count; ++round) {
    const std::uint64_t size = between(random, 0, 60'000);
    const std::uint64_t nodes = between(random, 1, 3);
    const bool lost = round % 2 == 0;
    CAPTURE(seed, round, size, nodes, lost);
    other.begin("f", size, {(nodes & 1) != 0, (nodes & 2) != 0});
    if (!other.waits() || !lost) {
      for (std::uint64_t i = between(random, 0, 2); i > 0; --i) s.open_anew();
      CHECK(other.end());
      expected.resize(size);
      REQUIRE(s.found() == expected);
      continue;
    }
    other.lose_touch();
    std::vector<bool> ours(expected.size());  // written, or seen, since the lock was lost
    for (std::uint64_t i = between(random, 1, 3); i > 0; --i) {
      if (between(random, 0, 2) == 0) {
        const std::uint64_t end = between(random, 0, expected.size());
        s.f.truncate(end);
        expected.resize(end);
        ours.resize(end);
      }
      const std::uint64_t at = expected.size() + between(random, 0, 5'000), n = between(random, 1, 9'000);
      s.f.write_at(at, filled(n, 2 + static_cast<unsigned>(round)));
      ours.resize(at + n, true);
      expected.resize(at);
      expected.resize(at + n, static_cast<std::byte>(2 + round));
    }
    other.come_back();
    CHECK_FALSE(other.end());
    const bytes found = s.found();
    REQUIRE(found.size() == expected.size());
    // A part of the cut may have been made in time.
    for (std::uint64_t i = 0; i < found.size(); ++i)
      if (found[i] != expected[i] && (ours[i] || i < size || found[i] != std::byte{0})) FAIL("byte " << i);
    expected = found;
  }
}
