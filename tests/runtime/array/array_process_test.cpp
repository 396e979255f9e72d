// Arrays and processes: kill -9 in the middle of work, forked children, two writers at once.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <random>
#include <string>
#include <thread>

#include "oocarray/ooc_array.hpp"
#include "storage/service/store_core.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using ooc::testing::temporary_folder;

namespace {

std::string url(const temporary_folder& f) { return "local:" + (f.path() / "store").string(); }

store small_store(const temporary_folder& f) { return store::open(url(f), {.workers = 2, .staging = 64_KiB}); }

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
      f->node(turn).verify(f->shape_handle(), turn, [&](const failure& error, const storage::verify_report& r) {
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
  std::mt19937_64 random(ooc::testing::random_seed("killed program"));
  for (int round = 0; round < 3; ++round) {
    int working[2];
    REQUIRE(::pipe(working) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      runtime rt({.memory = 2_MiB, .block = 64_KiB});
      const store s = small_store(folder);
      ooc_array<double, 2> a(rt, s, "plate/a", create, {1024, 1024}, {.replace = true});
      for (double round_value = 1;; ++round_value)
        for (std::size_t i = 0; i < 1024; ++i)
          for (std::size_t j = 0; j < 1024; ++j) {
            a[i][j] += round_value;
            // More than fits has been written.
            if (round_value == 1 && i == 512 && j == 0 && ::write(working[1], "w", 1) != 1) ::_exit(1);
          }
    }
    ::close(working[1]);
    char byte = 0;
    CHECK(::read(working[0], &byte, 1) == 1);
    ::close(working[0]);
    ooc::testing::random_pause(std::chrono::milliseconds(ooc::testing::between(random, 0, 200)));
    ::kill(child, SIGKILL);
    CHECK(WIFSIGNALED(wait_for(child)));
    check_clean(small_store(folder));
  }
}

TEST_CASE("two processes that write different parts of one array lose nothing") {
  const bool whole_blocks = GENERATE(true, false);  // or alternating elements of every block

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
      ooc_array<double, 2> a(rt, s, "a", open, {.shared = true});
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
          if ((whole_blocks ? i / 8 : j) % 2 == static_cast<std::size_t>(me))
            a[i][j] = static_cast<double>(i * columns + j);
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
    for (std::size_t j = 0; j < columns; ++j) wrong += a[i][j] != static_cast<double>(i * columns + j);
  CHECK(wrong == 0);
}

TEST_CASE("create_or_open makes an array the first time, and finds it or says what differs the next") {
  temporary_folder folder;
  for (int run = 0; run < 2; ++run) {
    runtime rt({.memory = 2_MiB, .block = 64_KiB});
    const store s = small_store(folder);
    ooc_array<double, 2> a(rt, s, "d/a", create_or_open, {100, 50}, {.fill = 1.0});
    CHECK(a[99][49] == 1);
    CHECK(a[0][0] == 1 + run);
    a[0][0] = 2;
  }
  runtime rt({.memory = 2_MiB, .block = 64_KiB});
  const store s = small_store(folder);
  using doubles = ooc_array<double, 2>;
  using floats = ooc_array<float, 2>;
  using line = ooc_array<double, 1>;
  CHECK_THROWS_WITH(doubles(rt, s, "d/a", create_or_open, {100, 51}), Catch::Contains("100") && Catch::Contains("51"));
  CHECK_THROWS_WITH(floats(rt, s, "d/a", create_or_open, {100, 50}), Catch::Contains("f8") && Catch::Contains("f4"));
  CHECK_THROWS_WITH(line(rt, s, "d/a", create_or_open, {5000}), Catch::Contains("rank"));
  CHECK_THROWS_WITH(doubles(rt, s, "d/a", create_or_open, {100, 50}, {.replace = true}), Catch::Contains("replace"));
  CHECK_THROWS_AS(doubles(rt, s, "d", create_or_open, {100, 50}), usage_error);
  // A folder is no array to be replaced.
  CHECK_THROWS_WITH(doubles(rt, s, "d", create, {100, 50}, {.replace = true}),
                    Catch::Contains("is a folder") && !Catch::Contains("options.replace = true"));
  CHECK_THROWS_WITH(doubles(rt, s, "d", create, {100, 50}),
                    Catch::Contains("as a folder") && !Catch::Contains("options.replace"));
}

TEST_CASE("who asks to wait gets a file as soon as its writer has closed it") {
  temporary_folder folder;
  {
    runtime rt({.memory = 2_MiB, .block = 64_KiB});
    const store s = small_store(folder);
    ooc_array<double, 1> a(rt, s, "a", create, {1000});
  }
  int opened[2], go_on[2];
  REQUIRE(::pipe(opened) == 0);
  REQUIRE(::pipe(go_on) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(go_on[1]);
    try {
      runtime rt({.memory = 2_MiB, .block = 64_KiB});
      const store s = small_store(folder);
      ooc_array<double, 1> a(rt, s, "a", open);
      a[7] = 7;
      char c = 0;
      if (::write(opened[1], &c, 1) != 1 || ::read(go_on[0], &c, 1) != 0) ::_exit(1);
      a.close();
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  char c = 0;
  REQUIRE(::read(opened[0], &c, 1) == 1);
  runtime rt({.memory = 2_MiB, .block = 64_KiB});
  const store s = small_store(folder);
  const auto open_for = [&](std::chrono::milliseconds patience) {
    return ooc_array<double, 1>(rt, s, "a", open, {.wait_for_writer = patience});
  };
  CHECK_THROWS_WITH(open_for(std::chrono::milliseconds(50)), Catch::Contains("waited for during 0.05 s"));
  auto mine = std::async(std::launch::async, [&] { return open_for(std::chrono::minutes(1)); });
  CHECK(mine.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  ::close(go_on[1]);
  CHECK(mine.get()[7] == 7);
  CHECK(wait_for(child) == 0);
  for (const int fd : {opened[0], opened[1], go_on[0]}) ::close(fd);
}

TEST_CASE("a second process that writes whole blocks is refused, and told the remedy") {
  temporary_folder folder;
  {
    runtime rt({.memory = 2_MiB, .block = 64_KiB});
    const store s = small_store(folder);
    ooc_array<double, 1> a(rt, s, "a", create, {1000});
  }
  int holding[2], leave[2];
  REQUIRE(::pipe(holding) == 0);
  REQUIRE(::pipe(leave) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    runtime rt({.memory = 2_MiB, .block = 64_KiB});
    const store s = small_store(folder);
    ooc_array<double, 1> a(rt, s, "a", open);
    if (::write(holding[1], &byte, 1) != 1 || ::read(leave[0], &byte, 1) != 1) ::_exit(1);
    a.close();
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(holding[0], &byte, 1) == 1);
  runtime rt({.memory = 2_MiB, .block = 64_KiB});
  const store s = small_store(folder);
  using array = ooc_array<double, 1>;
  CHECK_THROWS_WITH(array(rt, s, "a", open), Catch::Contains("'a'") && Catch::Contains("options.shared"));
  CHECK_THROWS_AS(array(rt, s, "a", open, {.shared = true}), usage_error);
  CHECK_NOTHROW(array(rt, s, "a", open_read_only));
  REQUIRE(::write(leave[1], &byte, 1) == 1);
  CHECK(wait_for(child) == 0);
  CHECK_NOTHROW(array(rt, s, "a", open));
  for (const int fd : {holding[0], holding[1], leave[0], leave[1]}) ::close(fd);
}

TEST_CASE("a temporary array of a process that was killed is gone when its store is opened again") {
  temporary_folder folder;
  const auto objects = [&] {
    const std::filesystem::recursive_directory_iterator all(folder.path() / "store" / "shares");
    return std::count_if(begin(all), end(all), [](const auto& e) { return e.is_regular_file(); });
  };
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    runtime rt({.memory = 2_MiB, .block = 64_KiB});
    const store s = small_store(folder);
    ooc_array<int, 1> a(rt, s, "a", create, {1 << 20}, {.temporary = true});
    for (int& x : a) x = 1;
    const char byte = 0;
    if (::write(ready[1], &byte, 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(objects() > 0);
  ::kill(child, SIGKILL);
  CHECK(WIFSIGNALED(wait_for(child)));
  {
    const store s = small_store(folder);
    CHECK(s.core()->metadata().files().empty());
  }
  CHECK(objects() == 0);
  for (const int fd : ready) ::close(fd);
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support threads in forked children
TEST_CASE("a forked child that ends normally neither hangs nor writes; a touch there ends it") {
  temporary_folder folder;
  auto rt = std::make_unique<runtime>(runtime_options{.memory = 2_MiB, .block = 64_KiB});
  auto s = std::make_unique<store>(small_store(folder));
  auto a = std::make_unique<ooc_array<int, 1>>(*rt, *s, "a", create, std::array<std::size_t, 1>{100000});
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

TEST_CASE(
    "a child that is forked without a runtime makes its own, and opens again the store that its parent goes on with") {
  temporary_folder folder;
  const store s = small_store(folder);
  {
    runtime rt({.memory = 2_MiB});
    ooc_array<double, 1> a(rt, s, "a", create, {1000});
    a[7] = 7;
  }
  for (int n = 0; n < 3; ++n) {
    const pid_t child = ::fork();
    if (child == 0) {
      int status = 1;
      try {
        runtime rt({.memory = 2_MiB});
        status = 2;
        try {
          ooc_array<double, 1>(rt, s, "a", open_read_only);
        } catch (const usage_error& e) {
          if (e.code() == errc::busy) status = 3;
        }
        const store mine = small_store(folder);
        ooc_array<double, 1> a(rt, mine, "a", open_read_only);
        if (status == 3 && std::as_const(a)[7] == 7) status = 4;
        ooc_array<int, 1> b(rt, mine, "b" + std::to_string(n), create, {100});
        b[3] = n;
        b.close();
        if (status == 4) status = 0;
      } catch (const std::exception&) {
      }
      ::_exit(status);
    }
    s.mkdir("made meanwhile " + std::to_string(n), {});
    CHECK(wait_for(child) == 0);
    CHECK(s.exists("b" + std::to_string(n)));
  }
  runtime rt({.memory = 2_MiB});
  for (int n = 0; n < 3; ++n) {
    const ooc_array<int, 1> b(rt, s, "b" + std::to_string(n), open_read_only);
    CHECK(b[3] == n);
  }
  check_clean(s);
}

TEST_CASE("a child that is forked beside a runtime is refused one of its own, and told why") {
  runtime rt({.memory = 2_MiB});
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 1;
    try {
      const runtime another({.memory = 2_MiB});
    } catch (const usage_error& e) {
      if (e.code() == errc::busy && std::string(e.what()).find("forked child") != std::string::npos) status = 0;
    }
    ::_exit(status);
  }
  CHECK(wait_for(child) == 0);
}
#endif
