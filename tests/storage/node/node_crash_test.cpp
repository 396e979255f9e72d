// Tests of what a crash, a loss of power or a bad disk leaves behind, and what is said about it.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "storage/object/undo_journal.hpp"
#include "support/node_fixture.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr file_id crashed_file = 9;

// A node with a file of 16 chunks, all written with 'o'.
struct written_file {
  explicit written_file(striping s = {0, 1, 65536}, bytes fill = {})
      : shape(make_shape(crashed_file, s, 16 * chunk_size, false, std::move(fill))) {
    open();
    REQUIRE_FALSE(create(*node, shape));
    put(0, 16 * chunk_size, 'o');
  }

  void open(local_node_options options = {.workers = 2, .staging = 64 << 10}) {
    node.reset();
    node = open_local_node(folder.path(), options);
  }

  failure put(std::uint64_t at, std::uint64_t n, char c) {
    bytes b(n, static_cast<std::byte>(c));
    return write(*node, shape, 0, request::contiguous(at, n), b.data());
  }

  failure get(std::uint64_t at, std::uint64_t n, bytes& b) {
    b.assign(n, std::byte{0});
    return read(*node, shape, 0, request::contiguous(at, n), b.data());
  }

  // The bytes on disk, past all checks.
  void put_raw(std::uint64_t at, std::uint64_t n, char c) {
    std::fstream s(node_folder(folder.path()).data(crashed_file), std::ios::in | std::ios::out | std::ios::binary);
    s.seekp(static_cast<std::streamoff>(at));
    const std::string text(n, c);
    s.write(text.data(), static_cast<std::streamsize>(n));
  }

  static std::uint32_t sum_of(char c) {
    const bytes b(chunk_size, static_cast<std::byte>(c));
    return chunk_sum(b.data());
  }

  fs::path data_path() const { return node_folder(folder.path()).data(crashed_file); }

  temporary_folder folder;
  shape_ptr shape;
  std::shared_ptr<io_service> node;
};

bool all(const bytes& b, char c) {
  return std::all_of(b.begin(), b.end(), [&](std::byte x) { return x == static_cast<std::byte>(c); });
}

}  // namespace

TEST_CASE("a byte flipped on disk is found, named in file offsets, and its neighbours are readable") {
  written_file f({0, 1, 1024});
  flip_byte(f.data_path(), 5 * chunk_size + 17);
  f.open();
  bytes b;
  CHECK_FALSE(f.get(0, 5 * chunk_size, b));
  CHECK_FALSE(f.get(6 * chunk_size, 10 * chunk_size, b));
  const failure e = f.get(5 * chunk_size + 4000, 10, b);
  CHECK(e.code == errc::corrupt);
  CHECK_THAT(e.what, Catch::Contains("plate/a") && Catch::Contains("[20480, 24576)") &&
                         Catch::Contains(f.folder.path().string()));
  const auto [failed, report] = verify(*f.node, f.shape);
  CHECK_FALSE(failed);
  CHECK(report.chunks == 16);
  CHECK(report.corrupt == 1);
  CHECK(report.torn == 0);
  REQUIRE(report.problems.size() == 1);
  CHECK_THAT(report.problems[0], Catch::Contains("[20480, 24576)"));
  // A partial write would put a checksum on bytes that nobody wrote.
  CHECK(f.put(5 * chunk_size, 10, 'x').code == errc::corrupt);
  // A whole one mends it.
  CHECK_FALSE(f.put(5 * chunk_size, chunk_size, 'n'));
  CHECK_FALSE(f.get(5 * chunk_size, chunk_size, b));
  CHECK(all(b, 'n'));
}

TEST_CASE("a flipped byte of a file over two nodes is named by its places in the file") {
  temporary_folder folder;
  auto node = open_local_node(folder.path());
  const shape_ptr f = make_shape(crashed_file, {0, 2, 1000}, 20000);
  REQUIRE_FALSE(create(*node, f, 1));
  bytes b(20000, std::byte{7});
  REQUIRE_FALSE(write(*node, f, 1, request::contiguous(0, 20000), b.data()));
  flip_byte(node_folder(folder.path()).data(crashed_file), 4096 + 5);
  node = open_local_node(folder.path());
  const auto [e, report] = verify(*node, f, 1);
  REQUIRE(report.problems.size() == 1);
  // Share bytes [4096, 8192) are file bytes [9096, 10000), [11000, 12000) ...
  CHECK_THAT(report.problems[0], Catch::Contains("[9096, 10000), [11000, 12000)"));
}

TEST_CASE("an overwrite cut short before its data reads as the old bytes") {
  written_file f;
  set_entry(f.folder.path(), crashed_file, 3, {written_file::sum_of('o'), written_file::sum_of('n')});
  bytes b;
  CHECK_FALSE(f.get(3 * chunk_size, chunk_size, b));
  CHECK(all(b, 'o'));
}

TEST_CASE("an overwrite cut short after its data reads as the new bytes") {
  written_file f;
  set_entry(f.folder.path(), crashed_file, 3, {written_file::sum_of('o'), written_file::sum_of('n')});
  f.put_raw(3 * chunk_size, chunk_size, 'n');
  f.open();
  bytes b;
  CHECK_FALSE(f.get(3 * chunk_size, chunk_size, b));
  CHECK(all(b, 'n'));
  // Overwritten in part: the base is what is there.
  CHECK_FALSE(f.put(3 * chunk_size, 100, 'x'));
  CHECK(entry_of(f.folder.path(), crashed_file, 3).settled());
  CHECK_FALSE(f.get(3 * chunk_size + 100, chunk_size - 100, b));
  CHECK(all(b, 'n'));
}

TEST_CASE("an overwrite cut short amid its data is torn, not corrupt, until it is written whole") {
  written_file f;
  set_entry(f.folder.path(), crashed_file, 3, {written_file::sum_of('o'), written_file::sum_of('n')});
  f.put_raw(3 * chunk_size, 512, 'n');
  f.open();
  bytes b;
  const failure e = f.get(3 * chunk_size, 1, b);
  CHECK(e.code == errc::torn);
  CHECK_THAT(e.what, Catch::Contains("torn") && Catch::Contains("[12288, 16384)"));
  const auto [failed, report] = verify(*f.node, f.shape);
  CHECK(report.torn == 1);
  CHECK(report.corrupt == 0);
  CHECK(f.put(3 * chunk_size, 100, 'x').code == errc::torn);
  CHECK_FALSE(f.put(3 * chunk_size, chunk_size, 'x'));
  CHECK_FALSE(f.get(3 * chunk_size, chunk_size, b));
  CHECK(all(b, 'x'));
  CHECK(verify(*f.node, f.shape).second.torn == 0);
}

TEST_CASE("a first write cut short reads as never written") {
  written_file f({0, 1, 65536}, bytes(3, std::byte{'f'}));
  set_entry(f.folder.path(), crashed_file, 3, {0, written_file::sum_of('n')});
  f.put_raw(3 * chunk_size, 512, 'n');
  f.open();
  bytes b;
  CHECK_FALSE(f.get(3 * chunk_size, chunk_size, b));
  CHECK(all(b, 'f'));
  CHECK_FALSE(f.put(3 * chunk_size + 8, 8, 'x'));
  CHECK_FALSE(f.get(3 * chunk_size, chunk_size, b));
  CHECK(std::count(b.begin(), b.end(), std::byte{'x'}) == 8);
  CHECK(std::count(b.begin(), b.end(), std::byte{'f'}) == chunk_size - 8);
}

TEST_CASE("a damaged header of the checksums is an error that names the stripe object") {
  written_file f;
  flip_byte(node_folder(f.folder.path()).sums(crashed_file), 20);
  f.open();
  bytes b;
  CHECK_THAT(f.get(0, 1, b).what, Catch::Contains("header") && Catch::Contains("shares/09/"));
}

TEST_CASE("a writer killed in mid-write leaves old or new chunks and nothing corrupt") {
  std::mt19937_64 random(random_seed("kill"));
  for (const bool direct : {true, false}) {
    constexpr std::uint64_t size = 8 << 20;
    temporary_folder folder;
    const shape_ptr shape = make_shape(crashed_file, {0, 1, 65536}, size);
    {
      auto node = open_local_node(folder.path(), {.workers = 2});
      REQUIRE_FALSE(create(*node, shape));
    }
    for (int round = 0; round < 6; ++round) {
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        auto node = open_local_node(folder.path(), {.workers = 2, .direct_io = direct});
        aligned_bytes m(size);
        for (int v = 1;; v = v % 200 + 1) {
          std::memset(m.data(), v, size);
          // Whole chunks, and regions that straddle chunks.
          if (write(*node, shape, 0, request::contiguous(0, size / 2), m.data())) ::_exit(1);
          if (write(*node, shape, 0, request::strided({size / 2, 0, 3000, 900, 4500, 0}), m.data())) ::_exit(2);
        }
      }
      random_pause(std::chrono::milliseconds(between(random, 20, 150)));
      ::kill(child, SIGKILL);
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      REQUIRE(WIFSIGNALED(status));

      auto node = open_local_node(folder.path(), {.workers = 2, .direct_io = direct});
      const auto [e, report] = verify(*node, shape);
      REQUIRE_FALSE(e);
      INFO((report.problems.empty() ? "" : report.problems[0]));
      CHECK(report.corrupt == 0);
      aligned_bytes m(size / 2);
      for (std::uint64_t at = 0; at < size / 2; at += chunk_size) {
        const failure f = read(*node, shape, 0, request::contiguous(at, chunk_size), m.data());
        if (f.code == errc::torn) continue;
        INFO(f.what);
        REQUIRE_FALSE(f);
        REQUIRE(std::all_of(m.data(), m.data() + chunk_size, [&](std::byte x) { return x == m[0]; }));
      }
      // Mended by writing whole chunks.
      std::memset(m.data(), 1, m.size());
      REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, size / 2), m.data()));
      REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(size / 2, size / 2), m.data()));
    }
  }
}

TEST_CASE("what a loss of power took is not called corrupt") {
  written_file f;
  REQUIRE_FALSE(sync(*f.node, f.shape));
  CHECK_FALSE(f.put(2 * chunk_size, chunk_size, 'n'));
  f.node.reset();
  // The checksum reached the disk, the data did not.
  f.put_raw(2 * chunk_size, chunk_size, 'o');
  change_boot(f.folder.path(), crashed_file);
  f.open();
  bytes b;
  CHECK_THAT(f.get(2 * chunk_size, 1, b).what, Catch::Contains("not durable at a loss of power"));
  CHECK_THAT(verify(*f.node, f.shape).second.problems.at(0), Catch::Contains("not durable at a loss of power"));
  CHECK_FALSE(f.get(0, 2 * chunk_size, b));
}

TEST_CASE("the mark of unsynced writes is set by the first write and cleared by a sync") {
  written_file f;
  const auto mark = [&] {
    checksum_header h;
    REQUIRE(open_sums(f.folder.path(), crashed_file).read_header(h) == 0);
    return h;
  };
  CHECK(mark().unsynced == this_boot());
  CHECK(mark().syncs == 0);
  REQUIRE_FALSE(sync(*f.node, f.shape));
  CHECK(mark().unsynced == boot_id{});
  CHECK(mark().syncs == 1);
  REQUIRE_FALSE(sync(*f.node, f.shape));
  CHECK(mark().syncs == 1);
  CHECK_FALSE(f.put(0, 1, 'x'));
  CHECK(mark().unsynced == this_boot());
}

TEST_CASE("a loss of power amid a partial overwrite gives back the durable neighbours") {
  written_file f;
  REQUIRE_FALSE(sync(*f.node, f.shape));
  CHECK_FALSE(f.put(2 * chunk_size + 10, 100, 'n'));
  CHECK_FALSE(f.put(2 * chunk_size + 200, 100, 'n'));       // logged once
  CHECK_FALSE(f.put(7 * chunk_size, 2 * chunk_size, 'n'));  // whole chunks: not logged
  const fs::path undo = node_folder(f.folder.path()).undo(crashed_file);
  CHECK(fs::file_size(undo) == sizeof(undo_record));
  f.node.reset();
  f.put_raw(2 * chunk_size, chunk_size, '?');  // whatever the device made of it
  change_boot(f.folder.path(), crashed_file);
  f.open();
  bytes b;
  CHECK_FALSE(f.get(2 * chunk_size, chunk_size, b));
  CHECK(all(b, 'o'));
  CHECK(fs::file_size(undo) == 0);
  CHECK(verify(*f.node, f.shape).second.corrupt == 0);
}

TEST_CASE("the undo log of an earlier sync is not applied") {
  written_file f;
  REQUIRE_FALSE(sync(*f.node, f.shape));
  CHECK_FALSE(f.put(2 * chunk_size + 10, 100, 'n'));
  const fs::path undo = node_folder(f.folder.path()).undo(crashed_file);
  fs::copy_file(undo, f.folder.path() / "kept");
  REQUIRE_FALSE(sync(*f.node, f.shape));
  CHECK(fs::file_size(undo) == 0);
  CHECK_FALSE(f.put(5 * chunk_size, chunk_size, 'n'));
  f.node.reset();
  fs::copy_file(f.folder.path() / "kept", undo, fs::copy_options::overwrite_existing);
  change_boot(f.folder.path(), crashed_file);
  f.open();
  bytes b;
  CHECK_FALSE(f.get(2 * chunk_size + 10, 100, b));
  CHECK(all(b, 'n'));
}

TEST_CASE("a damaged record of the undo log is passed over") {
  written_file f;
  REQUIRE_FALSE(sync(*f.node, f.shape));
  CHECK_FALSE(f.put(2 * chunk_size + 10, 100, 'n'));
  CHECK_FALSE(f.put(4 * chunk_size + 10, 100, 'n'));
  flip_byte(node_folder(f.folder.path()).undo(crashed_file), 50);
  f.node.reset();
  change_boot(f.folder.path(), crashed_file);
  f.open();
  bytes b;
  CHECK_FALSE(f.get(2 * chunk_size + 10, 100, b));
  CHECK(all(b, 'n'));
  CHECK_FALSE(f.get(4 * chunk_size, chunk_size, b));
  CHECK(all(b, 'o'));
}

TEST_CASE("shrinking within a chunk and growing again gives the fill pattern, not old bytes") {
  written_file f({0, 1, 65536}, bytes(5, std::byte{'f'}));
  const shape_ptr small = make_shape(crashed_file, f.shape->striping, 3 * chunk_size + 100, false, f.shape->fill);
  REQUIRE_FALSE(resize(*f.node, small, 0, f.shape->size));
  CHECK(fs::file_size(f.data_path()) == 4 * chunk_size);
  REQUIRE_FALSE(resize(*f.node, f.shape, 0, small->size));
  bytes b;
  CHECK_FALSE(f.get(0, 3 * chunk_size + 100, b));
  CHECK(all(b, 'o'));
  CHECK_FALSE(f.get(3 * chunk_size + 100, 13 * chunk_size - 100, b));
  CHECK(all(b, 'f'));
}

namespace {

shape_ptr of_generation(std::uint64_t generation, file_id id, std::uint64_t size) {
  auto f = std::make_shared<file_shape>(*make_shape(id, {0, 1, 4096}, size, true));
  f->generation = generation;
  return f;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a late stripe object that went with the power reads as never written and is used on") {
  for (const char* lost : {"both", "data", "header"}) {
    CAPTURE(lost);
    temporary_folder folder;
    const shape_ptr f = of_generation(1, 7, 10'000);
    const bytes before(10'000, std::byte{'b'});
    auto node = open_local_node(folder.path(), {});
    REQUIRE_FALSE(create(*node, f));
    REQUIRE_FALSE(write(*node, f, 0, request::contiguous(0, before.size()), before.data()));
    node.reset();
    const node_folder names(folder.path());
    if (lost == std::string("header"))
      std::ofstream(names.sums(7)) << std::string(4096 + 24, '\0');
    else
      fs::remove(names.data(7));
    if (lost == std::string("both")) fs::remove(names.sums(7));

    bytes back(10'000, std::byte{1});
    node = open_local_node(folder.path(), {});
    // In the same boot it is missing, whoever took it.
    CHECK(read(*node, f, 0, request::contiguous(0, back.size()), back.data()));
    node.reset();
    change_noted_boot(folder.path());
    node = open_local_node(folder.path(), {});
    // One of a later generation had been synced.
    CHECK(read(*node, of_generation(2, 7, 10'000), 0, request::contiguous(0, back.size()), back.data()));
    // Nor does who reads it know that it has not been removed, unless he says that he has asked.
    if (lost != std::string("header")) {
      const failure missing = read(*node, f, 0, request::contiguous(0, back.size()), back.data());
      CHECK(missing.code == std::errc::no_such_file_or_directory);
      CHECK_FALSE(fs::exists(names.data(7)));
    }
    auto known = std::make_shared<file_shape>(*f);
    known->still_there = true;
    const failure e = read(*node, known, 0, request::contiguous(0, back.size()), back.data());
    CHECK(e.what == "");
    CHECK(back == bytes(10'000));
    REQUIRE_FALSE(write(*node, f, 0, request::contiguous(5, 4), before.data()));
    CHECK_FALSE(sync(*node, f));
    CHECK(verify(*node, f).second.corrupt == 0);
    // Now it counts.
    CHECK_FALSE(read(*node, of_generation(2, 7, 10'000), 0, request::contiguous(0, back.size()), back.data()));
    CHECK(back[5] == std::byte{'b'});
  }
}

TEST_CASE("a damaged header of a late stripe object of another boot is an error, and its bytes stay") {
  temporary_folder folder;
  const shape_ptr f = of_generation(1, 7, 10'000);
  const bytes before(10'000, std::byte{'b'});
  auto node = open_local_node(folder.path(), {});
  REQUIRE_FALSE(create(*node, f));
  REQUIRE_FALSE(write(*node, f, 0, request::contiguous(0, before.size()), before.data()));
  node.reset();
  change_noted_boot(folder.path());
  const node_folder names(folder.path());
  flip_byte(names.sums(7), 60);
  const std::string stored = text_of(names.data(7));
  node = open_local_node(folder.path(), {});
  bytes back(10'000);
  const failure e = read(*node, f, 0, request::contiguous(0, back.size()), back.data());
  CHECK_THAT(e.what, Catch::Contains("header of its checksums is damaged"));
  CHECK(text_of(names.data(7)) == stored);
}

TEST_CASE("a size that went with the power comes back with zeros, and what was synced stays") {
  temporary_folder folder;
  const shape_ptr f = of_generation(1, 7, 8192), longer = of_generation(1, 7, 40'960);
  const bytes first(8192, std::byte{'a'}), second(8192, std::byte{'b'});
  auto node = open_local_node(folder.path(), {});
  REQUIRE_FALSE(create(*node, f));
  REQUIRE_FALSE(write(*node, f, 0, request::contiguous(0, 8192), first.data()));
  REQUIRE_FALSE(sync(*node, f));
  REQUIRE_FALSE(resize(*node, longer, 0, 8192));
  REQUIRE_FALSE(write(*node, longer, 0, request::contiguous(16'384, 8192), second.data()));
  node.reset();
  const node_folder names(folder.path());
  SECTION("of the files") {
    // The header was stored, the files were not.
    fs::resize_file(names.data(7), 8192);
    fs::resize_file(names.sums(7), checksum_file::bytes_for(2));
  }
  SECTION("of the header") {
    const checksum_file sums = open_sums(folder.path(), 7);
    checksum_header h;
    REQUIRE(sums.read_header(h) == 0);
    CHECK(h.required == checksum_header::size_unsynced);
    CHECK(h.synced_chunks == 2);
    h.chunks = 2;
    REQUIRE(sums.write_header(h) == 0);
  }
  change_boot(folder.path(), 7);
  node = open_local_node(folder.path(), {});
  bytes back(40'960, std::byte{1});
  const failure e = read(*node, longer, 0, request::contiguous(0, back.size()), back.data());
  CHECK(e.what == "");
  bytes expected(40'960);
  std::copy(first.begin(), first.end(), expected.begin());
  CHECK(back == expected);
  REQUIRE_FALSE(write(*node, longer, 0, request::contiguous(40'000, 900), second.data()));
  CHECK_FALSE(sync(*node, longer));
  CHECK(verify(*node, longer).second.problems.empty());
}

TEST_CASE("a cut that was not synced leaves what it kept") {
  temporary_folder folder;
  const shape_ptr f = of_generation(1, 7, 40'960),
                  shorter = of_generation(2, 7, 8192);  // the sync is the first opening
  const bytes first(40'960, std::byte{'a'});
  auto node = open_local_node(folder.path(), {});
  REQUIRE_FALSE(create(*node, f));
  REQUIRE_FALSE(write(*node, f, 0, request::contiguous(0, first.size()), first.data()));
  REQUIRE_FALSE(sync(*node, f));
  REQUIRE_FALSE(resize(*node, shorter, 0, 40'960));
  node.reset();
  change_boot(folder.path(), 7);
  node = open_local_node(folder.path(), {});
  // The metadata have the old size again.
  bytes back(40'960, std::byte{1});
  const failure e = read(*node, f, 0, request::contiguous(0, back.size()), back.data());
  CHECK(e.what == "");
  bytes expected(40'960);
  std::copy_n(first.begin(), 8192, expected.begin());
  CHECK(back == expected);
}
