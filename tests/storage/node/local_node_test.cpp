// A local node against a plain array in memory.
#include "storage/node/local_node.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <thread>

#include "storage/object/node_folder.hpp"
#include "storage/object/sides.hpp"
#include "support/modelled_file.hpp"
#include "support/node_fixture.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;

TEST_CASE("random writes, reads, resizes and reopenings equal a plain array") {
  const std::uint64_t seed = random_seed("random_life");
  constexpr std::uint64_t size = 2'000'003;
  int n = 0;
  for (const std::uint64_t sf : {512, 8000, 65536})
    for (const std::uint32_t nn : {1, 3})
      for (const std::size_t element : {0, 7})
        for (const bool direct : {true, false}) {
          const bool sparse = n % 3 == 0;
          const bool ring = n % 4 != 1;
          CAPTURE(sf, nn, element, direct, sparse, ring);
          const local_node_options options{.workers = 3, .staging = 64 << 10, .direct_io = direct, .io_uring = ring};
          random_life(
              make_shape(77, {0, nn, sf}, size, sparse, pattern(element)),
              [&](const fs::path& folder) { return open_local_node(folder, options); }, rounds(60), seed + n++);
        }
}

TEST_CASE("a file without regions on the node and an empty request succeed") {
  node_with_file f(10000, {0, 2, 4096});
  bytes memory(10000);
  CHECK_FALSE(f.read(request{}, memory.data()));
  CHECK_FALSE(f.write(request::contiguous(4096, 4096), memory.data()));
  CHECK_FALSE(f.read(request::contiguous(5000, 10), memory.data()));
}

TEST_CASE("a request past the end of the file is refused") {
  node_with_file f(10000);
  bytes memory(20000);
  CHECK(f.read(request::contiguous(9999, 2), memory.data()).code == errc::invalid_request);
  CHECK(f.write(request::contiguous(9999, 2), memory.data()).code == errc::invalid_request);
  CHECK_FALSE(f.read(request::contiguous(9999, 1), memory.data()));
}

TEST_CASE("a write whose regions overlap in the file is refused") {
  node_with_file f(10000);
  request r;
  r.add(0, 0, 100);
  r.add(50, 200, 10);
  bytes memory(300);
  CHECK(f.write(r, memory.data()).code == errc::invalid_request);
  CHECK_FALSE(f.read(r, memory.data()));
}

TEST_CASE("a missing stripe object is named") {
  temporary_folder folder;
  auto node = open_local_node(folder.path());
  const shape_ptr f = make_shape(0xabc, {0, 1, 4096}, 10000);
  bytes memory(100);
  for (const failure& e : {read(*node, f, 0, request::contiguous(0, 100), memory.data()),
                           write(*node, f, 0, request::contiguous(0, 100), memory.data()), sync(*node, f),
                           resize(*node, f, 0, 5), verify(*node, f).first, ooc::testing::remove(*node, 0xabc)}) {
    CHECK(e.code == std::errc::no_such_file_or_directory);
    CHECK_THAT(e.what, Catch::Contains(folder.path().string()) && Catch::Contains("shares/bc/0000000000000abc"));
  }
}

TEST_CASE("shares are created once, listed and removed") {
  temporary_folder folder;
  auto node = open_local_node(folder.path());
  for (file_id id : {5, 261, 7}) REQUIRE_FALSE(create(*node, make_shape(id, {0, 1, 4096}, 10)));
  bytes memory(10);
  REQUIRE_FALSE(write(*node, make_shape(5, {0, 1, 4096}, 10), 0, request::contiguous(0, 10), memory.data()));
  CHECK(create(*node, make_shape(5, {0, 1, 4096}, 10)).code == std::errc::file_exists);
  CHECK(create(*node, make_shape(7, {0, 1, 4096}, 5000)).code == std::errc::file_exists);
  fs::create_symlink("loop", folder.path() / "shares" / "loop");
  fs::create_symlink("nowhere", folder.path() / "shares" / "dangling");
  const auto [none, all] = list(*node);
  CHECK_FALSE(none);
  CHECK(all == std::vector<file_id>{5, 7, 261});
  CHECK_FALSE(ooc::testing::remove(*node, 5));
  CHECK(list(*node).second == std::vector<file_id>{7, 261});
  CHECK_FALSE(create(*node, make_shape(5, {0, 1, 4096}, 10)));
}

TEST_CASE("a creation that is asked for again, as its answer was lost, is made once, whatever a crash left of it") {
  temporary_folder folder;
  auto node = open_local_node(folder.path());
  const bool commits = GENERATE(false, true);
  auto shape = std::make_shared<file_shape>(*make_shape(5, {0, 1, 4096}, 10));
  shape->commits = commits;
  SECTION("nothing") { REQUIRE_FALSE(create(*node, shape)); }
  SECTION("half of it") {
    fs::create_directories(folder.path() / "shares" / "05");
    for (const char* end : {".sum", ".data", ".side"})
      if (commits || end != std::string(".side")) std::ofstream(folder.path() / (node_folder::relative(5) + end)) << "";
  }
  REQUIRE_FALSE(create(*node, shape));
  std::vector<std::byte> bytes(10, std::byte{7}), back(10);
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, 10), bytes.data()));
  REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(0, 10), back.data()));
  CHECK(back == bytes);
  CHECK(create(*node, shape).code == std::errc::file_exists);
}

TEST_CASE("a stripe object that held nothing is made when it grows, whatever a crash left of it") {
  temporary_folder folder;
  auto node = open_local_node(folder.path());
  REQUIRE_FALSE(resize(*node, make_shape(5, {0, 1, 4096}, 10), 0, 0));
  CHECK(list(*node).second == std::vector<file_id>{5});
  std::vector<std::byte> bytes(10, std::byte{7}), back(10);
  const auto shape = make_shape(5, {0, 1, 4096}, 10);
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, 10), bytes.data()));
  REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(0, 10), back.data()));
  CHECK(back == bytes);
  // Half of a creation.
  fs::create_directories(folder.path() / "shares" / "06");
  std::ofstream(folder.path() / (node_folder::relative(6) + ".sum"));
  REQUIRE_FALSE(resize(*node, make_shape(6, {0, 1, 4096}, 10), 0, 0));
  REQUIRE_FALSE(read(*node, make_shape(6, {0, 1, 4096}, 10), 0, request::contiguous(0, 10), back.data()));
}

TEST_CASE("a stripe object whose creation was cut short before its header is made when the file grows to it") {
  temporary_folder folder;
  auto node = open_local_node(folder.path());
  const auto shape = make_shape(5, {0, 1, 4096}, 10);
  const std::uint64_t sum_bytes = GENERATE(0, 4104), data_bytes = GENERATE(0, 4096);
  fs::create_directories(folder.path() / "shares" / "05");
  const fs::path sums = folder.path() / (node_folder::relative(5) + ".sum"),
                 data = folder.path() / (node_folder::relative(5) + ".data");
  for (const auto& [path, size] : {std::pair(sums, sum_bytes), std::pair(data, data_bytes)}) {
    std::ofstream{path};
    fs::resize_file(path, size);
  }
  std::vector<std::byte> bytes(10, std::byte{7}), back(10);
  SECTION("in a growth, which knows that the file had nothing there") {
    REQUIRE_FALSE(resize(*node, shape, 0, 0));
    REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, 10), bytes.data()));
    REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(0, 10), back.data()));
    CHECK(back == bytes);
  }
  SECTION("but where a cut is ended that somebody has begun, which may be of any length, the files stay") {
    auto cut = std::make_shared<file_shape>(*shape);
    cut->cut = true;
    cut->cuts = 2;
    CHECK(resize(*node, cut, 0, 0).code == errc::corrupt);
    CHECK(fs::file_size(data) == data_bytes);
  }
}

TEST_CASE("who does not know the generation of a stripe object cuts nothing off, and takes no cut back") {
  node_with_file f(12'000, {0, 1, 4096});
  const auto as = [&](std::uint64_t generation, std::uint64_t size, std::uint64_t cuts) {
    auto s = std::make_shared<file_shape>(*f.shape);
    s->generation = generation;
    s->size = size;
    s->cuts = cuts;
    s->cut = cuts != 0;
    return s;
  };
  REQUIRE_FALSE(testing::advance(*f.node, as(1, 12'000, 0)));
  REQUIRE_FALSE(testing::advance(*f.node, as(2, 12'000, 0)));
  const bytes written(12'000, std::byte{7});
  REQUIRE_FALSE(f.write(request::contiguous(0, written.size()), written.data()));
  const auto is_whole = [&] {
    bytes found(written.size());
    return !f.read(request::contiguous(0, found.size()), found.data()) && found == written;
  };
  const auto refused = [&](const shape_ptr& late, std::uint64_t old_size) {
    const failure e = resize(*f.node, late, 0, old_size);
    CHECK(e.code == errc::conflict);
    CHECK(e.what.find("'plate/a'") != e.what.npos);
    CHECK(e.what.find("opened for writing since") != e.what.npos);
  };
  refused(as(1, 100, 0), 12'000);
  refused(as(1, 11'999, 0), 12'000);  // a part of the last chunk
  refused(as(1, 100, 2), 12'000);
  CHECK(is_whole());
  // A write to bytes that the file has had for long, or past its end, loses nobody anything.
  CHECK_FALSE(resize(*f.node, as(1, 12'000, 0), 0, 100));
  CHECK_FALSE(resize(*f.node, as(1, 20'000, 0), 0, 12'000));
  CHECK(is_whole());
  refused(as(1, 12'000, 0), 20'000);
  refused(as(1, 30'000, 2), 0);  // longer, with another number of cuts
  CHECK_FALSE(resize(*f.node, as(2, 4'000, 2), 0, 20'000));
  refused(as(1, 12'000, 1), 0);
  CHECK_FALSE(resize(*f.node, as(1, 4'096, 2), 0, 0));  // as it is
  CHECK(open_sums(f.folder.path(), 1).has_header());
  checksum_header h;
  REQUIRE(open_sums(f.folder.path(), 1).read_header(h) == 0);
  CHECK(h.cuts == 2);
  CHECK(h.generation == 2);
  CHECK(h.chunks == 1);
}

TEST_CASE("creation reserves the space unless the file is sparse") {
  temporary_folder folder;
  auto node = open_local_node(folder.path());
  REQUIRE_FALSE(create(*node, make_shape(1, {0, 1, 65536}, 3 << 20)));
  REQUIRE_FALSE(create(*node, make_shape(2, {0, 1, 65536}, 3 << 20, true)));
  struct stat st {};
  REQUIRE(::stat(node_folder(folder.path()).data(1).c_str(), &st) == 0);
  CHECK(st.st_blocks * 512 >= 3 << 20);
  REQUIRE(::stat(node_folder(folder.path()).data(2).c_str(), &st) == 0);
  CHECK(st.st_blocks * 512 < 1 << 20);
}

TEST_CASE("a folder that cannot be used is refused at once") {
  temporary_folder folder;
  CHECK_THROWS_AS(open_local_node(folder.path() / "missing"), io_error);
  std::ofstream(folder.path() / "file") << "x";
  CHECK_THROWS_AS(open_local_node(folder.path() / "file"), io_error);
  CHECK_THROWS_AS(open_local_node(folder.path(), {.staging = 1000}), usage_error);
}

TEST_CASE("counters are exact") {
  node_with_file f(1 << 20, {0, 1, 65536}, {.workers = 2, .staging = 64 << 10});
  aligned_bytes memory(1 << 20);
  std::memset(memory.data(), 5, memory.size());
  REQUIRE_FALSE(f.write(request::contiguous(0, 1 << 20), memory.data()));
  io_stats s = f.node->stats();
  CHECK(s.write_requests == 1);
  CHECK(s.write_regions == 1);
  CHECK(s.bytes_written == 1 << 20);
  CHECK(s.device_writes == 1);
  CHECK(s.device_bytes_written == 1 << 20);
  CHECK(s.device_reads == 0);

  // Part of a chunk: read, changed, written.
  REQUIRE_FALSE(f.write(request::contiguous(100, 8), memory.data()));
  io_stats d = f.node->stats() - s;
  CHECK(d.bytes_written == 8);
  CHECK(d.device_bytes_read == 4096);
  CHECK(d.device_bytes_written == 4096);

  // 8 bytes of every second chunk: one extent, the gaps read in vain.
  s = f.node->stats();
  REQUIRE_FALSE(f.read(request::strided({0, 0, 8, 8, 8192, 0}), memory.data()));
  d = f.node->stats() - s;
  CHECK(d.read_requests == 1);
  CHECK(d.read_regions == 8);
  CHECK(d.bytes_read == 64);
  CHECK(d.device_reads == 1);
  CHECK(d.device_bytes_read == 15 * 4096);

  // Far apart: one transfer each.
  s = f.node->stats();
  REQUIRE_FALSE(f.read(request::strided({0, 0, 8, 8, 65536, 0}), memory.data()));
  d = f.node->stats() - s;
  CHECK(d.device_reads == 8);
  CHECK(d.device_bytes_read == 8 * 4096);

  REQUIRE_FALSE(sync(*f.node, f.shape));
  CHECK(f.node->stats().syncs == 1);
  CHECK(f.node->staging_bytes() == 2 * (64 << 10));
}

TEST_CASE("many threads write and read their own parts of shared chunks") {
  constexpr std::uint64_t size = 1 << 20;
  node_with_file f(size, {0, 1, 8000}, {.workers = 6, .staging = 64 << 10});
  constexpr unsigned threads = 6;
  std::atomic<int> wrong{0};
  std::vector<std::thread> running;
  // Thread t owns every byte b with b / 1000 % threads == t: all share all chunks.
  for (unsigned t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      const std::uint64_t groups = size / (1000 * threads);
      const request mine = request::strided({1000 * t, 0, 1000, groups, 1000 * threads, 0});
      bytes out(mine.bytes());
      bytes in(mine.bytes());
      for (int round = 1; round <= 8; ++round) {
        std::fill(out.begin(), out.end(), static_cast<std::byte>(round * 16 + t));
        if (f.write(mine, out.data())) ++wrong;
        if (f.read(mine, in.data())) ++wrong;
        if (in != out) ++wrong;
      }
    });
  for (std::thread& t : running) t.join();
  CHECK(wrong == 0);
  const auto [e, report] = verify(*f.node, f.shape);
  CHECK_FALSE(e);
  CHECK(report.corrupt + report.torn == 0);
}

TEST_CASE("readers see whole chunks, old or new, while a writer overwrites them") {
  constexpr std::uint64_t size = 256 << 10;
  node_with_file f(size, {0, 1, 65536}, {.workers = 4, .staging = 64 << 10});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    aligned_bytes m(size);
    for (int v = 1; !stop; v = v % 100 + 1) {
      std::memset(m.data(), v, size);
      if (f.write(request::contiguous(0, size), m.data())) stop = true;
    }
  });
  aligned_bytes m(size);
  for (int i = 0; i < 150; ++i) {
    const failure e = f.read(request::contiguous(0, size), m.data());
    INFO(e.what);
    CHECK_FALSE(e);
    for (std::uint64_t c = 0; c < size; c += 4096)
      REQUIRE(std::all_of(&m[c], &m[c] + 4096, [&](std::byte b) { return b == m[c]; }));
  }
  CHECK_FALSE(stop);
  stop = true;
  writer.join();
}

TEST_CASE("a reader in the calling thread gives whole verified chunks, or says that it takes more") {
  for (const bool direct : {true, false}) {
    CAPTURE(direct);
    node_with_file f(64 << 10, {0, 1, 65536}, {.staging = 64 << 10, .direct_io = direct});
    aligned_bytes written(64 << 10), m(64 << 10);
    std::memset(written.data(), 7, written.size());
    const auto reader = f.node->reader_of(f.shape, 0);
    CHECK_FALSE(reader->read(0, m.data(), 4096));  // never written
    REQUIRE_FALSE(f.write(request::contiguous(0, 32 << 10), written.data()));
    CHECK(reader->read(4096, m.data(), 8192));
    CHECK(std::memcmp(m.data(), written.data(), 8192) == 0);
    CHECK_FALSE(reader->read(100, m.data(), 4096));
    CHECK_FALSE(reader->read(0, m.data(), 100));
    CHECK_FALSE(reader->read(28 << 10, m.data(), 8192));  // half of it never written
    CHECK_FALSE(reader->read(0, m.data(), 128 << 10));
    const io_stats before = f.node->stats();
    CHECK(reader->read(0, m.data(), 4096));
    CHECK(f.node->stats().bytes_read - before.bytes_read == 4096);
    flip_byte(node_folder(f.folder.path()).data(1), 5000);
    CHECK_FALSE(reader->read(4096, m.data(), 4096));
    CHECK(reader->read(0, m.data(), 4096));
  }
}

TEST_CASE("a reader in the calling thread sees chunks old or new while a writer overwrites them") {
  constexpr std::uint64_t size = 64 << 10;
  node_with_file f(size, {0, 1, 65536}, {.workers = 2, .staging = 64 << 10});
  aligned_bytes first(size);
  std::memset(first.data(), 100, size);
  REQUIRE_FALSE(f.write(request::contiguous(0, size), first.data()));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    aligned_bytes m(size);
    for (int v = 1; !stop; v = v % 100 + 1) {
      std::memset(m.data(), v, size);
      if (f.write(request::contiguous(0, size), m.data())) stop = true;
    }
  });
  const auto reader = f.node->reader_of(f.shape, 0);
  aligned_bytes m(4096);
  int got = 0;
  for (int i = 0; i < 2000 || (got == 0 && i < 200000); ++i) {
    if (!reader->read(i % 16 * 4096, m.data(), 4096)) continue;
    ++got;
    REQUIRE(std::all_of(&m[0], &m[0] + 4096, [&](std::byte b) { return b == m[0]; }));
  }
  CHECK(got > 0);
  CHECK_FALSE(stop);
  stop = true;
  writer.join();
}

TEST_CASE("operations submitted before the node is dropped are all completed") {
  std::atomic<int> done{0};
  bytes memory(4096, std::byte{3});
  {
    const node_with_file f(1 << 20, {0, 1, 65536}, {.workers = 2, .staging = 64 << 10});
    const auto r = std::make_shared<const request>(request::contiguous(10, 4000));
    for (int i = 0; i < 200; ++i) f.node->write(f.shape, 0, r, memory.data(), [&](const failure& e) { done += !e; });
  }
  CHECK(done == 200);
}

TEST_CASE("a completion may drop the last reference to the node") {
  node_with_file f(1 << 20, {0, 1, 65536}, {.workers = 4, .staging = 64 << 10});
  bytes memory(4096);
  std::atomic<int> done{0};
  std::promise<void> dropped;
  auto* raw = f.node.get();
  const auto r = std::make_shared<const request>(request::contiguous(0, 4096));
  for (int i = 0; i < 20; ++i)  // several threads are there
    raw->write(f.shape, 0, r, memory.data(), [&](const failure&) { ++done; });
  raw->sync(f.shape, 0, [&, held = std::move(f.node)](const failure&) mutable {
    held.reset();
    dropped.set_value();
  });
  dropped.get_future().get();
  CHECK(soon([&] { return done == 20; }));
}

TEST_CASE("more stripe objects than descriptors can be used in turn") {
  temporary_folder folder;
  auto node = open_local_node(folder.path(), {.workers = 2, .staging = 64 << 10});
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  std::vector<shape_ptr> files;
  for (file_id id = 1; id <= 60; ++id) {
    files.push_back(make_shape(id, {0, 1, 65536}, 4096));
    REQUIRE_FALSE(create(*node, files.back()));
  }
  const rlimit few{60, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  int failed = 0;
  bytes b(10);
  for (int round = 0; round < 2; ++round)
    for (const shape_ptr& f : files)
      failed += static_cast<bool>(write(*node, f, 0, request::contiguous(0, 10), b.data()));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &old) == 0);
  CHECK(failed == 0);
}

TEST_CASE("who does not know yet that chunks were cut off finds the fill in them, not a loss") {
  constexpr std::uint64_t size = 40'000;
  node_with_file f(size);
  const std::vector<std::byte> data(size, std::byte{7}), nothing(size);
  std::vector<std::byte> found(size);
  for (const std::uint64_t left : {std::uint64_t{0}, std::uint64_t{8192}}) {
    INFO("cut off at " << left);
    REQUIRE_FALSE(f.write(request::contiguous(0, size), data.data()));
    const auto shorter = make_shape(1, f.shape->striping, left);
    REQUIRE_FALSE(resize(*f.node, shorter, 0, size));
    const failure read = f.read(request::contiguous(left, size - left), found.data());
    INFO(read.what);
    REQUIRE_FALSE(read);
    CHECK(std::equal(found.begin(), found.begin() + (size - left), nothing.begin()));
    const failure written = f.write(request::contiguous(20'000, 10'000), data.data());
    INFO(written.what);
    REQUIRE_FALSE(written);
    // When it is longer again, nothing of that is there.
    REQUIRE_FALSE(resize(*f.node, f.shape, 0, left));
    REQUIRE_FALSE(f.read(request::contiguous(left, size - left), found.data()));
    CHECK(std::equal(found.begin(), found.begin() + (size - left), nothing.begin()));
    CHECK(verify(*f.node, f.shape).second.problems.empty());
  }
}

TEST_CASE("a chunk that its reader must check keeps its stored checksum, though others of the part were read again") {
  constexpr std::uint64_t size = 40'000, left = 8192;
  node_with_file f(size, {0, 1, 4096}, {.direct_io = false});
  const bytes data(size, std::byte{7});
  REQUIRE_FALSE(f.write(request::contiguous(0, size), data.data()));
  // The reader does not know of the cut: its last chunk looks lost at first, and is looked at under the locks.
  REQUIRE_FALSE(resize(*f.node, make_shape(1, f.shape->striping, left), 0, size));
  {
    std::fstream disk(f.folder.path() / (node_folder::relative(1) + ".data"), std::ios::in | std::ios::out);
    disk.seekp(100);
    REQUIRE(disk.put('x').flush());
  }
  io_part part{.regions = {{0, 0, left + chunk_size}}, .bytes = left + chunk_size, .whole = 3};
  for (const checking who : {checking::by_caller, checking::here}) {
    bytes memory(part.bytes);
    std::vector<std::uint32_t> sums(part.sums());
    const failure read = wait_for([&](completion done) {
      f.node->read_part(f.shape, 0, part, memory.data(), sums.data(), who, std::move(done));
    });
    INFO(read.what);
    CHECK((read || !sums_match(part, memory.data(), sums.data())));
  }
}

TEST_CASE("a chunk whose checksum is gone stays lost where a cut leaves any part of it") {
  for (const bool commits : {false, true})
    for (const std::uint64_t left : {2000, 2048, 2100}) {
      CAPTURE(commits, left);
      temporary_folder folder;
      const auto node = open_local_node(folder.path());
      auto f = std::make_shared<file_shape>(*make_shape(1, {0, 1, 65536}, chunk_size));
      f->commits = commits;
      REQUIRE_FALSE(create(*node, f));
      bytes b(chunk_size, std::byte{7});
      REQUIRE_FALSE(write(*node, f, 0, request::contiguous(0, chunk_size), b.data()));
      REQUIRE_FALSE(sync(*node, f));
      const std::uint64_t place = commits ? place_of(0, 1) : 0;
      const std::uint32_t zeros_on_disk = open_sums(folder.path(), 1).seeds().of_chunk(place);
      set_entry(folder.path(), 1, place, {zeros_on_disk, zeros_on_disk});
      const auto shorter = std::make_shared<file_shape>(*f);
      shorter->size = left;
      const failure cut = resize(*node, shorter, 0, chunk_size);
      CHECK(cut.code == errc::corrupt);
      CHECK_THAT(cut.what, Catch::Contains("are lost"));
      CHECK(read(*node, shorter, 0, request::contiguous(0, left), b.data()).code == errc::corrupt);
    }
}
