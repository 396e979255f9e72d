// Arrays and processes: kill -9 in the middle of work, forked children, two writers at once.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "oocarray/ooc_array.hpp"
#include "storage/store_core.hpp"
#include "storage/temporary_folder.hpp"

using namespace ooc;
using ooc::testing::temporary_folder;

namespace {

std::string url(const temporary_folder& f) {
  return "local:" + (f.path() / "store").string();
}

store small_store(const temporary_folder& f) {
  return store::open(url(f), {.workers = 2, .staging = 64_KiB});
}

int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// Nothing corrupt; what a crash cut short may be torn.
void check_clean(const store& s) {
  for (const storage::file_id id : s.core()->metadata().files()) {
    const storage::entry e = s.core()->metadata().find(id);
    const auto f = s.core()->open(e.path, storage::open_mode::read).file;
    for (std::uint32_t turn = 0; turn < e.striping.nn; ++turn) {
      std::atomic<bool> ended{false};
      f->node(turn).verify(f->shape_handle(), turn,
                           [&](const failure& error, const storage::verify_report& r) {
                             CHECK_FALSE(error);
                             CHECK(r.corrupt == 0);
                             ended = true;
                             ended.notify_all();
                           });
      ended.wait(false);
    }
  }
}

}  // namespace

TEST_CASE("kill -9 of a program in the middle of its work leaves a store that opens and verifies") {
  temporary_folder folder;
  for (int round = 0; round < 3; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      runtime rt({.memory = 2_MiB, .block = 64_KiB});
      const store s = small_store(folder);
      ooc_array<double, 2> a(rt, s, "plate/a", create, {1024, 1024}, {.replace = true});
      for (double round_value = 1;; ++round_value)
        for (std::size_t i = 0; i < 1024; ++i)
          for (std::size_t j = 0; j < 1024; ++j) a[i][j] += round_value;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(150 + 100 * round));
    ::kill(child, SIGKILL);
    CHECK(WIFSIGNALED(wait_for(child)));
    check_clean(small_store(folder));
  }
}

TEST_CASE("two processes that write different blocks of one array lose nothing") {
  temporary_folder folder;
  constexpr std::size_t rows = 512, columns = 1024;  // 8 KiB a row; blocks of 8 rows
  {
    runtime rt({.memory = 2_MiB, .block = 64_KiB});
    const store s = small_store(folder);
    ooc_array<double, 2> a(rt, s, "a", create, {rows, columns});
  }
  pid_t children[2];
  for (int me = 0; me < 2; ++me) {
    children[me] = ::fork();
    if (children[me] != 0) continue;
    try {
      runtime rt({.memory = 2_MiB, .block = 64_KiB});
      const store s = small_store(folder);
      ooc_array<double, 2> a(rt, s, "a", open);
      for (std::size_t block = 0; block < rows / 8; ++block) {
        if (block % 2 != static_cast<std::size_t>(me)) continue;
        for (std::size_t i = block * 8; i < block * 8 + 8; ++i)
          for (std::size_t j = 0; j < columns; ++j) a[i][j] = static_cast<double>(i * columns + j);
      }
      a.close();
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  for (const pid_t c : children) REQUIRE(wait_for(c) == 0);
  runtime rt({.memory = 2_MiB, .block = 64_KiB});
  const store s = small_store(folder);
  const ooc_array<double, 2> a(rt, s, "a", open_read_only);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      wrong += a[i][j] != static_cast<double>(i * columns + j);
  CHECK(wrong == 0);
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support threads in forked children
TEST_CASE("a forked child that ends normally neither hangs nor writes; a touch there ends it") {
  temporary_folder folder;
  auto rt = std::make_unique<runtime>(runtime_options{.memory = 2_MiB, .block = 64_KiB});
  auto s = std::make_unique<store>(small_store(folder));
  auto a =
      std::make_unique<ooc_array<int, 1>>(*rt, *s, "a", create, std::array<std::size_t, 1>{100000});
  (*a)[7] = 1;

  const pid_t leaver = ::fork();
  if (leaver == 0) {
    ::alarm(20);
    a.reset();
    s.reset();
    rt.reset();
    ::_exit(0);
  }
  CHECK(wait_for(leaver) == 0);

  const pid_t toucher = ::fork();
  if (toucher == 0) {
    ::close(2);
    ::signal(SIGSEGV, SIG_DFL);
    volatile int x = (*a)[7];
    (void)x;
    ::_exit(0);
  }
  const int status = wait_for(toucher);
  CHECK(WIFSIGNALED(status));

  CHECK((*a)[7] == 1);
  a->writeback();
  a->invalidate();
  CHECK((*a)[7] == 1);
}
#endif
