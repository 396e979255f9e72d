// Algorithms whose process is killed at a random moment: what the documentation says about their output holds.
//
// A process of its own runs the algorithm, and a timer of the kernel kills it.  Then the store is opened here.
// An output that opens is whole, as before or as after; one that does not carries the mark, and holds what
// docs/algorithms.md says.  Whatever is only read is as it was, no temporary file is left, and the
// algorithm runs over the arrays again.
//
// Each algorithm is killed once, in `scripts/test --long` 50 times; OOC_TEST_KILLS says otherwise.  One
// algorithm by itself:
//
//     OOC_TEST_KILLS=50 build/release/tests/runtime/test_algorithm_kills -c "sort in place"

#include <signal.h>
#include <time.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>

#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/factorise.hpp"
#include "oocarray/algorithm/multiply.hpp"
#include "oocarray/algorithm/sort.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "support/dying_case.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

using matrix = ooc_array<double, 2>;
constexpr std::size_t n = 256;

auto average() {
  return stencil({1, 1}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j)
      out[j] = 0.25 * (in[-1][j] + in[1][j] + in[0][j - 1] + in[0][j + 1]);
  });
}

/// An output that is marked may hold these values of each element.
enum class marked { anything, old_or_new, old_new_or_zero };

struct algorithm_case {
  const char* name;
  char output;  ///< which array is written
  marked holds;
  void (*run)(matrix& a, matrix& b, matrix& c);
};

const algorithm_case algorithms[] = {
    {"sweep in place", 'a', marked::anything,
     [](matrix& a, matrix&, matrix&) { sweep(a, 12, average(), {.fuse = 4}); }},
    {"sweep of slabs that are cut", 'a', marked::anything,
     [](matrix& a, matrix&, matrix&) { sweep(a, 12, average(), {.fuse = 4, .width = 60}); }},
    {"sweep to another array", 'b', marked::anything,
     [](matrix& a, matrix& b, matrix&) { sweep(a, b, 12, average(), {.fuse = 4}); }},
    {"copy", 'b', marked::old_or_new, [](matrix& a, matrix& b, matrix&) { copy(a, b); }},
    {"transpose", 'b', marked::old_or_new, [](matrix& a, matrix& b, matrix&) { transpose(a, b); }},
    {"transpose in place", 'a', marked::anything, [](matrix& a, matrix&, matrix&) { transpose(a); }},
    {"transform", 'c', marked::old_new_or_zero,
     [](matrix& a, matrix& b, matrix& c) { transform(a, b, c, [](double x, double y) { return x - 2 * y; }); }},
    {"for_each", 'a', marked::old_or_new,
     [](matrix& a, matrix&, matrix&) { for_each(a, [](double& x) { x = 3 * x + 1; }); }},
    {"inclusive_scan", 'b', marked::old_new_or_zero, [](matrix& a, matrix& b, matrix&) { inclusive_scan(a, b); }},
    {"sort in place", 'a', marked::anything,
     [](matrix& a, matrix&, matrix&) { sort(a, {.flat = true, .memory = 200_KiB}); }},
    {"sort to another array", 'b', marked::anything, [](matrix& a, matrix& b, matrix&) { sort(a, b, {.flat = true}); }},
    {"multiply", 'c', marked::anything, [](matrix& a, matrix& b, matrix& c) { multiply(a, b, c); }},
    {"LU factorisation", 'a', marked::anything,
     [](matrix& a, matrix&, matrix&) {
       std::vector<std::size_t> pivots(a.extent(0));
       lu(a, pivots, {.memory = 9_MiB / 10});
     }},
};

double start_value(char array, std::size_t e) {
  return static_cast<double>((e * 2654435761u + static_cast<unsigned char>(array) * 977u) % 1000) + 1;
}

store open_store(const std::string& folder) {
  return store::open("local:" + folder, {.workers = 2, .staging = 64_KiB});
}

runtime_options budget(const store& s) { return memory(s.core()->staging_bytes() + 9_MiB); }

/// Makes the arrays with their first values.
void make_arrays(const std::string& folder) {
  const store s = open_store(folder);
  runtime rt(budget(s));
  for (const char name : {'a', 'b', 'c'}) {
    matrix m{rt, s, std::string(1, name), create, {n, n}, {.block = 16_KiB, .replace = true}};
    for (std::size_t e = 0; e < n * n; ++e) m.data()[e] = start_value(name, e);
    m.writeback();
  }
}

/// The elements as they are in the file; not a number where they cannot be read.
std::vector<double> contents(const store& s, char name) {
  std::vector<double> all(n * n);
  runtime rt(budget(s));
  const matrix m{rt, s, std::string(1, name), open, {.block = 16_KiB, .unfinished = open_unfinished}};
  constexpr std::size_t rows = 512 / n;  // of a chunk, which is checked as a whole
  for (std::size_t i = 0; i < n; i += rows) {
    const std::span part = std::span(all).subspan(i * n, rows * n);
    try {
      m.read_all({{i, 0}, {i + rows, n}}, part);
    } catch (const integrity_error&) {
      std::fill(part.begin(), part.end(), std::nan(""));
    }
  }
  return all;
}

std::vector<double> first_values(char name) {
  std::vector<double> all(n * n);
  for (std::size_t e = 0; e < n * n; ++e) all[e] = start_value(name, e);
  return all;
}

}  // namespace

// The test runs this in a process of its own: OOC_TEST_PART is the number of the algorithm and after how many
// microseconds the process ends; without the latter it writes how long the algorithm takes.
TEST_CASE("an algorithm that is killed", "[.killed]") {
  const std::string part = std::getenv("OOC_TEST_PART");
  const algorithm_case& which = algorithms[std::stoul(part)];
  const std::string folder = std::getenv("OOC_TEST_FOLDER");
  const store s = open_store(folder);
  runtime rt(budget(s));
  const array_options<double> o{.block = 16_KiB, .unfinished = open_unfinished};
  matrix a{rt, s, "a", open, o}, b{rt, s, "b", open, o}, c{rt, s, "c", open, o};
  if (const std::size_t at = part.find(':'); at != std::string::npos) {
    const long after = std::stol(part.substr(at + 1));
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    timer_t timer;
    REQUIRE(::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    const itimerspec when{{}, {after / 1'000'000, after % 1'000'000 * 1000 + 1}};
    REQUIRE(::timer_settime(timer, 0, &when, nullptr) == 0);
    which.run(a, b, c);
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  which.run(a, b, c);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  std::ofstream(folder + ".took") << static_cast<long>(took.count());
}

TEST_CASE("an algorithm that is killed at any moment leaves what the documentation says") {
  const char* const asked = std::getenv("OOC_TEST_KILLS");
  const int kills = asked != nullptr ? std::max(1, std::atoi(asked)) : rounds(1, 50);
  for (std::size_t number = 0; number < std::size(algorithms); ++number) {
    const algorithm_case& which = algorithms[number];
    DYNAMIC_SECTION(which.name) {
      std::mt19937_64 g(random_seed(which.name));
      int marks = 0, whole = 0;
      const temporary_folder folder;
      const std::string path = folder / "store";
      const std::vector<double> before = first_values(which.output);
      make_arrays(path);
      REQUIRE(run_case("[.killed]", path, std::to_string(number).c_str()) == 0);
      const std::vector<double> after = contents(open_store(path), which.output);
      REQUIRE(after != before);
      long took = 0;
      std::ifstream(path + ".took") >> took;
      for (int kill = 0; kill < kills; ++kill) {
        const std::uint64_t moment = between(g, 0, static_cast<std::uint64_t>(took) * 11 / 10);
        CAPTURE(kill, moment, took);
        make_arrays(path);
        const std::string part = std::to_string(number) + ":" + std::to_string(moment);
        const int status = run_case("[.killed]", path, part.c_str());
        REQUIRE((status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)));
        whole += status == 0;

        const store s = open_store(path);
        CHECK(s.list().size() == 3);
        for (const char name : {'a', 'b', 'c'})
          if (name != which.output) CHECK(contents(s, name) == first_values(name));
        bool is_marked = false;
        {
          runtime rt(budget(s));
          try {
            const matrix opened{rt, s, std::string(1, which.output), open, {.block = 16_KiB}};
          } catch (const error& e) {
            CHECK_THAT(e.what(), Catch::Contains("is in the middle of an algorithm"));
            is_marked = true;
          }
        }
        marks += is_marked;
        const std::vector<double> found = contents(s, which.output);
        if (!is_marked) CHECK((found == before || found == after));
        std::size_t wrong = 0;
        for (std::size_t e = 0; e < n * n; ++e) {
          const bool known = found[e] == before[e] || found[e] == after[e] || std::isnan(found[e]);
          wrong +=
              which.holds != marked::anything && !known && !(which.holds == marked::old_new_or_zero && found[e] == 0);
        }
        CHECK(wrong == 0);
      }
      // It runs over what the last one has left, and takes the mark away.
      REQUIRE(run_case("[.killed]", path, std::to_string(number).c_str()) == 0);
      const store s = open_store(path);
      runtime rt(budget(s));
      CHECK_NOTHROW(matrix{rt, s, std::string(1, which.output), open, {.block = 16_KiB}});
      std::cout << which.name << ": " << kills - whole << " of " << kills << " runs were killed, " << marks
                << " left a mark" << std::endl;
      if (kills >= 10) CHECK(marks > 0);
    }
  }
}
