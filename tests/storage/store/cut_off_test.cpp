// Files that one program cuts off while another has them open, and goes on writing within the size that it has seen.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "storage/namespace/local_metadata.hpp"
#include "storage/object/node_folder.hpp"
#include "storage/service/store_core.hpp"
#include "storage/service/writer_claim.hpp"
#include "support/faulty_io_service.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/store_from_environment.hpp"
#include "support/temporary_folder.hpp"
#include "support/thread_group.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

using bytes = std::vector<std::byte>;

bytes filled(std::size_t n, unsigned value) { return bytes(n, static_cast<std::byte>(value)); }

/// A store that several programs open: local with two nodes, or what OOC_TEST_STORE names.
struct store_of_programs {
  store_of_programs() {
    if (const auto s = store_from_environment())
      url = s->core()->url();
    else
      url = "local:" + (folder / "0").string() + "," + (folder / "1").string();
  }
  /// Another program's: it shares nothing with the others.
  store open() const { return store::open(url); }

  temporary_folder folder;
  std::string url;
};

bytes contents_of(const file& f) {
  bytes b(f.size());
  CHECK(f.read_at(0, b) == b.size());
  return b;
}

/// The bytes that write_at() and truncate() make of a file.
struct model {
  bytes expected;
  void write_at(std::uint64_t offset, const bytes& b) {
    expected.resize(std::max(expected.size(), offset + b.size()));
    std::copy(b.begin(), b.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void truncate(std::uint64_t size) { expected.resize(size); }
};

void check_same(const bytes& found, const bytes& expected) {
  REQUIRE(found.size() == expected.size());
  const auto differ = std::mismatch(found.begin(), found.end(), expected.begin()).first;
  INFO("the first byte that differs: " << differ - found.begin());
  REQUIRE(differ == found.end());
}

}  // namespace

TEST_CASE("what is written within the size seen before another program cut the file off is in the file", "[served]") {
  const store_of_programs s;
  const std::uint64_t was = GENERATE(1000, 4096 * 7, 300'000), end = GENERATE(0, 10, 4096, 5000);
  if (end >= was) return;
  CAPTURE(was, end);
  file a = file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  a.write_at(0, filled(was, 1));
  file b = file::open(s.open(), "f", file_access::read_write);
  b.truncate(end);
  model m{filled(was, 1)};
  m.truncate(end);
  const std::uint64_t at = was - 300;
  a.write_at(at, filled(200, 2));
  m.write_at(at, filled(200, 2));
  check_same(contents_of(b), m.expected);
  a.write_at(at / 2, filled(100, 3));
  m.write_at(at / 2, filled(100, 3));
  check_same(contents_of(b), m.expected);
  check_same(contents_of(file::open(s.open(), "f")), m.expected);
}

TEST_CASE("a file that is cut off and made longer again has zeros between, and what is written there later",
          "[served]") {
  const store_of_programs s;
  file a = file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  a.write_at(0, filled(50'000, 1));
  file b = file::open(s.open(), "f", file_access::read_write);
  b.truncate(0);
  b.write_at(0, filled(500, 2));
  a.write_at(900, filled(100, 3));
  model m{filled(500, 2)};
  m.write_at(900, filled(100, 3));
  check_same(contents_of(b), m.expected);
  b.truncate(60'000);
  m.truncate(60'000);
  check_same(contents_of(a), m.expected);
}

TEST_CASE("what is written where space was reserved before another program cut the file off is in the file",
          "[served]") {
  const store_of_programs s;
  file a = file::create(s.open(), "f", {.striping = {0, 2, 65536}});
  for (unsigned i = 0; i < 3; ++i) a.write(filled(100'000, i + 1));
  file b = file::open(s.open(), "f", file_access::read_write);
  const std::uint64_t end = GENERATE(0, 299'999);
  b.truncate(end);
  a.write_at(200'000, filled(50'000, 7));
  a.write_at(290'000, filled(5'000, 8));
  bytes found = contents_of(b);
  REQUIRE(found.size() == std::max<std::uint64_t>(end, 295'000));
  CHECK(std::all_of(found.begin() + 200'000, found.begin() + 250'000, [](std::byte x) { return x == std::byte{7}; }));
  CHECK(std::all_of(found.begin() + 290'000, found.begin() + 295'000, [](std::byte x) { return x == std::byte{8}; }));
}

TEST_CASE("who has made an empty file may write it, also while the same program has it open for reading", "[served]") {
  const store_of_programs s;
  const store own = s.open();
  file made = file::create(own, "f", {.striping = {0, 2, 4096}});
  const file reader = file::open(own, "f");
  made.write_at(0, filled(10'000, 1));
  made.write_at(100, filled(20'000, 2));
  CHECK(reader.size() == 20'100);
  made.truncate(50);
  check_same(contents_of(reader), filled(50, 1));
}

TEST_CASE("who has a file open for reading may wait until what others wrote to it is durable", "[served]") {
  const store_of_programs s;
  file writer = file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  writer.write_at(0, filled(10'000, 1));
  writer.close();
  file reader = file::open(s.open(), "f");
  reader.sync();
  check_same(contents_of(reader), filled(10'000, 1));
}

TEST_CASE("who has a file open twice may go on by each opening after another program cut it off", "[served]") {
  const store_of_programs s;
  const store own = s.open();
  file a = file::create(own, "f", {.striping = {0, 2, 4096}});
  a.write_at(0, filled(100'000, 1));
  const file before = file::open(own, "f");
  file::open(s.open(), "f", file_access::read_write).truncate(5'000);
  file again = file::open(own, "f", file_access::read_write);
  SECTION("by writing") {
    model m{filled(5'000, 1)};
    a.write_at(50'000, filled(1'000, 2));
    m.write_at(50'000, filled(1'000, 2));
    check_same(contents_of(again), m.expected);
  }
  SECTION("by reading: past the cut there is the fill pattern, or nothing any more") {
    const file reads_too = file::open(own, "f");
    bytes b(1'000, std::byte{9});
    b.resize(before.read_at(50'000, b));
    check_same(b, filled(b.size(), 0));
    check_same(contents_of(before), filled(5'000, 1));
  }
}

TEST_CASE("strided writes after a cut are in the file as a whole", "[served]") {
  const store_of_programs s;
  file a = file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  a.write_at(0, filled(100'000, 1));
  file b = file::open(s.open(), "f", file_access::read_write);
  b.truncate(20'000);
  model m{filled(20'000, 1)};
  request r;
  for (std::uint64_t i = 0; i < 9; ++i) {
    r.add(i * 10'000, i * 500, 500);
    m.write_at(i * 10'000, filled(500, 5));
  }
  a.write(r, filled(4500, 5));
  check_same(contents_of(b), m.expected);
}

TEST_CASE("ranks that write together after another program has cut the file off lose nothing", "[served]") {
  const store_of_programs s;
  const bool interleaved = GENERATE(false, true);
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, filled(100'000, 1));
  const std::uint64_t end = GENERATE(0, 3000);
  thread_group(2).run([&](process_group& group) {
    const auto rank = static_cast<std::uint64_t>(group.rank());
    file f = file::open(s.open(), "f", file_access::read_write);
    group.together("cut", [&] {
      if (rank == 0) file::open(s.open(), "f", file_access::read_write).truncate(end);
      return process_group::bytes{};
    });
    request mine;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const std::uint64_t place = interleaved ? 2 * i + rank : 10 * rank + i;
      mine.add(50'000 + 100 * place, 100 * i, 100);
    }
    f.write_all(group, mine, filled(1000, 2));
  });
  const bytes found = contents_of(file::open(s.open(), "f"));
  model m{filled(end, 1)};
  m.write_at(50'000, filled(2000, 2));
  check_same(found, m.expected);
}

TEST_CASE("a program that opens a file a second time after it was cut off goes on with the first one", "[served]") {
  const store_of_programs s;
  const store one = s.open();
  file a = file::create(one, "f", {.striping = {0, 2, 4096}});
  a.write_at(0, filled(30'000, 1));
  file::open(s.open(), "f", file_access::read_write).truncate(100);
  // The right to use a file is that of all who have it open in this program, and is for as many bytes as there are now.
  const file again = file::open(one, "f", file_access::read_write);
  bytes found(500);
  CHECK(a.read_at(20'000, found) == found.size());
  CHECK(found == filled(500, 0));
  a.write_at(20'000, filled(5'000, 2));
  model m{filled(100, 1)};
  m.write_at(20'000, filled(5'000, 2));
  check_same(contents_of(again), m.expected);
}

TEST_CASE("ranks that write together make a file longer again that is cut off in the middle of it", "[served]") {
  const store_of_programs s;
  const int times = GENERATE(1, 3);
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, filled(1'000, 1));
  file other = file::open(s.open(), "f", file_access::read_write);
  int cuts = 0;
  thread_group(2).run([&](process_group& group) {
    const auto rank = static_cast<std::uint64_t>(group.rank());
    watched_rank me(group, [&](std::string_view call) {
      if (rank == 0 && call.starts_with("growth") && cuts++ < times) other.truncate(100);
    });
    file f = file::open(s.open(), "f", file_access::read_write);
    request mine;
    mine.add(20'000 + 3'000 * rank, 0, 3'000);
    f.write_all(me, mine, filled(3'000, 2));
  });
  CHECK(cuts > times);
  model m{filled(100, 1)};
  m.write_at(20'000, filled(6'000, 2));
  check_same(contents_of(other), m.expected);
}

TEST_CASE("several programs that write, cut off and make longer one file agree with a file in memory", "[served]") {
  const store_of_programs s;
  const std::uint64_t seed = random_seed("several programs write and cut off");
  std::mt19937_64 random(seed);
  const int lives = rounds(4, 40);
  for (int life = 0; life < lives; ++life) {
    CAPTURE(seed, life);
    const std::string name = "f" + std::to_string(life);
    const std::uint64_t most = life % 2 == 0 ? 20'000 : 400'000;
    model m;
    std::vector<file> files;
    files.push_back(file::create(s.open(), name, {.striping = {0, 2, between(random, 0, 1) == 0 ? 4096U : 10'000U}}));
    while (files.size() < 3) files.push_back(file::open(s.open(), name, file_access::read_write));
    for (int i = 0; i < 60; ++i) {
      CAPTURE(i);
      file& f = files[between(random, 0, files.size() - 1)];
      const std::uint64_t what = between(random, 0, 99);
      if (what < 50) {
        const std::uint64_t at = between(random, 0, most);
        const bytes b = filled(between(random, 1, most / 10), static_cast<unsigned>(between(random, 1, 255)));
        f.write_at(at, b);
        m.write_at(at, b);
      } else if (what < 65) {
        const bytes b = filled(between(random, 1, most / 10), static_cast<unsigned>(between(random, 1, 255)));
        m.write_at(f.size(), b);
        f.write_at(f.size(), b);
      } else if (what < 85) {
        const std::uint64_t size = between(random, 0, m.expected.size() + 1000);
        f.truncate(size);
        m.truncate(size);
      } else if (what < 90) {
        f.sync();
      } else if (what < 95) {
        f = file::open(s.open(), name, file_access::read_write);
      } else {
        check_same(contents_of(f), m.expected);
      }
    }
    for (const file& f : files) check_same(contents_of(f), m.expected);
    files.clear();
    check_same(contents_of(file::open(s.open(), name)), m.expected);
  }
}

TEST_CASE("a write beside a cut is before or after it, and the next one is in the file", "[served]") {
  const store_of_programs s;
  file a = file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  file b = file::open(s.open(), "f", file_access::read_write);
  file reader = file::open(s.open(), "f");
  const int count = rounds(30, 300);
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    a.write_at(0, filled(30'000, 1));
    std::thread cutter([&] { b.truncate(static_cast<std::uint64_t>(i) * 37 % 20'000); });
    a.write_at(20'000, filled(8'000, 2));
    cutter.join();
    const std::uint64_t size = reader.size();
    CHECK((size == static_cast<std::uint64_t>(i) * 37 % 20'000 || size == 28'000));
    a.write_at(25'000, filled(1'000, 3));
    CHECK(reader.size() == std::max<std::uint64_t>(size, 26'000));
    bytes found(1'000);
    CHECK(reader.read_at(25'000, found) == found.size());
    CHECK(found == filled(1'000, 3));
  }
}

TEST_CASE("an opening that has found the file long before it was cut off loses no write", "[served]") {
  const store_of_programs s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, filled(30'000, 1));
  const auto core = s.open().core();
  const storage::claim_taker meanwhile{[&](const storage::entry&) {
    file::open(s.open(), "f", file_access::read_write).truncate(100);
    return false;
  }};
  const storage::opened_file f = core->open("f", storage::open_mode::read_write, false, meanwhile);
  const bytes b = filled(50, 2);
  // It knows the size, or is told of the cut.
  if (f.meta.size != 100) CHECK(f.file->write(request::contiguous(20'000, b.size()), b.data()).code == errc::cut_off);
}

TEST_CASE("an opening beside a cut and another opening finds the file as it is then", "[served]") {
  const store_of_programs s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, filled(30'000, 1));
  const auto core = s.open().core();
  const storage::claim_taker meanwhile{[&](const storage::entry&) {
    file::open(s.open(), "f", file_access::read_write).truncate(100);
    file::open(s.open(), "f", file_access::read_write).write_at(50, filled(10, 3));
    return false;
  }};
  const storage::opened_file f = core->open("f", storage::open_mode::read_write, false, meanwhile);
  CHECK(f.meta.size == 100);
  const bytes b = filled(10, 2);
  CHECK_FALSE(f.file->write(request::contiguous(0, b.size()), b.data()));
  file a = file::open(s.open(), "f", file_access::read_write);
  a.write_at(29'000, filled(1'000, 4));
  model m{filled(100, 1)};
  m.write_at(50, filled(10, 3));
  m.write_at(0, b);
  m.write_at(29'000, filled(1'000, 4));
  check_same(contents_of(a), m.expected);
}

TEST_CASE("cuts are counted, and a file in the metadata knows how many there were") {
  const store_of_programs s;
  file a = file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  const auto cuts = [&] { return s.open().core()->metadata().lookup("f").cuts; };
  CHECK(cuts() == 1);
  a.write_at(0, filled(30'000, 1));
  a.truncate(20'000);
  a.truncate(20'000);
  a.truncate(40'000);
  CHECK(cuts() == 2);
  a.truncate(0);
  CHECK(cuts() == 3);
}

TEST_CASE("what a cut that was never ended has left is written to without loss", "[served]") {
  const store_of_programs s;
  file a = file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  a.write_at(0, filled(30'000, 1));
  {
    // As store_core::resize() until it would tell the metadata.
    const auto core = s.open().core();
    storage::opened_file f = core->open("f", storage::open_mode::read_write);
    (void)a.size();
    const auto lock = core->metadata().lock_size(f.meta.id);
    storage::entry e = core->metadata().find(f.meta.id);
    e.capability = core->metadata().size_capability(e.id, e.size);
    auto shape = core->opened(e).file->shape();
    shape.size = 100;
    ++shape.cuts;
    shape.cut = true;
    const storage::striped_file cut(std::make_shared<const storage::file_shape>(shape), core->nodes());
    REQUIRE_FALSE(cut.resize_objects(30'000));
  }
  const bytes b = filled(5'000, 2);
  a.write_at(20'000, b);
  bytes found(b.size());
  CHECK(file::open(s.open(), "f").read_at(20'000, found) == found.size());
  CHECK(found == b);
  a.write_at(40'000, b);
  const file other = file::open(s.open(), "f");
  CHECK(other.size() == 45'000);
  CHECK(other.read_at(20'000, found) == found.size());
  CHECK(found == b);
}

namespace {

/// Metadata whose next set_size() or find() waits for what another program does.
class slow_metadata final : public storage::local_metadata {
 public:
  using local_metadata::local_metadata;
  storage::metadata_answer answer(const storage::metadata_call& call) override {
    if (before && std::holds_alternative<storage::calls::set_size>(call)) std::exchange(before, nullptr)();
    storage::metadata_answer a = local_metadata::answer(call);
    if (after_find && std::holds_alternative<storage::calls::find>(call)) std::exchange(after_find, nullptr)();
    return a;
  }

  std::function<void()> before;
  std::function<void()> after_find;
};

struct slow_store {
  explicit slow_store(const store_of_programs& s) {
    const auto core = s.open().core();
    metadata = std::make_shared<slow_metadata>(s.folder / "0" / "metadata.sqlite", core->uuid(),
                                               storage::credentials{::geteuid(), ::getegid()});
    handle.emplace(std::make_shared<storage::store_core>(core->url(), core->uuid(), metadata, core->nodes()));
  }

  std::shared_ptr<slow_metadata> metadata;
  std::optional<store> handle;
};

}  // namespace

TEST_CASE("a growth beside two openings of the file ends, and its new stripe objects are no old copies") {
  const store_of_programs s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, filled(1'000, 1));
  const slow_store slow(s);
  file b = file::open(*slow.handle, "f", file_access::read_write);
  const auto open_twice = [&] {
    for (int i = 0; i < 2; ++i) (void)file::open(s.open(), "f", file_access::read_write);
  };
  // First the size is looked up, then the generation.
  slow.metadata->after_find = [&] { slow.metadata->after_find = open_twice; };
  b.truncate(30'000);
  CHECK_FALSE(slow.metadata->after_find);
  model m{filled(1'000, 1)};
  m.truncate(30'000);
  file a = file::open(s.open(), "f", file_access::read_write);
  check_same(contents_of(a), m.expected);
  a.write_at(20'000, filled(100, 2));
  m.write_at(20'000, filled(100, 2));
  check_same(contents_of(b), m.expected);
}

TEST_CASE("a cut for which space is needed first is a cut on all nodes") {
  const store_of_programs s;
  file a = file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  a.write_at(0, filled(30'000, 1));
  const auto core = s.open().core();
  auto full = std::make_shared<storage::faulty_io_service>(core->nodes()[1]);
  const auto metadata = std::make_shared<storage::local_metadata>(s.folder / "0" / "metadata.sqlite", core->uuid(),
                                                                  storage::credentials{::geteuid(), ::getegid()});
  const store own(std::make_shared<storage::store_core>(core->url(), core->uuid(), metadata,
                                                        storage::striped_file::nodes{core->nodes()[0], full}));
  file::create(own, "removed", {.striping = {0, 2, 4096}}).write_at(0, filled(10'000, 1));
  own.remove("removed");  // its stripe objects are in the way
  full->add(
      {.call = storage::io_kind::resize, .times = 1, .error = std::make_error_code(std::errc::no_space_on_device)});
  file::open(own, "f", file_access::read_write).truncate(100);
  CHECK(full->hits(storage::io_kind::resize) == 1);
  a.write_at(20'500, filled(100, 2));  // on the second node
  model m{filled(100, 1)};
  m.write_at(20'500, filled(100, 2));
  check_same(contents_of(file::open(s.open(), "f")), m.expected);
}

TEST_CASE("who opens a file before a cut is told to the metadata learns of it when he writes") {
  const store_of_programs s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, filled(30'000, 1));
  const slow_store slow(s);
  file b = file::open(*slow.handle, "f", file_access::read_write);
  std::optional<file> a;
  slow.metadata->before = [&] { a = file::open(s.open(), "f", file_access::read_write); };
  b.truncate(100);
  REQUIRE(a);
  a->write_at(20'000, filled(5'000, 2));
  model m{filled(100, 1)};
  m.write_at(20'000, filled(5'000, 2));
  check_same(contents_of(b), m.expected);
}

TEST_CASE("a cut beside openings of the file is made, however many there are") {
  const store_of_programs s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, filled(30'000, 1));
  const slow_store slow(s);
  file b = file::open(*slow.handle, "f", file_access::read_write);
  const int times = GENERATE(1, 2, 5);
  int left = times;
  const std::function<void()> open = [&] {
    (void)file::open(s.open(), "f", file_access::read_write);
    if (--left > 0) slow.metadata->after_find = open;
  };
  slow.metadata->after_find = open;
  const std::uint64_t end = GENERATE(0, 100, 29'000);
  b.truncate(end);
  CHECK(left == 0);
  model m{filled(end, 1)};
  check_same(contents_of(file::open(s.open(), "f")), m.expected);
  CHECK(s.open().core()->metadata().lookup("f").cuts == 2);
  b.write_at(20'000, filled(100, 2));
  m.write_at(20'000, filled(100, 2));
  check_same(contents_of(b), m.expected);
}

TEST_CASE("a cut after an opening that was cut short is made", "[served]") {
  const store_of_programs s;
  file b = file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  b.write_at(0, filled(30'000, 1));
  const auto core = s.open().core();
  storage::entry e = core->metadata().open("f", true);
  const std::uint64_t before = e.generation++;
  REQUIRE_FALSE(core->opened(e).file->advance_objects());
  b.truncate(100);
  check_same(contents_of(file::open(s.open(), "f")), filled(100, 1));
  CHECK(core->metadata().lookup("f").generation > before);
}

TEST_CASE("a growth beside an opening of the file for which there is no space leaves nothing behind") {
  const store_of_programs s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, filled(30'000, 1));
  const slow_store slow(s);
  const auto core = s.open().core();
  const auto full = std::make_shared<storage::faulty_io_service>(core->nodes()[1]);
  const store own(std::make_shared<storage::store_core>(core->url(), core->uuid(), slow.metadata,
                                                        storage::striped_file::nodes{core->nodes()[0], full}));
  file b = file::open(own, "f", file_access::read_write);
  const auto data = storage::node_folder(s.folder / "0").data(core->metadata().lookup("f").id);
  const auto before = std::filesystem::file_size(data);
  full->add(
      {.call = storage::io_kind::resize, .times = 1, .error = std::make_error_code(std::errc::no_space_on_device)});
  slow.metadata->after_find = [&] { (void)file::open(s.open(), "f", file_access::read_write); };
  CHECK_THROWS_AS(b.truncate(300'000), io_error);
  CHECK(full->hits(storage::io_kind::resize) == 1);
  CHECK(std::filesystem::file_size(data) == before);
  check_same(contents_of(file::open(s.open(), "f")), filled(30'000, 1));
}
