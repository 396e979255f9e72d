// What growth costs: calls of fsync and fdatasync, and of fallocate and ftruncate, which this program counts itself.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "storage/service/store_core.hpp"
#include "support/soon.hpp"
#include "support/store_from_environment.hpp"
#include "support/temporary_folder.hpp"

namespace {

std::atomic<unsigned> syncs{0}, resizes{0};

const std::vector<std::byte> mebibyte(1 << 20, std::byte{'x'});

/// A store that is empty: local, or what OOC_TEST_STORE names (there servers do what is counted).
std::string empty_store(const ooc::testing::temporary_folder& folder) {
  if (const auto s = ooc::testing::store_from_environment()) return s->core()->url();
  return "local:" + (folder / "n0").string();
}

ooc::storage::entry entry_of(const ooc::store& s, const char* path) { return s.core()->metadata().lookup(path); }

}  // namespace

// In place of those of the C library.
extern "C" int fsync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

extern "C" int fallocate(int fd, int mode, off_t from, off_t bytes) {
  ++resizes;
  return static_cast<int>(::syscall(SYS_fallocate, fd, mode, from, bytes));
}
extern "C" int ftruncate(int fd, off_t bytes) noexcept {
  ++resizes;
  return static_cast<int>(::syscall(SYS_ftruncate, fd, bytes));
}

TEST_CASE("a file that is appended to call by call syncs at most 12 times before it is synced") {
  ooc::testing::temporary_folder folder;
  auto store = ooc::store::open("local:" + (folder / "n0").string());
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

TEST_CASE("a file that is appended to call by call gets space in few steps, and is as long as what was written",
          "[served]") {
  ooc::testing::temporary_folder folder;
  auto store = ooc::store::open(empty_store(folder));
  for (const bool sparse : {false, true}) {
    CAPTURE(sparse);
    auto f = ooc::file::create(store, "f", {.sparse = sparse});
    const unsigned before = resizes;
    for (unsigned i = 1; i <= 64; ++i) {
      f.write(mebibyte);
      REQUIRE(entry_of(store, "f").size == i << 20);
    }
    // Data and checksums get longer four times: to 1, 18, 38 and 78 MiB.  The rest is for what removes the file before.
    CHECK(resizes - before <= 12);
    CHECK(entry_of(store, "f").reserved > 64 << 20);
    f.close();
    CHECK(entry_of(store, "f").size == 64 << 20);
    CHECK(entry_of(store, "f").reserved == 0);
    store.remove("f");
  }
}

TEST_CASE("a file that is made longer once gets no more space than it needs, and is nobody's claim", "[served]") {
  ooc::testing::temporary_folder folder;
  auto store = ooc::store::open(empty_store(folder));
  auto f = ooc::file::create(store, "f");
  f.write(mebibyte);
  CHECK(entry_of(store, "f").reserved == 0);
  store.remove("f");
}

TEST_CASE("a file that gets longer and longer is open for writing: it is not removed until it is closed", "[served]") {
  ooc::testing::temporary_folder folder;
  auto store = ooc::store::open(empty_store(folder));
  auto f = ooc::file::create(store, "f");
  for (int i = 0; i < 2; ++i) f.write(mebibyte);
  CHECK_THROWS_WITH(store.remove("f"), Catch::Contains("'f' is open for writing"));
  f.close();
  store.remove("f");
}

TEST_CASE("what a process that was killed had reserved goes back when the file is opened for writing next",
          "[served]") {
  ooc::testing::temporary_folder folder;
  const std::string url = empty_store(folder);
  const pid_t child = ::fork();
  if (child == 0) {
    auto f = ooc::file::create(ooc::store::open(url), "f");
    for (int i = 0; i < 5; ++i) f.write(mebibyte);
    ::_exit(0);  // nothing is closed
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  auto store = ooc::store::open(url);
  REQUIRE(entry_of(store, "f").reserved > 5 << 20);
  { const auto reader = ooc::file::open(store, "f"); }
  CHECK(entry_of(store, "f").reserved > 5 << 20);
  const auto opened_for_writing = [&] { return ooc::file::open(store, "f", ooc::file_access::read_write); };
  auto writer = opened_for_writing();
  // A server keeps the claim of a client that it has lost for a while: it may come back.
  const bool served = std::getenv("OOC_TEST_STORE") != nullptr;
  CHECK((served ? ooc::testing::soon([&] { return opened_for_writing(), entry_of(store, "f").reserved == 0; })
                : entry_of(store, "f").reserved == 0));
  CHECK(writer.size() == 5 << 20);
  std::vector<std::byte> back(1 << 20);
  CHECK(writer.read_at(4 << 20, back) == back.size());
  CHECK(back == mebibyte);
}

TEST_CASE("of two that append to a file neither takes space from the other when it closes", "[served]") {
  ooc::testing::temporary_folder folder;
  const std::string url = empty_store(folder);
  auto store = ooc::store::open(url);
  ooc::file::create(store, "f").close();
  const std::vector<std::byte> few(10'000, std::byte{'y'});
  auto kept = ooc::file::open(store, "f", ooc::file_access::read_write);
  std::thread other([&] {
    for (int round = 0; round < 30; ++round) {
      auto f = ooc::file::open(ooc::store::open(url), "f", ooc::file_access::read_write);
      for (std::uint64_t i = 0; i < 3; ++i) f.write_at(f.size(), few);
    }
  });
  for (int i = 0; i < 300; ++i) CHECK_NOTHROW(kept.write_at(kept.size(), few));
  other.join();
  const std::uint64_t end = kept.size();
  kept.write_at(end, few);
  CHECK(kept.size() == end + few.size());
  kept.close();
  CHECK(entry_of(store, "f").reserved == 0);
}

TEST_CASE("a file that another cuts off between two writes is made longer again from there", "[served]") {
  ooc::testing::temporary_folder folder;
  const std::string url = empty_store(folder);
  auto store = ooc::store::open(url);
  auto f = ooc::file::create(store, "f");
  for (int i = 0; i < 3; ++i) f.write(mebibyte);
  ooc::file::open(ooc::store::open(url), "f", ooc::file_access::read_write).truncate(100);
  REQUIRE(entry_of(store, "f").reserved == 0);
  f.write(mebibyte);
  CHECK(f.size() == 4 << 20);
  std::vector<std::byte> back(1 << 20);
  CHECK(f.read_at(1 << 20, back) == back.size());
  CHECK(back == std::vector<std::byte>(1 << 20));
  CHECK(f.read_at(3 << 20, back) == back.size());
  CHECK(back == mebibyte);
}
