#include "oocarray/block_file.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "storage/service/store_core.hpp"
#include "support/faulty_io_service.hpp"
#include "support/memory_store.hpp"
#include "support/random_seed.hpp"
#include "support/soon.hpp"
#include "support/store_from_environment.hpp"

namespace {

using namespace ooc::literals;
using bytes = std::vector<std::byte>;

/// A store of `nodes` folders that is gone when the test ends.
class scratch_store {
 public:
  explicit scratch_store(unsigned nodes) {
    if (auto given = ooc::testing::store_from_environment()) {
      store_.push_back(*given);
      return;
    }
    std::string name = (std::filesystem::temp_directory_path() / "ooc_block_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    root_ = name;
    std::string url = "local:";
    for (unsigned n = 0; n < nodes; ++n) {
      const auto folder = root_ / std::to_string(n);
      std::filesystem::create_directory(folder);
      url += (n ? "," : "") + folder.string();
    }
    ooc::store_options small;  // transfer buffers come off the budgets below
    small.workers = 1;
    small.staging = 64_KiB;
    store_.emplace_back(ooc::store::open(url, small));
  }
  ~scratch_store() {
    store_.clear();
    if (!root_.empty()) std::filesystem::remove_all(root_);
  }
  ooc::store& operator*() { return store_.front(); }
  ooc::store* operator->() { return &store_.front(); }

 private:
  std::filesystem::path root_;
  std::vector<ooc::store> store_;
};

/// A runtime that never reads ahead, so that accesses can be counted.
ooc::runtime_options plain(std::uint64_t memory) {
  ooc::runtime_options o;
  o.memory = memory;
  o.read_ahead = 1;
  return o;
}

const ooc::blocking paper{.rs = 500, .ne = {2, 3}, .nb = {6, 3}, .bf = {2, 1}};

/// Byte `offset` of a test file.
std::byte pattern(std::uint64_t offset) { return static_cast<std::byte>((offset * 2654435761u) >> 13 & 0xff); }

/// Fills a file without the block layer.
void make_file(const ooc::store& s, const std::string& path, std::uint64_t size,
               ooc::striping striping = {0, 0, 4096}) {
  ooc::storage::new_file f;
  f.size = size;
  f.striping = striping;
  const auto opened = s.core()->create(path, f);
  bytes data(size);
  for (std::uint64_t i = 0; i < size; ++i) data[i] = pattern(i);
  ooc::throw_if(opened.file->write(ooc::request::contiguous(0, size), data.data()));
}

bytes file_content(ooc::store& s, const std::string& path) {
  const auto opened = s.core()->open(path, ooc::storage::open_mode::read);
  bytes data(opened.meta.size);
  ooc::throw_if(opened.file->read(ooc::request::contiguous(0, data.size()), data.data()));
  return data;
}

template <class F>
void expect(std::error_code code, F&& f) {
  try {
    f();
    FAIL("nothing was thrown");
  } catch (const ooc::error& e) {
    INFO(e.what());
    CHECK(e.code() == code);
  }
}

}  // namespace

TEST_CASE("blocks of one superblock cost one access to the store", "[nodes]") {
  for (const ooc::striping striping : {ooc::striping{0, 4, 4096}, ooc::striping{1, 2, 8000}}) {
    scratch_store s(4);
    make_file(*s, "matrix", 54000, striping);
    ooc::runtime rt(plain(8_MiB));
    auto f = ooc::block_file::open(rt, *s, "matrix", paper);
    bytes block(f.block_bytes());
    const auto check = [&](std::uint64_t bx, std::uint64_t by) {
      f.read_block({bx, by}, block);
      for (std::uint64_t row = 0; row < 3; ++row)
        for (std::uint64_t i = 0; i < 1000; ++i)
          if (block[row * 1000 + i] != pattern(18000 * by + 1000 * bx + 6000 * row + i)) return false;
      return true;
    };
    const auto before = s->node_stats();
    CHECK(check(2, 0));
    const auto after = s->node_stats();
    std::uint64_t read = 0;
    for (std::size_t n = 0; n < after.size(); ++n) {
      CHECK((after[n] - before[n]).read_requests <= 1);
      read += (after[n] - before[n]).bytes_read;
    }
    CHECK(read == 6000);
    CHECK(check(3, 0));
    CHECK(check(2, 0));
    CHECK((s->stats() -
           [&] {
             ooc::io_stats sum;
             for (const auto& n : after) sum += n;
             return sum;
           }())
              .read_requests == 0);
    for (std::uint64_t by = 0; by < 3; ++by)
      for (std::uint64_t bx = 0; bx < 6; ++bx) CHECK(check(bx, by));
    std::uint64_t all = 0;
    for (const auto& n : s->node_stats()) all += n.bytes_read;
    for (const auto& n : before) all -= n.bytes_read;
    CHECK(all == 54000);
  }
}

TEST_CASE("one superblock in memory is enough, as in the paper") {
  scratch_store s(1);
  make_file(*s, "matrix", 54000);
  ooc::runtime rt(plain(8_MiB));
  ooc::block_file_options one;
  one.max_superblocks = 1;
  auto f = ooc::block_file::open(rt, *s, "matrix", paper, one);
  bytes block(f.block_bytes()), again(f.block_bytes());
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::byte> model;
  for (unsigned round = 0; round < 3; ++round)
    for (std::uint64_t by = 0; by < 3; ++by)
      for (std::uint64_t bx = 0; bx < 6; ++bx) {
        if (round > 0) {
          f.read_block({bx, by}, again);
          CHECK(again == bytes(f.block_bytes(), model[{bx, by}]));
        }
        const auto value = static_cast<std::byte>(round * 64 + by * 8 + bx);
        block.assign(f.block_bytes(), value);
        f.write_block({bx, by}, block);
        model[{bx, by}] = value;
      }
}

TEST_CASE("the superblock that the program comes to next is read while it is at work with this one") {
  scratch_store s(1);
  constexpr std::uint64_t blocks = 40, bytes_of_one = 64 << 10;
  make_file(*s, "matrix", blocks * bytes_of_one);
  ooc::runtime rt(ooc::runtime_options{.memory = 1_MiB});
  ooc::block_file_options options;
  options.max_superblocks = GENERATE(2, 3, 8, 0);
  const std::uint64_t step = GENERATE(1, 3);  // as of one of three ranks
  auto f = ooc::block_file::open(rt, *s, "matrix", {1, {bytes_of_one}, {blocks}, {1}}, options);
  bytes block(f.block_bytes());
  const std::uint64_t seen = step == 1 ? 2 : 3;  // by then the way is known
  std::uint64_t read = 0;
  for (std::uint64_t b = 0; b < blocks; b += step) {
    f.read_block({b}, block);
    REQUIRE(block[5] == pattern(b * bytes_of_one + 5));
    if (++read >= seen && b + step < blocks)
      REQUIRE(ooc::testing::soon([&] { return rt.stats().read_ahead_blocks > read - seen; }));
  }
  const ooc::runtime_stats n = rt.stats();
  CHECK(n.read_ahead_hits + seen >= read);
  CHECK(n.faults == seen);
  CHECK(n.bytes_read <= (read + 8) * bytes_of_one);
}

TEST_CASE("loads of superblocks are faults where nobody has read them ahead, and the program's waiting is counted") {
  ooc::testing::memory_store inner(1);
  make_file(inner.handle(), "matrix", 54000);
  auto slow = std::make_shared<ooc::storage::faulty_io_service>(inner.nodes[0]);
  // Long enough that one of five pins comes before its superblock, whatever else the machine does.
  slow->add({.delay = std::chrono::milliseconds(20)});
  const ooc::store s(std::make_shared<ooc::storage::store_core>("memory:", "test", inner.metadata,
                                                                ooc::storage::striped_file::nodes{slow}));
  ooc::runtime rt(plain(8_MiB));
  ooc::block_file_options one;
  one.max_superblocks = 1;
  auto f = ooc::block_file::open(rt, s, "matrix", paper, one);
  bytes block(f.block_bytes());
  for (const std::uint64_t by : {0, 2, 1, 0, 2}) f.read_block({0, by}, block);
  const ooc::runtime_stats n = rt.stats();
  CHECK(n.faults == 5);
  CHECK(n.read_ahead_blocks == 0);
  CHECK(n.read_wait_ns > 0);
}

TEST_CASE("a superblock that had to leave is read again", "[nodes]") {
  scratch_store s(1);
  make_file(*s, "matrix", 54000);
  ooc::runtime rt(plain(8_MiB));
  ooc::block_file_options few;
  few.max_superblocks = 4;
  auto f = ooc::block_file::open(rt, *s, "matrix", paper, few);
  bytes block(f.block_bytes());
  const auto start = s->stats();
  const auto reads = [&] { return (s->stats() - start).read_requests; };
  for (std::uint64_t by = 0; by < 3; ++by)
    for (std::uint64_t bx = 0; bx < 6; ++bx) f.read_block({bx, by}, block);
  CHECK(reads() == 9);
  f.read_block({5, 2}, block);
  CHECK(reads() == 9);
  f.read_block({0, 0}, block);
  CHECK(reads() == 10);
}

TEST_CASE("a row of blocks is one access", "[nodes]") {
  scratch_store s(1);
  ooc::runtime rt(plain(8_MiB));
  const ooc::blocking b{.rs = 16, .ne = {8, 8}, .nb = {16, 16}, .bf = {16, 1}};
  make_file(*s, "a", b.file_bytes());
  auto f = ooc::block_file::open_read_only(rt, *s, "a", b);
  const auto start = s->stats();
  bytes block(f.block_bytes());
  for (std::uint64_t by = 0; by < 16; ++by)
    for (std::uint64_t bx = 0; bx < 16; ++bx) f.read_block({bx, by}, block);
  CHECK((s->stats() - start).read_requests == 16);
  CHECK((s->stats() - start).bytes_read == b.file_bytes());
}

TEST_CASE("a block that is its superblock is written without being read") {
  scratch_store s(2);
  ooc::runtime rt(plain(8_MiB));
  const ooc::blocking b{.rs = 4, .ne = {7, 5}, .nb = {3, 4}, .bf = {}};
  make_file(*s, "m", b.file_bytes());
  const auto start = s->stats();
  {
    auto f = ooc::block_file::open(rt, *s, "m", b);
    const bytes block(f.block_bytes(), std::byte{9});
    for (std::uint64_t by = 0; by < 4; ++by)
      for (std::uint64_t bx = 0; bx < 3; ++bx) f.write_block({bx, by}, block);
    CHECK(f.dirty_superblocks() == 12);
    f.writeback(ooc::durable);
    CHECK(f.dirty_superblocks() == 0);
    f.invalidate();
    {
      const ooc::block_guard g = f.overwrite({1, 1});
      for (std::uint64_t y = 0; y < 5; ++y) std::memset(g.data() + y * g.stride(1), 9, 7 * 4);
    }
  }
  CHECK((s->stats() - start).bytes_read == 0);
  CHECK((s->stats() - start).bytes_written == b.file_bytes() + b.block_bytes());
  CHECK(file_content(*s, "m") == bytes(b.file_bytes(), std::byte{9}));
}

TEST_CASE("a block of a larger superblock leaves its neighbours alone") {
  scratch_store s(4);
  ooc::runtime rt(plain(8_MiB));
  make_file(*s, "matrix", 54000);
  bytes expected = file_content(*s, "matrix");
  {
    auto f = ooc::block_file::open(rt, *s, "matrix", paper);
    f.write_block({3, 1}, bytes(3000, std::byte{7}));
  }
  for (std::uint64_t row = 3; row < 6; ++row) std::fill_n(expected.begin() + row * 6000 + 3000, 1000, std::byte{7});
  CHECK(file_content(*s, "matrix") == expected);
}

TEST_CASE("what another program cuts off past the blocks of a file that is no array stops nobody from writing them") {
  scratch_store s(2);
  ooc::runtime rt(plain(8_MiB));
  make_file(*s, "matrix", 70000);
  bytes expected = file_content(*s, "matrix");
  auto f = ooc::block_file::open(rt, *s, "matrix", paper);
  const auto other = s->core()->open("matrix", ooc::storage::open_mode::read);
  s->core()->resize(other, 54100, {});
  f.write_block({3, 1}, bytes(3000, std::byte{7}));
  f.writeback();
  f.close();
  expected.resize(54100);
  for (std::uint64_t row = 3; row < 6; ++row) std::fill_n(expected.begin() + row * 6000 + 3000, 1000, std::byte{7});
  CHECK(file_content(*s, "matrix") == expected);
}

TEST_CASE("a pinned block is read and written in place") {
  scratch_store s(2);
  ooc::runtime rt(plain(8_MiB));
  const ooc::blocking b{.rs = 8, .ne = {3, 2}, .nb = {5, 4}, .bf = {2, 3}};
  const auto at = [&](std::uint64_t x, std::uint64_t y) { return double(y * 15 + x); };
  {
    auto f = ooc::block_file::create(rt, *s, "m", b);
    for (std::uint64_t by = 0; by < 4; ++by)
      for (std::uint64_t bx = 0; bx < 5; ++bx) {
        const ooc::block_guard g = f.pin({bx, by}, ooc::access_mode::write);
        CHECK(g.stride(0) == 8);
        CHECK(g.extent(0) == 3);
        CHECK(g.extent(1) == 2);
        for (std::uint64_t y = 0; y < 2; ++y)
          for (std::uint64_t x = 0; x < 3; ++x)
            g.as<double>()[(y * g.stride(1) + x * g.stride(0)) / 8] = at(bx * 3 + x, by * 2 + y);
      }
  }
  bytes expected(b.file_bytes());
  for (std::uint64_t i = 0; i < expected.size() / 8; ++i) {
    const double v = at(i % 15, i / 15);
    std::memcpy(&expected[i * 8], &v, 8);
  }
  CHECK(file_content(*s, "m") == expected);
}

TEST_CASE("a guard keeps its file open and can be moved") {
  scratch_store s(1);
  ooc::runtime rt(plain(8_MiB));
  auto f = ooc::block_file::create(rt, *s, "m", paper);
  ooc::block_guard g = f.pin({0, 0}, ooc::access_mode::write);
  expect(ooc::errc::busy, [&] { f.close(); });
  expect(ooc::errc::busy, [&] { f.invalidate(ooc::discard); });
  ooc::block_guard h = std::move(g);
  CHECK(g.data() == nullptr);
  std::memset(h.data(), 5, 1000);
  g = std::move(h);
  g.reset();
  CHECK(f.dirty_superblocks() == 1);
  f.close();
  f.close();
  expect(ooc::errc::closed, [&] { f.writeback(); });
  CHECK(file_content(*s, "m")[999] == std::byte{5});
}

TEST_CASE("modified blocks are not forgotten without being asked") {
  scratch_store s(1);
  ooc::runtime rt(plain(8_MiB));
  auto f = ooc::block_file::create(rt, *s, "m", paper);
  const bytes ones(3000, std::byte{1});
  bytes got(3000);
  f.write_block({1, 1}, ones);
  expect(ooc::errc::dirty, [&] { f.invalidate(); });
  f.read_block({1, 1}, got);
  CHECK(got == ones);
  f.invalidate(ooc::discard);
  f.read_block({1, 1}, got);
  CHECK(got == bytes(3000));
  f.write_block({1, 1}, ones);
  f.writeback();
  f.invalidate();
  f.read_block({1, 1}, got);
  CHECK(got == ones);
}

TEST_CASE("after invalidate() another writer's bytes are seen") {
  scratch_store s(2);
  make_file(*s, "m", 54000);
  ooc::runtime rt(plain(8_MiB));
  auto f = ooc::block_file::open(rt, *s, "m", paper);
  bytes got(3000);
  f.read_block({0, 0}, got);
  const auto other = s->core()->open("m", ooc::storage::open_mode::read_write);
  const bytes fives(1000, std::byte{5});
  ooc::throw_if(other.file->write(ooc::request::contiguous(0, 1000), fives.data()));
  f.read_block({0, 0}, got);
  CHECK(got[0] == pattern(0));
  f.invalidate();
  f.read_block({0, 0}, got);
  CHECK(got[0] == std::byte{5});
}

TEST_CASE("a file is open once in a process") {
  scratch_store s(1);
  ooc::runtime rt(plain(8_MiB));
  auto f = ooc::block_file::create(rt, *s, "m", paper);
  expect(ooc::errc::busy, [&] { ooc::block_file::open_read_only(rt, *s, "m", paper); });
  f.close();
  ooc::block_file::open_read_only(rt, *s, "m", paper);
}

TEST_CASE("what cannot be is refused, and nothing is changed") {
  scratch_store s(1);
  ooc::runtime rt(plain(1_MiB));
  make_file(*s, "m", 54000);
  const ooc::blocking too_long{.rs = 500, .ne = {2, 3}, .nb = {6, 4}, .bf = {}};
  expect(ooc::errc::type_mismatch, [&] { ooc::block_file::open(rt, *s, "m", too_long); });
  expect(std::error_code(ENOENT, std::generic_category()), [&] { ooc::block_file::open(rt, *s, "nothing", paper); });
  const ooc::blocking huge{.rs = 8, .ne = {1024, 1024}, .nb = {2, 2}, .bf = {2, 1}};
  expect(ooc::errc::budget_too_small, [&] { ooc::block_file::create(rt, *s, "huge", huge); });
  expect(std::error_code(ENOENT, std::generic_category()),
         [&] { s->core()->open("huge", ooc::storage::open_mode::read); });
  const ooc::blocking tiny{.rs = 1, .ne = {1}, .nb = {1ull << 40}, .bf = {}};
  expect(ooc::errc::invalid_request, [&] { ooc::block_file::create(rt, *s, "tiny", tiny); });
  expect(std::error_code(EEXIST, std::generic_category()), [&] { ooc::block_file::create(rt, *s, "m", paper); });

  ooc::storage::new_file tiled;
  tiled.size = 54000;
  tiled.striping = {0, 0, 4096};
  tiled.array.element_size = 500;
  tiled.array.extents = {9, 12};
  tiled.array.tile = {3, 2};
  s->core()->create("tiled", tiled);
  expect(ooc::errc::type_mismatch, [&] { ooc::block_file::open(rt, *s, "tiled", paper); });

  auto f = ooc::block_file::open_read_only(rt, *s, "m", paper);
  bytes block(3000);
  expect(std::error_code(EROFS, std::generic_category()), [&] { f.write_block({0, 0}, block); });
  expect(std::error_code(EROFS, std::generic_category()), [&] { f.pin({0, 0}, ooc::access_mode::write); });
  expect(ooc::errc::invalid_request, [&] { f.read_block({6, 0}, block); });
  expect(ooc::errc::invalid_request, [&] { f.read_block({0}, block); });
  block.resize(2999);
  expect(ooc::errc::invalid_request, [&] { f.read_block({0, 0}, block); });
}

TEST_CASE("a dirty block survives a failed write, and a failed read is an error, not the end") {
  ooc::testing::memory_store inner(2);
  auto faulty = std::make_shared<ooc::storage::faulty_io_service>(inner.nodes[1]);
  const ooc::store s(std::make_shared<ooc::storage::store_core>(
      "memory:", "test", inner.metadata, ooc::storage::striped_file::nodes{inner.nodes[0], faulty}));
  ooc::runtime rt(plain(8_MiB));
  const std::error_code broken(EIO, std::generic_category());
  auto f = ooc::block_file::create(rt, s, "m", paper);
  const bytes sevens(3000, std::byte{7});
  bytes got(3000);
  for (std::uint64_t by = 0; by < 3; ++by) f.write_block({3, by}, sevens);
  faulty->add({.call = ooc::storage::io_kind::write, .error = broken});
  expect(broken, [&] { f.writeback(); });
  CHECK(f.dirty_superblocks() > 0);
  expect(broken, [&] { f.close(); });
  f.read_block({3, 1}, got);
  CHECK(got == sevens);
  faulty->clear();
  f.writeback();
  CHECK(f.dirty_superblocks() == 0);

  f.invalidate();
  faulty->add({.call = ooc::storage::io_kind::read, .error = broken});
  expect(broken, [&] {
    for (std::uint64_t by = 0; by < 3; ++by) f.read_block({3, by}, got);
  });
  faulty->clear();
  for (std::uint64_t by = 0; by < 3; ++by) {
    f.read_block({3, by}, got);
    CHECK(got == sevens);
  }
}

TEST_CASE("threads read and write their own blocks of shared superblocks") {
  scratch_store s(2);
  ooc::runtime rt(plain(1_MiB));
  const ooc::blocking b{.rs = 16, .ne = {8, 8}, .nb = {8, 16}, .bf = {8, 1}};
  auto f = ooc::block_file::create(rt, *s, "m", b);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      bytes block(f.block_bytes()), got(f.block_bytes());
      for (unsigned round = 1; round <= 20; ++round)
        for (std::uint64_t by = 0; by < 16; ++by)
          for (std::uint64_t bx = t; bx < 8; bx += 4) {
            std::fill(block.begin(), block.end(), std::byte(round + by + bx));
            f.write_block({bx, by}, block);
            f.read_block({bx, (by + 5) % 16}, got);
            for (std::byte x : got)
              if (x != got[0]) ++wrong;
          }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  f.close();
  const bytes content = file_content(*s, "m");
  for (std::uint64_t by = 0; by < 16; ++by)
    for (std::uint64_t bx = 0; bx < 8; ++bx)
      CHECK(content[by * 8 * 8 * 8 * 16 + bx * 8 * 16] == std::byte(20 + by + bx));
}

namespace {

/// The byte offset in the file of a record: the definition, without the library's arithmetic.
std::uint64_t record_offset(const ooc::blocking& b, const std::vector<std::uint64_t>& record) {
  std::uint64_t offset = 0, step = b.rs;
  for (std::size_t i = 0; i < record.size(); ++i) {
    offset += record[i] * step;
    step *= b.ne[i] * b.nb[i];
  }
  return offset;
}

/// Calls f(file offset, offset in the packed block) for every record of a block.
void each_record(const ooc::blocking& b, const ooc::block_coordinates& at,
                 const std::function<void(std::uint64_t, std::uint64_t)>& f) {
  std::vector<std::uint64_t> record(b.dimensions());
  std::uint64_t count = 1;
  for (std::uint64_t n : b.ne) count *= n;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t rest = i;
    for (std::size_t d = 0; d < record.size(); ++d) {
      record[d] = at[d] * b.ne[d] + rest % b.ne[d];
      rest /= b.ne[d];
    }
    f(record_offset(b, record), i * b.rs);
  }
}

}  // namespace

TEST_CASE("random block operations agree with an array in memory") {
  const std::uint64_t first = ooc::testing::random_seed("block_file");
  for (std::size_t dimensions = 1; dimensions <= 4; ++dimensions)
    for (unsigned variant = 0; variant < 4; ++variant) {
      const std::uint64_t replay = first + dimensions * 100 + variant;
      INFO("OOC_TEST_SEED=" << first << ", dimensions " << dimensions << ", variant " << variant);
      std::mt19937_64 random(replay);
      const auto pick = [&](std::uint64_t low, std::uint64_t high) {
        return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
      };
      ooc::blocking b;
      b.rs = pick(1, 40);
      for (std::size_t d = 0; d < dimensions; ++d) {
        b.ne.push_back(pick(1, 6));
        b.nb.push_back(pick(1, dimensions == 1 ? 2000 : dimensions == 2 ? 40 : 7));
        b.bf.push_back(pick(1, 4));
      }
      scratch_store s(static_cast<unsigned>(pick(1, 4)));
      ooc::block_file_options options;
      options.striping = {0, 0, 512 * pick(1, 40)};
      options.max_superblocks = pick(0, 3);
      const std::vector<std::uint64_t> largest = b.bf;  // a later open takes no larger superblock
      const std::uint64_t superblock = (b.superblock_bytes() + 4095) / 4096 * 4096;
      ooc::runtime rt(plain(pick(5, 20) * superblock + 16_KiB + s->nodes() * 64_KiB));
      std::vector<ooc::block_file> file;
      file.push_back(ooc::block_file::create(rt, *s, "m", b, options));
      bytes model(b.file_bytes()), block(b.block_bytes());
      for (int step = 0; step < 400; ++step) {
        ooc::block_file& f = file.front();
        std::vector<std::uint64_t> c;
        for (std::size_t d = 0; d < dimensions; ++d) c.push_back(pick(0, b.nb[d] - 1));
        const ooc::block_coordinates at{std::span<const std::uint64_t>{c}};
        switch (pick(0, 9)) {
          case 0:
          case 1:
          case 2:
            for (std::byte& x : block) x = std::byte(pick(0, 255));
            f.write_block(at, block);
            each_record(b, at, [&](std::uint64_t in_file, std::uint64_t in_block) {
              std::copy_n(block.begin() + in_block, b.rs, model.begin() + in_file);
            });
            break;
          case 3: {
            const ooc::block_guard g = f.pin(at, ooc::access_mode::write);
            std::vector<std::uint64_t> record = c;
            std::uint64_t offset = 0;
            for (std::size_t d = 0; d < dimensions; ++d) {
              const std::uint64_t r = pick(0, b.ne[d] - 1);
              record[d] = c[d] * b.ne[d] + r;
              offset += r * g.stride(d);
            }
            const std::byte x{static_cast<unsigned char>(pick(0, 255))};
            g.data()[offset] = x;
            model[record_offset(b, record)] = x;
            break;
          }
          case 4: f.prefetch(at); break;
          case 5:
            if (pick(0, 9) == 0) {
              f.writeback();
              f.invalidate();
            }
            break;
          case 6:
            if (pick(0, 19) == 0) {
              f.close();
              options.max_superblocks = pick(0, 3);
              for (std::size_t d = 0; d < dimensions; ++d) b.bf[d] = pick(1, largest[d]);
              file.clear();
              file.push_back(ooc::block_file::open(rt, *s, "m", b, options));
            }
            break;
          default: {
            f.read_block(at, block);
            bool same = true;
            each_record(b, at, [&](std::uint64_t in_file, std::uint64_t in_block) {
              same = same &&
                     std::equal(block.begin() + in_block, block.begin() + in_block + b.rs, model.begin() + in_file);
            });
            REQUIRE(same);
          }
        }
      }
      file.clear();
      REQUIRE(file_content(*s, "m") == model);
    }
}
