// What growth costs: calls of fsync and fdatasync, which this program counts itself.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <vector>

#include "oocarray/file.hpp"
#include "support/temporary_folder.hpp"

namespace {
std::atomic<unsigned> syncs{0};
}

// In place of those of the C library.
extern "C" int fsync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

TEST_CASE("a file that is appended to call by call syncs at most 12 times before it is synced") {
  ooc::testing::temporary_folder folder;
  auto store = ooc::store::open("local:" + (folder / "n0").string());
  const std::vector<std::byte> mebibyte(1 << 20, std::byte{'x'});
  auto f = ooc::file::create(store, "f", {.sparse = true});
  const unsigned before = syncs;
  for (int i = 0; i < 64; ++i) f.write(mebibyte);
  CHECK(syncs - before <= 12);
  const unsigned written = syncs;
  f.sync();
  CHECK(syncs > written);
  CHECK(f.size() == 64 << 20);
  f.close();
  std::vector<std::byte> back(1 << 20);
  auto again = ooc::file::open(store, "f", ooc::file_access::read_only);
  REQUIRE(again.read_at(63 << 20, back) == back.size());
  CHECK(back == mebibyte);
}
