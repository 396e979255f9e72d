// Tests of what a mount sends of the writes of an open file, and when; no mount is needed.
#include "mount/live_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/commit.hpp"
#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "oocarray/runtime.hpp"
#include "storage/service/file_move.hpp"
#include "support/faulty_io_service.hpp"
#include "support/memory_store.hpp"
#include "support/random_seed.hpp"
#include "support/soon.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::mount;
using namespace ooc::testing;

namespace {

/// A file that is open for writing on one node, which may be told to fail, or to answer late.
struct file_on_faulty_node {
  file_on_faulty_node() {
    store.core =
        std::make_shared<storage::store_core>("memory:", "test", store.metadata, storage::striped_file::nodes{node});
    storage::new_file made;
    made.striping = {.sn = 0, .nn = 1, .sf = 4096};
    id = store.core->create("f", made).meta.id;
    file = std::make_shared<live_file>(store.core, jobs, id);
    file->open(true);
  }

  memory_store store{1};
  std::shared_ptr<storage::faulty_io_service> node = std::make_shared<storage::faulty_io_service>(store.nodes[0]);
  job_threads<> jobs{1};
  file_id id = 0;
  std::shared_ptr<live_file> file;
};

/// A file that is open for writing on nodes in memory, which answer at once.
struct written_file {
  written_file() {
    storage::new_file made;
    made.striping = {.sn = 0, .nn = 2, .sf = 4096};
    const auto f = store.core->create("f", made);
    id = f.meta.id;
    file = std::make_shared<live_file>(store.core, jobs, id);
    file->open(true);
  }

  int write(std::uint64_t at, std::string_view bytes) {
    int result = -1;
    file->write(at, std::as_bytes(std::span(bytes)), false, [&](int error) { result = error; });
    return result;
  }
  std::string read(std::uint64_t at, std::size_t n) {
    const auto result = std::make_shared<std::promise<std::string>>();
    file->read(at, n, [result](int error, std::span<const std::byte> bytes) {
      result->set_value(error != 0 ? "error " + std::to_string(error)
                                   : std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    });
    return result->get_future().get();
  }
  std::uint64_t write_requests() const {
    std::uint64_t n = 0;
    for (const auto& node : store.nodes) n += node->stats().write_requests;
    return n;
  }

  memory_store store{2};
  job_threads<> jobs{1};
  file_id id = 0;
  std::shared_ptr<live_file> file;
};

/// A file that two programs share, each of which has opened the local store.
struct shared_file {
  shared_file() {
    storage::new_file made;
    made.striping = {.sn = 0, .nn = 2, .sf = 4096};
    id = mine.core()->create("f", made).meta.id;
  }
  std::shared_ptr<live_file> opened_by(const store& s) const {
    return std::make_shared<live_file>(s.core(), *jobs, id);
  }
  storage::entry entry() const { return mine.core()->metadata().find(id); }

  temporary_folder folder;
  std::string url = "local:" + (folder / "0").string() + "," + (folder / "1").string();
  store mine = store::open(url), others = store::open(url);
  std::unique_ptr<job_threads<>> jobs = std::make_unique<job_threads<>>(1);
  file_id id = 0;
};

void move_to_second_node(storage::store_core& core, const std::string& name) {
  const storage::file_move move(core, core.metadata().lookup(name), "moved");
  storage::new_file f;
  f.size = move.from().meta.size;
  f.striping = {1, 1, 4096};
  std::vector<std::byte> bytes(f.size);
  throw_if(move.from().file->read(request::contiguous(0, f.size), bytes.data()));
  const storage::opened_file made = core.make(".next", f);
  throw_if(made.file->write(request::contiguous(0, f.size), bytes.data()));
  throw_if(made.file->sync());
  storage::take_over(core, made, move.from().meta);
}

std::string letters(std::mt19937_64& g, std::size_t n) {
  std::string s(n, '\0');
  for (char& c : s) c = static_cast<char>('a' + between(g, 0, 25));
  return s;
}

}  // namespace

TEST_CASE("small writes that alternate between two places are sent together") {
  written_file f;
  std::string first, second;
  for (int i = 0; i < 1000; ++i) {
    const std::string piece = {char('a' + i % 26), char('a' + i / 26 % 26)};
    REQUIRE(f.write(2 * i, piece) == 0);
    REQUIRE(f.write(100'000 + 2 * i, piece) == 0);
    first += piece;
  }
  REQUIRE(f.file->flush_and_wait() == 0);
  CHECK(f.write_requests() <= 8);
  CHECK(f.read(0, first.size()) == first);
  CHECK(f.read(100'000, first.size()) == first);
}

TEST_CASE("pieces that interleave are sent together, and a piece that is written again once") {
  written_file f;
  for (int i = 0; i < 1000; ++i) REQUIRE(f.write(12 * i, "old.") == 0);
  for (int i = 0; i < 1000; ++i) REQUIRE(f.write(12 * i, "abcd") == 0);
  REQUIRE(f.file->flush_and_wait() == 0);
  CHECK(f.write_requests() <= 4);
  CHECK(f.read(11 * 12, 16) == std::string("abcd\0\0\0\0\0\0\0\0abcd", 16));
}

TEST_CASE("a read of bytes that nobody has written leaves those of others in the buffer") {
  written_file f;
  REQUIRE(f.write(0, "first") == 0);
  REQUIRE(f.write(1000, "second") == 0);
  CHECK(f.read(100, 5) == std::string(5, '\0'));
  CHECK(f.write_requests() == 0);
  CHECK(f.read(1003, 10) == "ond");
  CHECK(f.write_requests() == 1);  // both lie in one stripe
}

TEST_CASE("a write that finds no room takes none with it that needs no growth") {
  written_file f;
  REQUIRE(f.write(0, std::string(10'000, 'a')) == 0);
  REQUIRE(f.file->flush_and_wait() == 0);
  std::uint64_t seen = 0;
  for (const auto& node : f.store.nodes) node->set_capacity(20'000);
  REQUIRE(f.write(0, "inside") == 0);
  REQUIRE(f.write(1'000'000, "far") == 0);
  REQUIRE(f.write(5000, "also inside") == 0);
  (void)f.file->flush_and_wait();
  CHECK(f.file->take_error(seen) == ENOSPC);
  CHECK(f.file->take_error(seen) == 0);
  CHECK(f.read(0, 7) == "insidea");
  CHECK(f.read(5000, 12) == "also insidea");
}

TEST_CASE("writes of any order and overlap leave what the last of them wrote") {
  const std::uint64_t seed = random_seed("live file");
  INFO("seed " << seed);
  std::mt19937_64 g(seed);
  written_file f;
  std::string model;
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t longest = between(g, 0, 200) == 0 ? 300'000 : 60;
    const std::uint64_t at = between(g, 0, 7) * 5000 + between(g, 0, 100);
    const std::size_t n = between(g, 1, longest);
    switch (between(g, 0, 99)) {
      case 0: REQUIRE(f.file->flush_and_wait() == 0); break;
      case 1:
        REQUIRE(f.file->resize(at) == 0);
        model.resize(at);
        break;
      case 2:
      case 3: REQUIRE(f.read(at, n) == (at < model.size() ? model.substr(at, n) : "")); break;
      default: {
        const std::string bytes = letters(g, n);
        if (model.size() < at + n) model.resize(at + n);
        model.replace(at, n, bytes);
        REQUIRE(f.write(at, bytes) == 0);
        REQUIRE(f.file->size() == model.size());
      }
    }
  }
  REQUIRE(f.file->flush_and_wait() == 0);
  CHECK(f.read(0, model.size() + 1) == model);
}

TEST_CASE("what was asked of the store before a flush does not make the file shorter") {
  written_file f;
  REQUIRE(f.write(0, "first") == 0);
  REQUIRE(f.file->flush_and_wait() == 0);
  storage::entry before = f.store.metadata->find(f.id);
  REQUIRE(f.write(5, "second") == 0);
  REQUIRE(f.file->flush_and_wait() == 0);
  f.file->overlay(before);
  CHECK(before.size == 11);
  CHECK(f.file->size() == 11);
  CHECK(f.read(5, 6) == "second");
}

TEST_CASE("what is written after another has cut the file off is in the file") {
  written_file f;
  REQUIRE(f.write(0, std::string(20'000, 'a')) == 0);
  REQUIRE(f.file->flush_and_wait() == 0);
  const auto other = f.store.core->open(f.id, storage::open_mode::read);
  f.store.core->resize(other, 0, {});
  REQUIRE(f.write(10'000, "later") == 0);
  CHECK(f.file->flush_and_wait() == 0);
  CHECK(f.store.metadata->find(f.id).size == 10'005);
  CHECK(f.read(10'000, 5) == "later");
}

TEST_CASE("what is written after another has cut off what was reserved is in the file") {
  written_file f;
  REQUIRE(f.write(0, std::string(2 << 20, 'a')) == 0);
  REQUIRE(f.file->flush_and_wait() == 0);
  const auto other = f.store.core->open(f.id, storage::open_mode::read);
  f.store.core->resize(other, 0, {});
  REQUIRE(f.write(4 << 20, "later") == 0);
  CHECK(f.file->flush_and_wait() == 0);
  CHECK(f.store.metadata->find(f.id).size == (4 << 20) + 5);
  CHECK(f.read(4 << 20, 5) == "later");
}

TEST_CASE("what is sent without asking after another program has cut the file off is in the file") {
  const shared_file shared;
  const auto f = shared.opened_by(shared.mine);
  f->open(true);
  constexpr std::size_t mebibyte = 1 << 20;
  const auto write = [&](std::uint64_t at, char c) {
    const std::string bytes(mebibyte, c);
    f->write(at, std::as_bytes(std::span(bytes)), false, [](int error) { CHECK(error == 0); });
  };
  for (std::uint64_t i = 0; i < 3; ++i) write(i * mebibyte, 'a');
  REQUIRE(f->flush_and_wait() == 0);
  ooc::file other = ooc::file::open(shared.others, "f", file_access::read_write);
  const bool longer_again = GENERATE(false, true);
  other.truncate(10);
  if (longer_again) other.truncate(100);
  write(mebibyte, 'b');
  REQUIRE(f->flush_and_wait() == 0);
  CHECK(other.size() == 2 * mebibyte);
  std::vector<char> found(2 * mebibyte);
  CHECK(other.read_at(0, std::as_writable_bytes(std::span(found))) == found.size());
  CHECK(std::string(found.data(), 10) == std::string(10, 'a'));
  CHECK(std::string(found.data() + 10, mebibyte - 10) == std::string(mebibyte - 10, '\0'));
  CHECK(std::string(found.data() + mebibyte, mebibyte) == std::string(mebibyte, 'b'));
  CHECK(f->size() == 2 * mebibyte);
  f->close(true);
}

TEST_CASE("the end of what another program has cut off is not told when there is space again") {
  const shared_file shared;
  const auto f = shared.opened_by(shared.mine), g = shared.opened_by(shared.others);
  f->open(true);
  constexpr std::size_t mebibyte = 1 << 20;
  const auto write = [&](live_file& to, std::uint64_t at, char c) {
    const std::string bytes(mebibyte, c);
    std::promise<int> ended;
    to.write(at, std::as_bytes(std::span(bytes)), true, [&](int error) { ended.set_value(error); });
    REQUIRE(ended.get_future().get() == 0);
  };
  for (std::uint64_t i = 0; i < 3; ++i) write(*f, i * mebibyte, 'a');
  ooc::file::open(shared.others, "f", file_access::read_write).truncate(0);
  g->open(true);
  write(*g, 0, 'b');
  REQUIRE(g->flush_and_wait() == 0);
  REQUIRE(shared.entry().reserved > 3 * mebibyte);
  SECTION("and nothing was written since") {
    REQUIRE(f->flush_and_wait() == 0);
    CHECK(shared.entry().size == mebibyte);
    CHECK(f->size() == mebibyte);
  }
  SECTION("but that of what was written since") {
    write(*f, mebibyte, 'c');
    REQUIRE(f->flush_and_wait() == 0);
    CHECK(shared.entry().size == 2 * mebibyte);
    CHECK(f->size() == 2 * mebibyte);
  }
  f->close(true);
  g->close(true);
}

TEST_CASE(
    "bytes that were stored and not flushed are gone where the file is cut off before them and made longer again") {
  written_file f;
  REQUIRE(f.write(0, std::string(2 << 20, 'a')) == 0);
  REQUIRE(f.file->resize(1 << 20) == 0);
  REQUIRE(f.file->resize(2 << 20) == 0);
  CHECK(f.read((1 << 20) - 2, 5) == std::string("aa\0\0\0", 5));
  CHECK(f.file->flush_and_wait() == 0);
  CHECK(f.store.metadata->find(f.id).size == 2 << 20);
}

TEST_CASE("what is written again after it found no room is in the file, with what was stored behind it") {
  written_file f;
  constexpr std::size_t mebibyte = 1 << 20;
  const std::string a(mebibyte, 'a'), b(mebibyte, 'b');
  const bool appends = GENERATE(false, true), there = GENERATE(false, true);
  const std::uint64_t first = appends ? 0 : 10 * mebibyte, refused = appends ? mebibyte : 0;
  const std::uint64_t again = there ? refused : refused + mebibyte;  // where the kernel goes on
  CAPTURE(first, refused, again);
  REQUIRE(f.write(first, a) == 0);
  for (const auto& node : f.store.nodes)
    node->fail(io_kind::write, std::make_error_code(std::errc::no_space_on_device));
  REQUIRE(f.write(refused, b) == 0);
  REQUIRE(soon([&] { return f.file->errors_so_far() != 0; }));
  for (const auto& node : f.store.nodes) node->heal();
  REQUIRE(f.write(again, b) == 0);
  REQUIRE(f.file->flush_and_wait() == 0);
  CHECK(f.store.metadata->find(f.id).size == std::max(first, again) + mebibyte);
  CHECK((f.read(first, mebibyte) == a));
  CHECK((f.read(again, mebibyte) == b));
}

TEST_CASE("a write over the old end that finds no room past it is there up to the end") {
  written_file f;
  REQUIRE(f.write(0, std::string(10'000, 'a')) == 0);
  REQUIRE(f.file->flush_and_wait() == 0);
  for (const auto& node : f.store.nodes) node->set_capacity(20'000);
  REQUIRE(f.write(9'000, std::string(500'000, 'b')) == 0);
  CHECK(f.file->flush_and_wait() == 0);
  std::uint64_t seen = 0;
  CHECK(f.file->take_error(seen) == ENOSPC);
  CHECK(f.read(8'999, 10) == "abbbbbbbbb");
  CHECK(f.read(9'990, 10) == "bbbbbbbbbb");
}

TEST_CASE("what another has written before bytes of which nobody was told is read") {
  written_file f;
  REQUIRE(f.write(100'000, "mine") == 0);
  storage::growing_file other(f.store.core, f.store.core->open(f.id, storage::open_mode::read_write));
  const std::string theirs = "theirs";
  throw_if(other.write(request::contiguous(50'000, theirs.size()), std::as_bytes(std::span(theirs)).data()));
  const bool asked_for_the_size = GENERATE(false, true);
  if (asked_for_the_size) {
    storage::entry e = f.store.metadata->find(f.id);
    f.file->overlay(e);
    CHECK(e.size == 100'004);
    CHECK(f.read(50'000, 6) == theirs);
  } else {
    CHECK(soon([&] { return f.read(50'000, 6) == theirs; }));
  }
}

TEST_CASE("zeros for many bytes wait for room on the way") {
  file_on_faulty_node f;
  auto& store = f.store;
  const auto node = f.node;
  const auto file = f.file;
  node->add({.call = storage::io_kind::write, .hold = true});
  int answer = -1;
  std::thread asking([&] { answer = file->zero(0, 64 << 20); });
  CHECK(soon([&] { return node->held() >= 17; }));
  CHECK(never_within(std::chrono::milliseconds(200), [&] { return node->held() > 17; }));
  node->clear();
  node->release();
  asking.join();
  CHECK(answer == 0);
  CHECK(store.metadata->find(f.id).size == 64 << 20);
  file->close(true);
}

TEST_CASE("who opens an array reads its last commit, also where somebody has an earlier one open") {
  const shared_file shared;
  runtime rt;
  ooc_array<int, 1> a(rt, shared.others, "a", create, {100}, {.commits = true});
  const auto commit_all = [&](int value) {
    for (int& v : a) v = value;
    commit({&a});
  };
  const auto file =
      std::make_shared<live_file>(shared.mine.core(), *shared.jobs, shared.mine.core()->metadata().lookup("a").id);
  const auto first_element = [&] {
    std::promise<int> value;
    file->read(0, sizeof(int), [&](int error, std::span<const std::byte> bytes) {
      int v = -1;
      if (error == 0 && bytes.size() == sizeof v) std::memcpy(&v, bytes.data(), sizeof v);
      value.set_value(v);
    });
    return value.get_future().get();
  };
  for (const int value : {1, 2, 3, 4}) {
    commit_all(value);
    file->open(false);
    CHECK(first_element() == value);
  }
}

TEST_CASE("what is stored after a move is in the file, also where that was cut off before") {
  const shared_file shared;
  const auto f = shared.opened_by(shared.mine);
  f->open(true);
  const auto write = [&](std::uint64_t at, const std::string& bytes, bool through) {
    std::promise<int> error;
    f->write(at, std::as_bytes(std::span(bytes)), through, [&](int e) { error.set_value(e); });
    return error.get_future().get();
  };
  REQUIRE(write(0, "abcdefgh", false) == 0);
  for (const std::uint64_t size : {6, 4}) REQUIRE(f->resize(size) == 0);
  REQUIRE(write(4, "e", true) == 0);  // stored, and nobody was told
  move_to_second_node(*shared.others.core(), "f");
  const std::string much(3 << 20, 'f');
  REQUIRE(write(5, much, false) == 0);
  REQUIRE(f->flush_and_wait() == 0);
  CHECK(shared.entry().size == 5 + much.size());
  CHECK(f->size() == 5 + much.size());
  f->close(true);
}

TEST_CASE("what another has made longer is read after a flush") {
  written_file f;
  REQUIRE(f.write(0, "first") == 0);
  const auto other = f.store.core->open(f.id, storage::open_mode::read);
  f.store.core->resize(other, 100'000, {});
  REQUIRE(f.file->flush_and_wait() == 0);
  CHECK(f.read(50'000, 3) == std::string(3, '\0'));
  CHECK(f.write(60'000, "second") == 0);
  CHECK(f.file->flush_and_wait() == 0);
  CHECK(f.read(60'000, 6) == "second");
}

TEST_CASE("a file that was removed before it is opened is not there") {
  written_file f;
  auto late = std::make_shared<live_file>(f.store.core, f.jobs, f.id);
  f.store.metadata->unlink({1, "f"}, false);
  CHECK_THROWS_AS(late->open(false), ooc::error);
}

TEST_CASE("a file that is written, flushed and asked for at the same time never gets shorter") {
  written_file f;
  std::atomic<bool> over{false};
  std::thread flushing([&] {
    while (!over) (void)f.file->flush_and_wait();
  });
  std::thread asking([&] {
    while (!over) {
      storage::entry e = f.store.metadata->find(f.id);
      f.file->overlay(e);
    }
  });
  const std::string piece(100'000, 'a');
  std::uint64_t end = 0;
  unsigned wrong = 0;
  for (int i = 0; i < 300; ++i) {
    wrong += f.write(end, piece) != 0;
    end += piece.size();
    wrong += f.file->size() != end;
    wrong += f.read(end - 10, 100) != "aaaaaaaaaa";
    wrong += f.file->size() != end;
  }
  over = true;
  flushing.join();
  asking.join();
  CHECK(wrong == 0);
  CHECK(f.file->flush_and_wait() == 0);
  CHECK(f.store.metadata->find(f.id).size == end);
}

TEST_CASE("a file that another has made an array is not made longer") {
  written_file f;
  f.store.metadata->set_attribute(f.id, "ooc.type", "f8");
  const auto other = f.store.core->open(f.id, storage::open_mode::read);
  f.store.core->resize(other, 80, {10});
  for (const std::size_t bytes : {100, 2 << 20}) {
    (void)f.write(0, std::string(bytes, 'a'));
    (void)f.file->flush_and_wait();
    const storage::entry now = f.store.metadata->find(f.id);
    CHECK(now.size == 80);
    CHECK(now.reserved == 0);
  }
  std::uint64_t seen = 0;
  CHECK(f.file->take_error(seen) != 0);
}

TEST_CASE("what is reserved goes back when all handles are closed at once") {
  written_file f;
  f.file->open(true);
  REQUIRE(f.write(0, std::string(2 << 20, 'a')) == 0);
  CHECK(f.store.metadata->find(f.id).reserved > 2 << 20);
  f.file->close_all();
  CHECK(f.store.metadata->find(f.id).size == 2 << 20);
  CHECK(f.store.metadata->find(f.id).reserved == 0);
}

TEST_CASE("what is allocated within what is reserved is in the size") {
  written_file f;
  REQUIRE(f.write(0, std::string(2 << 20, 'a')) == 0);
  REQUIRE(f.file->allocate(10 << 20, false) == 0);
  CHECK(f.file->flush_and_wait() == 0);
  CHECK(f.file->size() == 10 << 20);
  CHECK(f.store.metadata->find(f.id).size == 10 << 20);
}

TEST_CASE("an array that could not be opened for writing stays free for others") {
  memory_store store{1};
  const auto node = std::make_shared<storage::faulty_io_service>(store.nodes[0]);
  store.core =
      std::make_shared<storage::store_core>("memory:", "test", store.metadata, storage::striped_file::nodes{node});
  job_threads<> jobs{1};
  storage::new_file made;
  made.striping = {.sn = 0, .nn = 1, .sf = 4096};
  made.size = 80;
  made.array.extents = {10};
  made.array.element_type = "f8";
  made.array.element_size = 8;
  const storage::file_id id = store.core->create("f", made).meta.id;
  const auto file = std::make_shared<live_file>(store.core, jobs, id);
  file->open(false);  // somebody reads it, before and after
  node->add({.call = storage::io_kind::advance, .times = 1, .error = std::make_error_code(std::errc::io_error)});
  CHECK_THROWS_AS(file->open(true), ooc::error);
  CHECK(store.metadata->claim_writer(id, false));
  file->open(true);
  CHECK_FALSE(store.metadata->claim_writer(id, false));
  node->add({.call = storage::io_kind::advance, .times = 1, .error = std::make_error_code(std::errc::io_error)});
  file->open(true);  // the second writer needs nothing new
  file->close(true);
  CHECK_FALSE(store.metadata->claim_writer(id, false));
  file->close(true);
  CHECK(store.metadata->claim_writer(id, false));
}

TEST_CASE("appended bytes behind a write that was stored in part leave no hole") {
  constexpr std::size_t mebibyte = 1 << 20;
  file_on_faulty_node f;
  auto& store = f.store;
  const auto node = f.node;
  const auto file = f.file;
  const std::string bytes(mebibyte, 'a');
  const auto append = [&](std::uint64_t at) {
    file->write(at, std::as_bytes(std::span(bytes)), false, [](int error) { CHECK(error == 0); });
  };
  REQUIRE(file->allocate(mebibyte + mebibyte / 2, true) == 0);
  append(0);
  REQUIRE(file->flush_and_wait() == 0);
  node->add({.call = storage::io_kind::write, .hold = true});
  store.nodes[0]->fail(io_kind::resize, std::make_error_code(std::errc::no_space_on_device));
  append(mebibyte);  // the first half of it has room
  REQUIRE(soon([&] { return node->held() == 1; }));
  store.nodes[0]->heal();
  append(2 * mebibyte);
  node->clear();
  node->release();
  (void)file->flush_and_wait();
  std::uint64_t seen = 0;
  CHECK(file->take_error(seen) == ENOSPC);
  CHECK(file->size() == mebibyte + mebibyte / 2);
  file->close(true);
}
