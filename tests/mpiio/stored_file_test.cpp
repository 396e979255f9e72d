// A rank's open file, without MPI: several of them in one process, as if each belonged to a rank.
#include "mpiio/stored_file.hpp"

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <string_view>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "support/forwarded_node.hpp"
#include "support/temporary_folder.hpp"
#include "support/thread_group.hpp"

using namespace ooc;
using namespace ooc::mpiio;
using namespace ooc::testing;

namespace {

ooc_mpiio_extent extent(void* memory, std::uint64_t offset, std::size_t length) {
  return {memory, reinterpret_cast<void*>(offset), length};
}

struct two_ranks {
  temporary_folder folder;
  std::string url = "local:" + (folder / "n0").string() + "," + (folder / "n1").string();
  store a = store::open(url), b = store::open(url);
  std::shared_ptr<stored_file> first = stored_file::open(a, {.path = "f", .create = true, .write = true});
  std::shared_ptr<stored_file> second = stored_file::open_known(b, first->id(), true);

  storage::entry entry() { return a.core()->metadata().lookup("f"); }
  void close() {
    first->leave();
    second->leave();
    first->give_back();
  }
};

void write(stored_file& f, std::uint64_t offset, const std::string& text) {
  const ooc_mpiio_extent e = extent(const_cast<char*>(text.data()), offset, text.size());
  CHECK(f.write({&e, 1}, false)->wait() == text.size());
}

std::string read(stored_file& f, std::uint64_t offset, std::size_t length) {
  std::string text(length, '?');
  const ooc_mpiio_extent e = extent(text.data(), offset, length);
  text.resize(f.read({&e, 1}, false)->wait());
  return text;
}

}  // namespace

TEST_CASE("ranks that make a file longer at the same time cut nothing off") {
  two_ranks r;
  for (int round = 0; round < 40; ++round) {
    const stored_file::opening o{.path = "f" + std::to_string(round), .create = true, .write = true};
    const auto first = stored_file::open(r.a, o);
    const auto second = stored_file::open_known(r.b, first->id(), true);
    write(*first, 0, std::string(100, 'a'));
    // The one for the second time, with more than it needs, the other for the first time
    std::barrier together(2);
    std::thread other([&] {
      together.arrive_and_wait();
      write(*second, 100, std::string(100, 'b'));
    });
    together.arrive_and_wait();
    write(*first, 200, std::string(100, 'c'));
    other.join();
    REQUIRE(first->size() == 300);
    REQUIRE(read(*first, 90, 300) == std::string(10, 'a') + std::string(100, 'b') + std::string(100, 'c'));
    first->leave();
    second->leave();
    first->give_back();
  }
  r.close();
}

TEST_CASE("a rank that makes a file longer while another makes it much longer can write up to there") {
  two_ranks r;
  constexpr std::uint64_t far = std::uint64_t{20} << 20;  // past what the first one reserves
  for (int round = 0; round < 10; ++round) {
    const stored_file::opening o{.path = "f" + std::to_string(round), .create = true, .write = true};
    const auto first = stored_file::open(r.a, o);
    const auto second = stored_file::open_known(r.b, first->id(), true);
    write(*first, 0, "a");
    write(*first, 1, "a");
    std::barrier together(2);
    std::thread other([&] {
      together.arrive_and_wait();
      write(*second, far, "b");
    });
    together.arrive_and_wait();
    for (std::uint64_t i = 2; i < 20; ++i) write(*first, i, "a");
    other.join();
    write(*first, far - 1, "c");
    REQUIRE(read(*second, far - 1, 10) == "cb");
    first->leave();
    second->leave();
    first->give_back();
  }
  r.close();
}

TEST_CASE("what is reserved past the end of a file is given back when all ranks have closed it") {
  two_ranks r;
  for (std::uint64_t i = 0; i < 4; ++i) write(*r.first, i * 1000, std::string(1000, 'x'));
  CHECK(r.entry().size == 4000);
  CHECK(r.entry().reserved >= 16 << 20);
  r.first->leave();
  r.first->give_back();  // the second rank may still write
  CHECK(r.entry().reserved >= 16 << 20);
  write(*r.second, 4000, "end");
  r.second->leave();
  r.second->give_back();
  CHECK(r.entry().reserved == 0);
  CHECK(r.entry().size == 4003);
}

TEST_CASE("in atomic mode a file gets longer together with the bytes that make it so") {
  two_ranks r;
  constexpr std::size_t bytes = 300'000;
  constexpr std::uint64_t writes = 60;
  std::thread writer([&] {
    const std::string text(bytes, 'x');
    for (std::uint64_t i = 0; i < writes; ++i) {
      const ooc_mpiio_extent e = extent(const_cast<char*>(text.data()), i * bytes, bytes);
      r.first->write({&e, 1}, true);
    }
  });
  // A reader that takes no lock sees the more of what may be seen.
  for (std::uint64_t i = 0; i < writes;) {
    const std::string seen = read(*r.second, i * bytes, bytes);
    if (seen.empty()) continue;
    if (seen != std::string(bytes, 'x')) {
      FAIL_CHECK("write " << i << ": the file has " << seen.size() << " of its " << bytes << " bytes, and byte "
                          << seen.find_first_not_of('x') << " is not yet written");
      break;
    }
    ++i;
  }
  writer.join();
  r.close();
}

TEST_CASE("atomic writes that make a file longer while it is made shorter lose nothing that comes later") {
  two_ranks r;
  std::thread shorter([&] {
    for (int i = 0; i < 50; ++i) r.second->resize(0);
  });
  const std::string text(10'000, 'x');
  for (std::uint64_t i = 0; i < 50; ++i) {
    const ooc_mpiio_extent e = extent(const_cast<char*>(text.data()), i * text.size(), text.size());
    r.first->write({&e, 1}, true);
  }
  shorter.join();
  const ooc_mpiio_extent e = extent(const_cast<char*>(text.data()), 0, text.size());
  r.first->forget_size();
  r.first->write({&e, 1}, true);
  r.second->forget_size();
  CHECK(read(*r.second, 0, text.size()) == text);
  r.close();
}

TEST_CASE(
    "what a rank writes within the size that it has seen before another program cut the file off is in the file") {
  two_ranks r;
  const bool atomic = GENERATE(false, true);
  const int appends = GENERATE(1, 3);
  for (int i = 0; i < appends; ++i) write(*r.first, static_cast<std::uint64_t>(i) * 50'000, std::string(50'000, 'x'));
  write(*r.second, 0, "y");
  const store other = store::open(r.url);
  file::open(other, "f", file_access::read_write).truncate(10);
  const std::string text(300, 'z');
  const ooc_mpiio_extent e = extent(const_cast<char*>(text.data()), 30'000, text.size());
  CHECK(r.first->write({&e, 1}, atomic)->wait() == text.size());
  CHECK(file::open(other, "f").size() == 30'300);
  write(*r.second, 40'000, "end");
  r.first->forget_size();
  CHECK(read(*r.first, 0, 100'000) ==
        "y" + std::string(9, 'x') + std::string(29'990, '\0') + text + std::string(9'700, '\0') + "end");
  r.close();
}

TEST_CASE("ranks that write together make a file longer again that is cut off in the middle of it") {
  two_ranks r;
  write(*r.first, 0, std::string(1'000, 'x'));
  const store other = store::open(r.url);
  file cutter = file::open(other, "f", file_access::read_write);
  int cuts = 0;
  thread_group(2).run([&](process_group& group) {
    watched_rank me(group, [&](std::string_view call) {
      if (group.rank() == 0 && call.starts_with("growth") && cuts++ < 2) cutter.truncate(100);
    });
    std::string text(3'000, group.rank() == 0 ? 'a' : 'b');
    const ooc_mpiio_extent e =
        extent(text.data(), 20'000 + 3'000 * static_cast<std::uint64_t>(group.rank()), text.size());
    stored_file& f = group.rank() == 0 ? *r.first : *r.second;
    (void)f.transfer_together(me, access_kind::write, {&e, 1}, false);
  });
  CHECK(cuts > 2);
  CHECK(read(*r.first, 0, 100'000) ==
        std::string(100, 'x') + std::string(19'900, '\0') + std::string(3'000, 'a') + std::string(3'000, 'b'));
  r.close();
}

TEST_CASE("writes that are under way while another program cuts the file off are before or after it") {
  two_ranks r;
  const store other = store::open(r.url);
  file cutter = file::open(other, "f", file_access::read_write);
  const std::string text(40'000, 'x');
  for (int round = 0; round < 50; ++round) {
    write(*r.first, 0, std::string(200'000, 'o'));
    std::vector<ooc_mpiio_extent> places;
    std::vector<std::shared_ptr<transfer>> started;
    for (std::uint64_t i = 0; i < 5; ++i)
      places.push_back(extent(const_cast<char*>(text.data()), i * text.size(), text.size()));
    std::thread cut([&] { cutter.truncate(100); });
    for (const auto& p : places) started.push_back(r.first->write({&p, 1}, false));
    for (const auto& t : started) CHECK(t->wait() == text.size());
    cut.join();
    CHECK(r.first->write({&places[3], 1}, false)->wait() == text.size());
    CHECK(cutter.size() >= 4 * text.size());
    CHECK(read(*r.second, 3 * text.size(), text.size()) == text);
  }
  r.close();
}

namespace {

/// A node that goes on for a while after it has said that a write has ended.
class lingering_node final : public forwarded_node {
 public:
  using forwarded_node::forwarded_node;
  void answer(storage::node_call call, storage::completion done) override {
    if (call.kind != storage::io_kind::write) return forwarded_node::answer(std::move(call), std::move(done));
    forwarded_node::answer(std::move(call), [this, done = std::move(done)](const failure& f) mutable {
      done(f);
      may_go.wait(false);
      done = nullptr;
      gone = true;
      gone.notify_all();
    });
  }
  std::atomic<bool> may_go = false, gone = false;
};

}  // namespace

TEST_CASE("a file that is closed is not kept by the thread that has told of its last write") {
  const temporary_folder folder;
  const std::string url = "local:" + (folder / "n0").string();
  std::weak_ptr<storage::store_core> closed;
  std::shared_ptr<lingering_node> node;
  {
    const store s = store::open(url);
    node = std::make_shared<lingering_node>(s.core()->nodes().front());
    const std::shared_ptr<storage::metadata_service> metadata(s.core(), &s.core()->metadata());
    const store slow(
        std::make_shared<storage::store_core>(url, s.core()->uuid(), metadata, storage::striped_file::nodes{node}));
    closed = slow.core();
    const auto f = stored_file::open(slow, {.path = "f", .create = true, .write = true});
    write(*f, 0, "one");
    f->leave();
    f->give_back();
  }
  CHECK(closed.expired());
  node->may_go = true;
  node->may_go.notify_all();
  node->gone.wait(false);
}

TEST_CASE("a rank reads what another has written past the end that it knew") {
  two_ranks r;
  write(*r.first, 0, "one");
  CHECK(read(*r.second, 0, 10) == "one");
  write(*r.first, 3, "two");
  CHECK(read(*r.second, 1, 10) == "netwo");
  r.first->resize(2);
  r.second->forget_size();
  CHECK(read(*r.second, 0, 10) == "on");
  r.close();
}

TEST_CASE("a file that is open for reading is made neither shorter nor longer") {
  two_ranks r;
  write(*r.first, 0, "text");
  const auto reader = stored_file::open(r.b, {.path = "f", .write = false});
  const auto as_bad_descriptor = Catch::Predicate<usage_error>(
      [](const usage_error& e) { return e.code() == std::error_code(EBADF, std::generic_category()); }, "is EBADF");
  for (const std::uint64_t size : {0, 2, 4, 100})
    CHECK_THROWS_MATCHES(reader->resize(size), usage_error, as_bad_descriptor);
  CHECK_THROWS_WITH(reader->resize(2), Catch::Contains("'f' was opened for reading only"));
  CHECK(reader->size() == 4);
  CHECK(read(*reader, 0, 10) == "text");
  reader->leave();
  r.close();
}

TEST_CASE("a file of a store that may only be read is read in atomic mode, too") {
  const temporary_folder folder;
  const std::string there = (folder / "n0").string(), lost = (folder / "n1").string();
  {
    const store s = store::open("local:" + there + "," + lost);
    const auto f = stored_file::open(s, {.path = "f", .create = true, .write = true, .striping = {.sn = 0, .nn = 1}});
    write(*f, 0, "text");
    f->leave();
    f->give_back();
  }
  std::filesystem::remove_all(lost);
  const store s = store::open("local:" + there + "," + lost + "?lost=" + lost);
  const auto f = stored_file::open(s, {.path = "f"});
  std::string text(10, '?');
  const ooc_mpiio_extent e = extent(text.data(), 0, text.size());
  text.resize(f->read({&e, 1}, true)->wait());
  CHECK(text == "text");
  f->leave();
}

TEST_CASE("a file that is open for writing cannot be removed, nor opened for writing by somebody alone") {
  two_ranks r;
  CHECK_THROWS_AS(r.a.remove("f"), usage_error);
  CHECK(!r.a.core()->metadata().claim_writer(r.first->id(), false));
  r.close();
  const auto alone = r.a.core()->metadata().claim_writer(r.first->id(), false);
  CHECK(alone);
  CHECK_THROWS_WITH(stored_file::open(r.b, {.path = "f", .write = true}),
                    Catch::Contains("'f' is open for writing in another program"));
}

TEST_CASE("an array is written in place, and not made longer") {
  temporary_folder folder;
  store s = store::open("local:" + (folder / "n0").string());
  storage::new_file array;
  array.size = 96;
  array.striping = {0, 1, 4096};
  array.array = {"f8", 8, {3, 4}, {3}, {}, {}};
  s.core()->create("a", array);
  const auto f = stored_file::open(s, {.path = "a", .write = true});
  write(*f, 88, "12345678");
  CHECK(read(*f, 90, 100) == "345678");
  const ooc_mpiio_extent past = extent(folder.path().string().data(), 95, 2);
  CHECK_THROWS_WITH(f->write({&past, 1}, false), Catch::Contains("holds an array"));
  CHECK_THROWS_WITH(f->resize(10), Catch::Contains("holds an array"));
  f->leave();
}
