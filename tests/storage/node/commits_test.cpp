// Tests of what a stripe object keeps of the last commit, and what becomes of what was written since.
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <future>
#include <set>

#include "storage/object/sides.hpp"
#include "support/modelled_file.hpp"
#include "support/node_fixture.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

shape_ptr with_commits(const shape_ptr& plain) {
  auto f = std::make_shared<file_shape>(*plain);
  f->commits = true;
  return f;
}

shape_ptr as_of(const shape_ptr& f, std::uint64_t commit, bool at_commit = false) {
  auto next = std::make_shared<file_shape>(*f);
  next->commit = commit;
  next->at_commit = at_commit;
  return next;
}

constexpr file_id committed_file = 9;

/// Bytes that the data of the committed file take on the disk.
std::uint64_t space_taken(const fs::path& folder) {
  struct stat st {};
  REQUIRE(::stat(node_folder(folder).data(committed_file).c_str(), &st) == 0);
  return static_cast<std::uint64_t>(st.st_blocks) * 512;
}

void write_zeros(const fs::path& path, std::uint64_t from, std::uint64_t n) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(from));
  file.write(std::string(n, 0).data(), static_cast<std::streamsize>(n));
}

// A node with a file of 16 chunks: commit 1 has 'o' everywhere, and what was written since is 'n' in chunks 4 to 7.
struct committed_object {
  committed_object() : shape(with_commits(make_shape(committed_file, {0, 1, 65536}, 16 * chunk_size))) {
    open();
    REQUIRE_FALSE(create(*node, shape));
    put(0, 16 * chunk_size, 'o');
    REQUIRE_FALSE(prepare(*node, shape));
    shape = as_of(shape, 1);
    put(4 * chunk_size, 4 * chunk_size, 'n');
  }

  void open() {
    node.reset();
    node = open_local_node(folder.path(), {.workers = 2, .staging = 64 << 10});
  }
  failure try_to_put(std::uint64_t at, std::uint64_t n, char c) {
    const bytes b(n, static_cast<std::byte>(c));
    return write(*node, shape, 0, request::contiguous(at, n), b.data());
  }
  void put(std::uint64_t at, std::uint64_t n, char c) { REQUIRE_FALSE(try_to_put(at, n, c)); }
  failure get(const shape_ptr& f, std::uint64_t chunk, bytes& b) {
    b.assign(chunk_size, std::byte{0});
    return read(*node, f, 0, request::contiguous(chunk * chunk_size, chunk_size), b.data());
  }
  /// The letter that a chunk is full of; '?' where it is not, or cannot be read.
  char letter(const shape_ptr& f, std::uint64_t chunk) {
    bytes b;
    if (get(f, chunk, b)) return '?';
    return b == bytes(chunk_size, b[0]) ? static_cast<char>(b[0]) : '?';
  }
  fs::path side_path() const { return node_folder(folder.path()).sides(committed_file); }

  temporary_folder folder;
  shape_ptr shape;
  std::shared_ptr<io_service> node;
};

}  // namespace

TEST_CASE("random writes, commits, rollbacks, resizes and reopenings equal two plain arrays") {
  const std::uint64_t seed = random_seed("commits_life");
  int n = 0;
  for (const std::uint64_t size : {2'000'003, 9'000'011})
    for (const std::uint64_t sf : {512, 8000, 65536})
      for (const std::uint32_t nn : {1, 3})
        for (const bool direct : {true, false}) {
          const bool sparse = n % 3 == 0;
          const bool ring = n % 4 != 1;
          const std::size_t element = n % 2 == 0 ? 0 : 7;
          CAPTURE(size, sf, nn, element, direct, sparse, ring);
          const local_node_options options{.workers = 3, .staging = 64 << 10, .direct_io = direct, .io_uring = ring};
          random_life(
              with_commits(make_shape(77, {0, nn, sf}, size, sparse, pattern(element))),
              [&](const fs::path& folder) { return open_local_node(folder, options); }, rounds(80), seed + n++);
        }
}

TEST_CASE("a reader of a commit keeps seeing it, until something is written after the next one") {
  committed_object f;
  const shape_ptr first = as_of(f.shape, 1, true);
  CHECK(f.letter(f.shape, 4) == 'n');
  CHECK(f.letter(first, 4) == 'o');
  REQUIRE_FALSE(prepare(*f.node, f.shape));
  f.shape = as_of(f.shape, 2);
  CHECK(f.letter(first, 4) == 'o');
  CHECK(f.letter(as_of(f.shape, 2, true), 4) == 'n');
  f.put(4 * chunk_size, 10, 'x');
  bytes b;
  const failure gone = f.get(first, 4, b);
  CHECK(gone.code == errc::conflict);
  CHECK_THAT(gone.what, Catch::Contains("commit 1 is no longer kept") && Catch::Contains("commit 2"));
  CHECK(f.letter(as_of(f.shape, 2, true), 4) == 'n');
}

TEST_CASE("another file gets the bytes of a commit, damaged ones too, and nothing of what came after it") {
  committed_object f;
  const shape_ptr first = as_of(f.shape, 1, true);
  auto plain = std::make_shared<file_shape>(*make_shape(committed_file + 1, f.shape->striping, f.shape->size, true));
  plain->name = "plate/a@x";
  const shape_ptr into = plain;
  REQUIRE_FALSE(create(*f.node, into));
  flip_byte(node_folder(f.folder.path()).data(committed_file), place_of(3, 1) * chunk_size + 5);
  REQUIRE_FALSE(clone(*f.node, first, 0, into, true));
  for (std::uint64_t c = 0; c < 16; ++c) CHECK(f.letter(into, c) == (c == 3 ? '?' : 'o'));
  CHECK(verify(*f.node, into).second.corrupt == 1);
  f.put(0, 4 * chunk_size, 'x');
  REQUIRE_FALSE(clone(*f.node, first, 0, into, true));  // the answer was lost
  REQUIRE_FALSE(prepare(*f.node, f.shape));
  f.shape = as_of(f.shape, 2);
  f.put(0, 16 * chunk_size, 'y');
  const failure gone = clone(*f.node, first, 0, into, true);
  CHECK(gone.code == errc::conflict);
  CHECK_THAT(gone.what, Catch::Contains("commit 1 is no longer kept"));

  CHECK(clone(*f.node, f.shape, 0, into, true).code == errc::invalid_request);  // not as of a commit
  const shape_ptr second = as_of(f.shape, 2, true);
  plain = std::make_shared<file_shape>(*into);
  plain->size -= 1;
  CHECK(clone(*f.node, second, 0, plain, true).code == errc::invalid_request);
  plain = std::make_shared<file_shape>(*into);
  plain->id = committed_file + 2;
  CHECK_THAT(clone(*f.node, second, 0, plain, true).what, Catch::Contains("'plate/a@x' is missing"));
  plain = std::make_shared<file_shape>(*into);
  for (plain->generation = 1; plain->generation < 3; ++plain->generation)  // somebody has opened it for writing
    REQUIRE_FALSE(ooc::testing::advance(*f.node, std::make_shared<file_shape>(*plain)));
  CHECK_THAT(clone(*f.node, second, 0, plain, true).what, Catch::Contains("'plate/a@x' is in use"));
}

TEST_CASE("a sparse file gives back what the commit before had, and only that") {
  const temporary_folder folder;
  const auto node = open_local_node(folder.path(), {.workers = 2, .staging = 64 << 10});
  constexpr std::uint64_t size = 9 << 20;
  shape_ptr f = with_commits(make_shape(committed_file, {0, 1, 65536}, size, true));
  REQUIRE_FALSE(create(*node, f));
  const auto space = [&] { return space_taken(folder.path()); };
  const auto put = [&](std::uint64_t at, std::uint64_t n, char c) {
    const bytes b(n, static_cast<std::byte>(c));
    REQUIRE_FALSE(write(*node, f, 0, request::contiguous(at, n), b.data()));
  };
  const auto commit = [&](std::uint64_t number) {
    REQUIRE_FALSE(prepare(*node, f));
    f = as_of(f, number);
  };
  put(0, size, 'a');
  commit(1);
  put(0, size, 'b');
  commit(2);
  put(4 << 20, 64 << 10, 'c');  // since then
  CHECK(space() >= 2 * size);
  REQUIRE_FALSE(trim(*node, f));
  CHECK(space() <= size + (128 << 10));
  const auto all_are = [&](const shape_ptr& as, char outside, char inside) {
    bytes b(size);
    REQUIRE_FALSE(read(*node, as, 0, request::contiguous(0, size), b.data()));
    for (std::uint64_t i = 0; i < size; ++i)
      if (b[i] != static_cast<std::byte>(i >= 4 << 20 && i < (4 << 20) + (64 << 10) ? inside : outside)) return false;
    return true;
  };
  CHECK(all_are(f, 'b', 'c'));
  CHECK(all_are(as_of(f, 2, true), 'b', 'b'));
  bytes b(10);
  CHECK(read(*node, as_of(f, 1, true), 0, request::contiguous(0, 10), b.data()).code == errc::conflict);
  CHECK(verify(*node, f).second.problems.empty());
  REQUIRE_FALSE(roll_back(*node, f));
  CHECK(all_are(f, 'b', 'b'));
  CHECK(trim(*node, as_of(f, 0)).code == errc::invalid_request);
  committed_object reserved;
  CHECK(trim(*reserved.node, reserved.shape).code == errc::invalid_request);
}

TEST_CASE(
    "a sparse file gives back what was rolled back, what a commit that was cut short has left, and what was cut off") {
  const temporary_folder folder;
  const auto node = open_local_node(folder.path(), {.workers = 2, .staging = 64 << 10});
  constexpr std::uint64_t size = 9 << 20, half = size / 2, little = 128 << 10;
  shape_ptr f = with_commits(make_shape(committed_file, {0, 1, 65536}, size, true));
  REQUIRE_FALSE(create(*node, f));
  const auto space = [&] { return space_taken(folder.path()); };
  const auto put = [&](char c) {
    const bytes b(f->size, static_cast<std::byte>(c));
    REQUIRE_FALSE(write(*node, f, 0, request::contiguous(0, f->size), b.data()));
  };
  const auto all_are = [&](char c) {
    bytes b(f->size);
    REQUIRE_FALSE(read(*node, f, 0, request::contiguous(0, f->size), b.data()));
    return b == bytes(f->size, static_cast<std::byte>(c));
  };
  const auto commit = [&] {
    REQUIRE_FALSE(prepare(*node, f));
    f = as_of(f, f->commit + 1);
  };
  const auto cut = [&](std::uint64_t bytes) {
    auto shorter = std::make_shared<file_shape>(*f);
    shorter->size = bytes;
    REQUIRE_FALSE(resize(*node, shorter, 0, f->size));
    f = shorter;
  };

  put('a');
  REQUIRE_FALSE(roll_back(*node, f));  // before the first commit
  CHECK(space() <= little);
  CHECK(all_are(0));
  put('a');
  commit();
  REQUIRE_FALSE(trim(*node, f));
  put('b');
  CHECK(space() >= 2 * size);
  REQUIRE_FALSE(roll_back(*node, f));
  CHECK(space() <= size + little);
  CHECK(all_are('a'));

  put('b');
  commit();  // and killed before trim()
  CHECK(space() >= 2 * size);
  REQUIRE_FALSE(roll_back(*node, f));
  CHECK(space() <= size + little);
  CHECK(all_are('b'));

  put('c');
  cut(half);
  CHECK(space() <= size + half + little);
  CHECK(all_are('c'));
  commit();
  REQUIRE_FALSE(trim(*node, f));
  CHECK(space() <= half + little);
  CHECK(all_are('c'));
  CHECK(verify(*node, f).second.problems.empty());
}

TEST_CASE("what comes late to give back what an earlier commit had takes nothing from the last one") {
  const temporary_folder folder;
  const auto node = open_local_node(folder.path(), {.workers = 2, .staging = 64 << 10});
  constexpr std::uint64_t size = 16 * chunk_size;
  shape_ptr f = with_commits(make_shape(committed_file, {0, 1, 65536}, size, true));
  REQUIRE_FALSE(create(*node, f));
  const request all = request::contiguous(0, size);
  const auto put = [&](char c) {
    REQUIRE_FALSE(write(*node, f, 0, all, bytes(size, static_cast<std::byte>(c)).data()));
  };
  for (const char c : {'a', 'b', 'c'}) {
    put(c);
    REQUIRE_FALSE(prepare(*node, f));
    f = as_of(f, f->commit + 1);
  }
  put('d');
  CHECK(trim(*node, as_of(f, 2)).code == errc::conflict);
  bytes b(size);
  REQUIRE_FALSE(read(*node, as_of(f, 3, true), 0, all, b.data()));
  CHECK(b == bytes(size, std::byte{'c'}));
  REQUIRE_FALSE(trim(*node, f));
  REQUIRE_FALSE(roll_back(*node, f));
  REQUIRE_FALSE(read(*node, f, 0, all, b.data()));
  CHECK(b == bytes(size, std::byte{'c'}));
}

TEST_CASE("who does not know of the last commit writes nothing, nor prepares one, nor goes back") {
  committed_object f;
  REQUIRE_FALSE(prepare(*f.node, f.shape));
  f.shape = as_of(f.shape, 2);
  f.put(0, chunk_size, 'x');
  f.shape = as_of(f.shape, 1);
  CHECK(f.try_to_put(0, chunk_size, 'y').code == errc::conflict);
  CHECK(prepare(*f.node, f.shape).code == errc::conflict);
  CHECK(roll_back(*f.node, f.shape).code == errc::conflict);
  CHECK(f.letter(as_of(f.shape, 2), 0) == 'x');
}

TEST_CASE("a prepared commit of which nothing came is not part of the next one") {
  committed_object f;
  REQUIRE_FALSE(prepare(*f.node, f.shape));
  REQUIRE_FALSE(roll_back(*f.node, f.shape));
  CHECK(f.letter(f.shape, 4) == 'o');
  REQUIRE_FALSE(prepare(*f.node, f.shape));
  f.shape = as_of(f.shape, 2);
  CHECK(f.letter(as_of(f.shape, 2, true), 4) == 'o');
  REQUIRE_FALSE(roll_back(*f.node, f.shape));
  CHECK(f.letter(f.shape, 4) == 'o');
}

TEST_CASE("what has changed since any commit is known for each region, whatever was taken back in between") {
  std::mt19937_64 random(random_seed("commit_changes"));
  constexpr std::uint64_t region = checksum_file::region_chunks * chunk_size, regions = 40,
                          size = regions * region - 5000;
  temporary_folder folder;
  auto node = open_local_node(folder.path());
  shape_ptr shape = with_commits(make_shape(committed_file, {0, 1, 65536}, size, true));
  REQUIRE_FALSE(create(*node, shape));
  std::vector<std::uint64_t> changed(regions);  // by which commit
  for (std::uint64_t commit = 1; commit <= 60; ++commit) {
    std::set<std::uint64_t> written;
    for (std::uint64_t n = between(random, 0, 4); n > 0; --n) {
      const std::uint64_t at = between(random, 0, size - 9);
      REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(at, 8), bytes(8, std::byte{7}).data()));
      for (const std::uint64_t end : {at, at + 7}) written.insert(end / region);
    }
    const std::uint64_t fate = between(random, 0, 5);
    if (fate <= 1) {
      if (fate == 0) REQUIRE_FALSE(prepare(*node, shape));
      REQUIRE_FALSE(roll_back(*node, shape));
      written.clear();
    }
    REQUIRE_FALSE(prepare(*node, shape));
    shape = as_of(shape, commit);
    for (const std::uint64_t r : written) changed[r] = commit;
    if (fate == 2) node = open_local_node(folder.path());
    const std::uint64_t since = between(random, 0, commit);
    CAPTURE(commit, since);
    std::vector<byte_interval> expected;
    for (std::uint64_t r = 0; r < regions; ++r) {
      if (changed[r] <= since) continue;
      const std::uint64_t end = std::min(size, (r + 1) * region);
      if (!expected.empty() && expected.back().end == r * region)
        expected.back().end = end;
      else
        expected.push_back({r * region, end});
    }
    const auto [failed, found] = find_changes(*node, as_of(shape, commit, true), since);
    REQUIRE_FALSE(failed);
    CHECK(found == expected);
  }
  CHECK(find_changes(*node, as_of(shape, 20, true), 0).first.code == errc::conflict);
}

TEST_CASE("of a region that has not changed for 65,535 commits is said that it has changed, not that it has not") {
  committed_object f;
  const auto go_on_to = [&](std::uint64_t commit) {
    f.put(0, 1, 'x');
    f.shape = as_of(f.shape, commit - 1);
    REQUIRE_FALSE(prepare(*f.node, f.shape));
    f.shape = as_of(f.shape, commit);
  };
  f.shape = with_commits(make_shape(committed_file + 1, {0, 1, 65536}, 3 * 1024 * chunk_size));
  REQUIRE_FALSE(create(*f.node, f.shape));
  f.put(2 * 1024 * chunk_size, 1, 'o');
  go_on_to(1);
  const auto last_changed = [&](std::uint64_t since) {
    const auto [failed, found] = find_changes(*f.node, f.shape, since);
    REQUIRE_FALSE(failed);
    return !found.empty() && found.back().end > 2 * 1024 * chunk_size;
  };
  go_on_to(65'000);
  CHECK(last_changed(0));
  CHECK_FALSE(last_changed(1));
  go_on_to(66'000);
  CHECK(last_changed(0));
  CHECK(last_changed(66'000 - 65'536));
  CHECK_FALSE(last_changed(66'000 - 65'535));
}

TEST_CASE("a commit of what has not changed since the last one syncs nothing") {
  committed_object f;
  REQUIRE_FALSE(prepare(*f.node, f.shape));
  f.shape = as_of(f.shape, 2);
  const auto as_it_was = fs::last_write_time(node_folder(f.folder.path()).sums(committed_file));
  REQUIRE_FALSE(prepare(*f.node, f.shape));
  CHECK(fs::last_write_time(node_folder(f.folder.path()).sums(committed_file)) == as_it_was);
  f.shape = as_of(f.shape, 3);
  CHECK(f.letter(as_of(f.shape, 3, true), 4) == 'n');
}

TEST_CASE("threads that write to a new region at once lose nothing of each other") {
  temporary_folder folder;
  const auto node = open_local_node(folder.path(), {.workers = 4, .direct_io = false});
  for (file_id id = 1; id <= 100; ++id) {
    auto file = std::make_shared<file_shape>(*with_commits(make_shape(id, {0, 1, 65536}, 64 * chunk_size)));
    REQUIRE_FALSE(create(*node, file));
    const bytes b(chunk_size, std::byte{'x'});
    std::atomic<int> failed{0}, open{8};
    std::promise<void> done;
    for (std::uint64_t c = 0; c < 8; ++c)
      node->write(file, 0, std::make_shared<const request>(request::contiguous(8 * c * chunk_size, chunk_size)),
                  b.data(), [&](const failure& e) {
                    if (e) ++failed;
                    if (--open == 0) done.set_value();
                  });
    done.get_future().wait();
    REQUIRE(failed == 0);
    for (std::uint64_t c = 0; c < 8; ++c) {
      bytes back(chunk_size);
      REQUIRE_FALSE(read(*node, file, 0, request::contiguous(8 * c * chunk_size, chunk_size), back.data()));
      REQUIRE(back == b);
    }
  }
}

TEST_CASE("commits and plain files are told apart") {
  committed_object f;
  auto plain = std::make_shared<file_shape>(*f.shape);
  plain->commits = false;
  bytes b;
  const failure e = f.get(plain, 0, b);
  CHECK(e.code == errc::corrupt);
  CHECK_THAT(e.what, Catch::Contains("it keeps commits"));
  node_with_file other(10000);
  CHECK(prepare(*other.node, other.shape).code == errc::invalid_request);
}

TEST_CASE("a damaged or missing file of sides is an error that names it, whatever is asked") {
  const std::uint64_t present = 5, copy = 4096 + 5, other_copy = 2 * 4096 + 5;
  for (const std::uint64_t at : {present, copy, other_copy}) {
    CAPTURE(at);
    committed_object f;
    flip_byte(f.side_path(), at);
    f.open();
    bytes b;
    const failure read = f.get(at == present ? f.shape : as_of(f.shape, 1, true), 4, b);
    CHECK(read.code == errc::corrupt);
    CHECK_THAT(read.what, Catch::Contains(".side") && Catch::Contains("damaged"));
    CHECK(f.try_to_put(0, chunk_size, 'x').code == errc::corrupt);
    CHECK(verify(*f.node, f.shape).first.code == errc::corrupt);
  }
  using range = std::pair<std::uint64_t, std::uint64_t>;
  for (const auto& [from, n] : {range{0, 4096}, range{4096, 4096}, range{4096, 8192}, range{0, 12288}}) {
    CAPTURE(from, n);
    committed_object f;
    write_zeros(f.side_path(), from, n);
    f.open();
    CHECK(f.try_to_put(0, chunk_size, 'x').code == errc::corrupt);
    CHECK(prepare(*f.node, f.shape).code == errc::corrupt);
    CHECK(roll_back(*f.node, f.shape).code == errc::corrupt);
  }
  committed_object f;
  fs::resize_file(f.side_path(), 0);
  f.open();
  bytes b;
  CHECK(f.get(f.shape, 4, b).code == errc::corrupt);
  fs::remove(f.side_path());
  f.open();
  CHECK_THAT(f.get(f.shape, 4, b).what, Catch::Contains("'.side'") && Catch::Contains("missing"));
}

TEST_CASE("a loss of power that takes the beginning of a group amid its first commit leaves the commit before") {
  for (const std::uint64_t lost : {1, 2}) {  // pages with copies of the committed bits
    CAPTURE(lost);
    const temporary_folder folder;
    const shape_ptr f = with_commits(make_shape(committed_file, {0, 1, 65536}, 16 * chunk_size));
    const request all = request::contiguous(0, f->size);
    {
      const auto node = open_local_node(folder.path());
      REQUIRE_FALSE(create(*node, f));
      REQUIRE_FALSE(write(*node, f, 0, all, bytes(f->size, std::byte{'n'}).data()));
      REQUIRE_FALSE(prepare(*node, f));
    }
    write_zeros(node_folder(folder.path()).sides(committed_file), lost * chunk_size, chunk_size);
    change_boot(folder.path(), committed_file);
    const auto node = open_local_node(folder.path());
    const failure back = roll_back(*node, f);
    INFO(back.what);
    REQUIRE_FALSE(back);
    bytes b(f->size);
    REQUIRE_FALSE(read(*node, f, 0, all, b.data()));
    CHECK(b == bytes(f->size));
    REQUIRE_FALSE(write(*node, f, 0, all, bytes(f->size, std::byte{'x'}).data()));
    REQUIRE_FALSE(prepare(*node, f));
    REQUIRE_FALSE(read(*node, as_of(f, 1, true), 0, all, b.data()));
    CHECK(b == bytes(f->size, std::byte{'x'}));
  }
}

TEST_CASE("damaged bytes of the last commit are found, though newer ones hide them") {
  committed_object f;
  f.node.reset();
  // Commit 1 is at the second sides.
  flip_byte(node_folder(f.folder.path()).data(committed_file), place_of(4, 1) * chunk_size + 17);
  f.open();
  CHECK(f.letter(f.shape, 4) == 'n');
  const auto [failed, report] = verify(*f.node, f.shape);
  CHECK_FALSE(failed);
  CHECK(report.corrupt == 1);
  REQUIRE(report.problems.size() == 1);
  CHECK_THAT(report.problems[0], Catch::Contains("[16384, 20480)"));
}

TEST_CASE("removal takes the file of sides along") {
  committed_object f;
  REQUIRE(fs::exists(f.side_path()));
  REQUIRE_FALSE(ooc::testing::remove(*f.node, committed_file));
  CHECK_FALSE(fs::exists(f.side_path()));
}

namespace {

/// A child that is killed shares this with its parent: two commits, and which of them was decided last.
struct shared_commits {
  static constexpr std::uint64_t size = 5 << 20;
  std::atomic<std::uint64_t> decided{0};
  std::byte contents[2][size];

  std::byte* of(std::uint64_t commit) { return contents[commit % 2]; }
};

[[noreturn]] void write_and_commit(const fs::path& folder, shape_ptr shape, shared_commits& shared, std::uint64_t seed,
                                   bool direct) {
  std::mt19937_64 random(seed);
  const auto node = open_local_node(folder, {.workers = 2, .direct_io = direct});
  aligned_bytes now(shared.size);
  std::memcpy(now.data(), shared.of(shared.decided), shared.size);
  if (roll_back(*node, shape)) ::_exit(3);
  for (;;) {
    for (std::uint64_t writes = between(random, 1, 12); writes > 0; --writes) {
      const request r = random_request(random, shared.size);
      const auto v = static_cast<int>(random() & 0xff);
      aligned_bytes memory(shared.size);
      std::memset(memory.data(), v, memory.size());
      if (write(*node, shape, 0, r, memory.data())) ::_exit(1);
      r.for_each_run([&](std::uint64_t file, std::uint64_t, std::uint64_t n) { std::memset(now.data() + file, v, n); });
    }
    if (prepare(*node, shape)) ::_exit(2);
    if (between(random, 0, 4) == 0) continue;  // nothing comes of it
    std::memcpy(shared.of(shape->commit + 1), now.data(), shared.size);
    shape = as_of(shape, shape->commit + 1);
    shared.decided = shape->commit;
  }
}

}  // namespace

TEST_CASE("a writer killed at any moment leaves its last commit, and nothing of what came after") {
  std::mt19937_64 random(random_seed("commit_kill"));
  void* const memory =
      ::mmap(nullptr, sizeof(shared_commits), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto& shared = *new (memory) shared_commits;
  temporary_folder folder;
  shape_ptr shape = with_commits(make_shape(committed_file, {0, 1, 65536}, shared.size));
  REQUIRE_FALSE(create(*open_local_node(folder.path()), shape));
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    const std::uint64_t seed = random();
    const bool direct = round % 2 == 0;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) write_and_commit(folder.path(), shape, shared, seed, direct);
    random_pause(std::chrono::milliseconds(between(random, 5, 120)));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));

    shape = as_of(shape, shared.decided);
    const auto node = open_local_node(folder.path(), {.workers = 2, .direct_io = direct});
    aligned_bytes b(shared.size);
    const request all = request::contiguous(0, shared.size);
    const auto equal = [&] { return std::memcmp(b.data(), shared.of(shape->commit), shared.size) == 0; };
    REQUIRE_FALSE(read(*node, as_of(shape, shape->commit, true), 0, all, b.data()));
    REQUIRE(equal());
    REQUIRE(verify(*node, shape).second.corrupt == 0);
    if (between(random, 0, 1) == 0) continue;
    const failure back = roll_back(*node, shape);
    INFO(back.what);
    REQUIRE_FALSE(back);
    REQUIRE_FALSE(read(*node, shape, 0, all, b.data()));
    REQUIRE(equal());
  }
  ::munmap(memory, sizeof(shared_commits));
}
