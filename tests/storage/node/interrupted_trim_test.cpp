// Giving back what an earlier commit had, with a signal in between.
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>

#include "failing_disk.hpp"
#include "support/node_fixture.hpp"

using namespace ooc::testing;
using namespace ooc;

TEST_CASE("a signal that interrupts the giving back of what an earlier commit had is no failure") {
  const temporary_folder folder;
  const auto node = open_local_node(folder.path());
  constexpr std::uint64_t size = 64 * chunk_size;
  auto f = std::make_shared<file_shape>(*make_shape(1, {0, 1, 65536}, size, true));
  f->commits = true;
  REQUIRE_FALSE(create(*node, f));
  const bytes b(size, std::byte{'o'});
  for (std::uint64_t commit = 1; commit <= 2; ++commit) {
    REQUIRE_FALSE(testing::write(*node, f, 0, request::contiguous(0, size), b.data()));
    REQUIRE_FALSE(prepare(*node, f));
    f = std::make_shared<file_shape>(*f);
    f->commit = commit;
  }
  std::atomic<int> holes{0};
  const failing_disk disk([&](disk_call c, int fd, std::size_t) {
    const bool is_hole = c == disk_call::lengthen && is_named(fd, ".data");
    return is_hole && ++holes == 1 ? disk_answer{EINTR, {}} : disk_answer{};
  });
  const failure given_back = trim(*node, f);
  INFO(given_back.what);
  CHECK_FALSE(given_back);
  CHECK(holes == 2);
}
