#include "runtime/policy/waste_watch.hpp"

#include <catch2/catch.hpp>

using ooc::detail::waste_watch;

namespace {

constexpr std::uint64_t block_size = 2 << 20;

/// Windows, of at most `windows`, after which a program is found that runs so long for each block.
int windows_until_found(waste_watch& w, std::uint64_t ns_per_block, int windows) {
  std::uint64_t ran = 0;
  for (int n = 1; n <= windows; ++n)
    for (std::uint64_t b = 0; b <= waste_watch::window; ++b)
      if (w.mapped(block_size, ran += ns_per_block)) return n;
  return 0;
}

}  // namespace

TEST_CASE("a program that has no time to touch what it reads is found, once") {
  waste_watch w;
  CHECK(windows_until_found(w, 1000, 3) == 1);
  CHECK(w.found());
  CHECK(windows_until_found(w, 1000, 3) == 0);
  CHECK_THAT(w.text("a/b"), Catch::Contains("array 'a/b'") && Catch::Contains("514 MiB") &&
                                Catch::Contains("4.9 MiB") && Catch::Contains("gather()"));
}

TEST_CASE("a program that may have touched an eighth of what it reads is not found") {
  waste_watch w;
  CHECK(windows_until_found(w, block_size / 20 / 8 + 100, 5) == 0);
  CHECK(windows_until_found(w, block_size / 20, 5) == 0);
  CHECK_FALSE(w.found());
}

TEST_CASE("a program that begins to waste is found after a sweep, however long that was") {
  waste_watch w;
  std::uint64_t ran = 0;
  for (int n = 0; n < 10000; ++n) CHECK_FALSE(w.mapped(block_size, ran += 1'000'000));
  int more = 0;
  while (!w.mapped(block_size, ran += 500)) REQUIRE(++more < 1000);
  CHECK(w.found());
}
