// Names of files, and OMPIO's lists as requests.
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "mpiio/extents.hpp"
#include "mpiio/file_name.hpp"
#include "oocarray/error.hpp"
#include "oocarray/store.hpp"
#include "support/random_seed.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::mpiio;
using namespace ooc::testing;

namespace {

struct piece {
  std::uint64_t file, memory, length;
  bool operator==(const piece&) const = default;
};

// Memory begins at an address that is not 0.
constexpr std::uintptr_t start = 0x10000;

std::vector<ooc_mpiio_extent> as_extents(const std::vector<piece>& pieces) {
  std::vector<ooc_mpiio_extent> extents;
  for (const piece& p : pieces)
    extents.push_back({reinterpret_cast<void*>(start + p.memory), reinterpret_cast<void*>(p.file), p.length});
  return extents;
}

/// Of a request, counted from `start`; neighbours in file and memory are one.
std::vector<piece> pieces_of(const placed_request& r) {
  std::vector<piece> all;
  const std::uint64_t base = reinterpret_cast<std::uintptr_t>(r.base) - start;
  r.wanted.for_each_run([&](std::uint64_t file, std::uint64_t memory, std::uint64_t length) {
    memory += base;
    if (!all.empty() && all.back().file + all.back().length == file && all.back().memory + all.back().length == memory)
      all.back().length += length;
    else
      all.push_back({file, memory, length});
  });
  return all;
}

constexpr std::uint64_t no_end = ~std::uint64_t{0};

}  // namespace

TEST_CASE("the columns of a sub-cube are one entry again, whatever the number of pieces") {
  std::vector<piece> pieces;
  for (std::uint64_t z = 0; z < 5; ++z)
    for (std::uint64_t y = 0; y < 40; ++y)
      for (std::uint64_t x = 0; x < 3; ++x)
        pieces.push_back({7 + z * 100000 + y * 1000 + x * 16, (z * 40 + y) * 30 + x * 8, 8});
  const placed_request r = as_request(as_extents(pieces), no_end);
  CHECK(r.wanted.entries().size() == 1);
  CHECK(r.wanted.entries().front().depth == 3);
  CHECK(pieces_of(r) == pieces);
}

TEST_CASE("pieces without order stay as they are, with memory before the first one") {
  const std::vector<piece> pieces{{5000, 900, 10}, {100, 50, 20}, {200, 0, 1}, {90, 700, 5}};
  CHECK(pieces_of(as_request(as_extents(pieces), no_end)) == pieces);
}

TEST_CASE("what lies past the end of the file is not asked for") {
  const placed_request r = as_request(as_extents({{0, 0, 10}, {20, 10, 10}, {40, 20, 10}, {30, 30, 1}}), 35);
  CHECK(pieces_of(r) == std::vector<piece>{{0, 0, 10}, {20, 10, 10}, {30, 30, 1}});
  CHECK(as_request(as_extents({{40, 0, 10}}), 35).wanted.empty());
  CHECK(as_request({}, 35).wanted.empty());
  CHECK(end_of(as_extents({{0, 0, 10}, {20, 10, 10}, {90, 0, 0}})) == 30);
}

TEST_CASE("random lists are the same pieces in the same order") {
  const std::uint64_t seed = random_seed("mpiio requests");
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t n) { return random() % n + 1; };
  for (int round = 0; round < 300; ++round) {
    std::vector<piece> pieces;
    std::uint64_t file = up_to(1000), memory = up_to(1000);
    for (std::uint64_t part = up_to(6); part-- > 0;) {
      // A stretch of evenly spaced pieces, which may follow the one before as its next row does
      const std::uint64_t length = up_to(4), file_step = length + up_to(3), memory_step = length + up_to(3) - 1;
      for (std::uint64_t row = up_to(4); row-- > 0;) {
        for (std::uint64_t n = up_to(5); n-- > 0;) {
          pieces.push_back({file, memory, length});
          file += file_step;
          memory += memory_step;
        }
        file += up_to(3) - 1;
      }
    }
    std::vector<piece> joined;
    for (const piece& p : pieces)
      if (!joined.empty() && joined.back().file + joined.back().length == p.file &&
          joined.back().memory + joined.back().length == p.memory)
        joined.back().length += p.length;
      else
        joined.push_back(p);
    const placed_request r = as_request(as_extents(pieces), no_end);
    REQUIRE(pieces_of(r) == joined);
    REQUIRE(r.wanted.entries().size() <= joined.size());
  }
}

TEST_CASE("a name is a store and a path in it") {
  const file_name served = parse_file_name("ooc://host:7420/runs/x");
  CHECK(served.store == "ooc://host:7420/");
  CHECK(served.path == "runs/x");
  const file_name prefixed = parse_file_name("ooc:ooc://host/x?deadline=10s");
  CHECK(prefixed.store == "ooc://host/?deadline=10s");
  CHECK(prefixed.path == "x");
  const file_name in_rados = parse_file_name("ooc:rados:pool/space/runs/x?user=me");
  CHECK(in_rados.store == "rados:pool/space?user=me");
  CHECK(in_rados.path == "runs/x");
  for (const char* none : {"ooc:rados:", "ooc:rados:pool", "ooc:rados:pool/space", "ooc:rados:pool/space/"})
    CHECK_THROWS_WITH(parse_file_name(none), Catch::Contains("write ooc:rados:POOL/NAMESPACE/PATH"));
  CHECK(is_file_name("ooc:x"));
  CHECK(!is_file_name("/ooc:x"));
  CHECK_THROWS_WITH(parse_file_name("ooc://host:7420/"), Catch::Contains("no file in it"));
  CHECK_THROWS_WITH(parse_file_name("ooc://host"), Catch::Contains("no file in it"));
}

TEST_CASE("the folder of an embedded store is the first one on the way that belongs to a store") {
  temporary_folder folder;
  const std::string n0 = (folder / "n0").string(), n1 = (folder / "n1").string();
  (void)store::open("local:" + n0 + "," + n1);
  const file_name n = parse_file_name("ooc:local:" + n0 + "," + n1 + "/runs/7/x");
  CHECK(n.store == "local:" + n0 + "," + n1);
  CHECK(n.path == "runs/7/x");
  CHECK(parse_file_name("ooc:local:" + n0 + "," + n1 + "//x").path == "x");
  CHECK_THROWS_WITH(parse_file_name("ooc:local:" + n1 + "/"), Catch::Contains("no file in it"));
  CHECK_THROWS_WITH(parse_file_name("ooc:local:" + n1), Catch::Contains("no file in it"));
  CHECK_THROWS_WITH(parse_file_name("ooc:local:" + folder.path().string() + "/x"),
                    Catch::Contains("no folder of a store is on the way"));
}
