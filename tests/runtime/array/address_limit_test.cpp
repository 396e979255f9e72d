// Arrays in processes that may have few addresses (ulimit -v).
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/ooc_array.hpp"
#include "runtime/blocks/address_room.hpp"
#include "support/dying_case.hpp"
#include "support/temporary_folder.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take most addresses themselves

using namespace ooc;
using namespace ooc::testing;

namespace {

enum outcome : int { worked = 0, refused = 3, refused_badly = 4 };

/// A program that has room does this: another array, threads, memory of its own.
void work(runtime& rt, const store& s) {
  ooc_array<double, 1> a(rt, s, "a", create, {256_MiB / sizeof(double)});
  ooc_array<float, 1> b(rt, s, "b", create, {1000});
  const std::size_t step = a.size() / 200;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::vector<double> own(1_MiB / sizeof(double), 1.0);
      for (std::size_t i = t; i < 200; i += 4) a[i * step] = own[i];
    });
  for (std::thread& t : threads) t.join();
  b[7] = 1;
  a.writeback();
  a.invalidate();
  for (std::size_t i = 0; i < 200; ++i)
    if (a[i * step] != 1) ::_exit(refused_badly);
  a.close();
  b.close();
}

}  // namespace

TEST_CASE("a process with a limit of addresses opens and touches arrays", "[.address_limit]") {
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::stoull(std::getenv("OOC_TEST_PART")) << 20;
  REQUIRE(::setrlimit(RLIMIT_AS, &limit) == 0);
  try {
    runtime rt({.memory = 256_MiB});
    work(rt, store::open(url_of_dying_case()));
  } catch (const usage_error& e) {
    const std::string said = e.what();
    std::printf("%s\n", said.c_str());
    const auto names = [&](const char* what) { return said.find(what) != std::string::npos; };
    const bool well = e.code() == std::errc::not_enough_memory && names("array '") && names("(ulimit -v)") &&
                      names(std::to_string(limit.rlim_cur).c_str()) && names("raise that limit");
    std::fflush(stdout);
    ::_exit(well ? refused : refused_badly);
  }
  ::_exit(worked);
}

TEST_CASE("under any limit of addresses an array works, or is refused by its name, the limit and the remedy") {
  for (const unsigned mib : {512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 4096, 6144}) {
    const temporary_folder folder;
    const int status = run_case("[.address_limit]", folder.path(), std::to_string(mib).c_str());
    CAPTURE(mib);
    REQUIRE(WIFEXITED(status));
    const int how = WEXITSTATUS(status);
    if (mib == 512) CHECK(how == refused);
    if (mib >= 1536) CHECK(how == worked);
    CHECK((how == worked || how == refused));
  }
}

TEST_CASE("guards and grains get what the array and a quarter of the limit leave, and without a limit all") {
  using detail::address_room;
  CHECK(address_room{}.guard_beside(1_TiB, 1_GiB) == 1_GiB);
  CHECK(address_room{}.has(64_TiB));
  CHECK(address_room{}.has_plenty(64_TiB));
  const address_room some{8_GiB, 6_GiB};
  CHECK(some.guard_beside(1_GiB, 1_GiB) == 1_GiB);
  CHECK(some.guard_beside(3_GiB, 1_GiB) == 512_MiB);
  CHECK(some.guard_beside(5_GiB, 1_GiB) == 0);
  CHECK(some.has(5_GiB));
  CHECK(!some.has_plenty(5_GiB));
  CHECK(some.has_plenty(4_GiB));
  CHECK(!some.has(6_GiB));
  CHECK(!some.has(7_GiB));
}

#endif
