// Tests of the page and the line about what a program has done with its arrays.
#include "runtime/policy/usage_report.hpp"

#include <catch2/catch.hpp>

#include "runtime/policy/segment_history.hpp"

using namespace ooc;
using namespace ooc::detail;

namespace {

constexpr std::uint64_t MiB = 1 << 20;

run_usage ten_seconds() {
  run_usage r;
  r.seconds = 10;
  r.all.budget_bytes = 64 * MiB;
  r.all.resident_bytes = 60 * MiB;
  return r;
}

array_usage one(const char* name) {
  array_usage a;
  a.name = name;
  a.bytes = 512 * MiB;
  a.block_bytes = 2 * MiB;
  return a;
}

std::string page_of(const array_usage& a) {
  run_usage r = ten_seconds();
  r.all.bytes_read = a.counts.bytes_read;
  return usage_report(r, {a});
}

}  // namespace

TEST_CASE("a report has a run's sums and a few lines for each array") {
  run_usage run = ten_seconds();
  run.all.bytes_read = 1536 * MiB;
  run.all.bytes_written = 100;
  run.all.read_wait_ns = 1'500'000'000;
  array_usage a = one("sky/a");
  a.counts.bytes_read = 1024 * MiB;
  a.counts.bytes_reread = 5 * MiB;
  a.counts.faults = 12;
  a.counts.hits = 500;
  a.counts.read_ahead_blocks = 505;
  a.counts.read_ahead_waste = 5;
  a.counts.evictions = 400;
  a.counts.read_wait_ns = 1'500'000'000;
  a.order.onward = 990;
  a.order.scattered = 10;
  CHECK(usage_report(run, {a}) ==
        "oocarray: report after 10.0 s, with 64 MiB of memory for blocks, 60 MiB of them in use\n"
        "  read 1.5 GiB, wrote 100 B, threads waited 1.50 s for reading, 0.00 s for writing\n"
        "  of these, algorithms read 512 MiB, and wrote 100 B, past the blocks\n"
        "  array 'sky/a', 512 MiB in blocks of 2.0 MiB\n"
        "    read 1.0 GiB (5.0 MiB of it again), wrote 0 B, waited 1.50 s for reading, 0.00 s for writing\n"
        "    blocks: 12 were waited for, 500 were in memory when they were touched; 505 were read ahead, 5 of them for "
        "nothing; 400 left\n"
        "    order: 99 % from block to block, 1 % in no order that was recognised\n");
}

TEST_CASE("a report says what would be faster") {
  const auto faster = [](const char* what) { return Catch::Contains(std::string("    faster: ") + what); };
  array_usage a = one("a");
  a.counts.bytes_read = 1024 * MiB;
  a.counts.bytes_reread = 512 * MiB;
  CHECK_THAT(page_of(a), faster("its blocks leave memory and come back: a budget of 576 MiB keeps all arrays"));
  CHECK_THAT(page_of(a), !Catch::Contains("overwrite()"));
  a.counts.bytes_written = 1024 * MiB;
  CHECK_THAT(page_of(a), Catch::Contains("overwrite() spares the reading of what is written anew\n"));
  a.wasteful = true;
  CHECK_THAT(page_of(a), faster("far more is read than touched"));
  a = one("a");
  a.counts.read_ahead_blocks = 100;
  a.counts.read_ahead_waste = 90;
  CHECK_THAT(page_of(a), faster("blocks are read ahead for nothing: advise(ooc::access_pattern::random)"));
  a = one("a");
  a.counts.bytes_read = 1000 * MiB;
  a.counts.read_wait_ns = 8'000'000'000;
  a.order.scattered = 9;
  CHECK_THAT(page_of(a), faster("its blocks are waited for, and come in no order"));
  a.order = {.onward = 9};
  CHECK_THAT(page_of(a),
             faster("its blocks are read ahead, and still waited for: the disk is the limit, at 100 MiB/s"));
  a.counts.write_wait_ns = 8'000'000'000;
  CHECK_THAT(page_of(a), faster("modified blocks are waited for"));
}

TEST_CASE("arrays that were waited for come first, and of many the others are counted") {
  std::vector<array_usage> all;
  for (int i = 0; i < 30; ++i) {
    array_usage a = one(("a" + std::to_string(i)).c_str());
    a.counts.read_wait_ns = static_cast<std::uint64_t>(i);
    join_usage(all, a);
  }
  const std::string page = usage_report(ten_seconds(), all);
  CHECK(page.find("array 'a29'") < page.find("array 'a28'"));
  CHECK_THAT(page, Catch::Contains("array 'a20'") && !Catch::Contains("array 'a19'") &&
                       Catch::Contains("  and 20 arrays more\n"));
}

TEST_CASE("an array that is opened again is one, and of very many names the late ones are") {
  std::vector<array_usage> all;
  array_usage a = one("a");
  a.counts.faults = 1;
  a.order.back = 2;
  for (int i = 0; i < 3; ++i) join_usage(all, a);
  REQUIRE(all.size() == 1);
  CHECK((all[0].counts.faults == 3 && all[0].order.back == 6));
  for (int i = 0; i < 1000; ++i) {
    a.name = "scratch" + std::to_string(i);
    join_usage(all, a);
  }
  CHECK(all.size() <= 201);
  std::uint64_t faults = 0;
  for (const array_usage& u : all) faults += u.counts.faults;
  CHECK(faults == 1003);
}

TEST_CASE("a line of progress has rates since the one before, and the place in the busiest array") {
  run_usage before = ten_seconds(), now = ten_seconds();
  now.seconds = 12;
  before.all.bytes_read = 100 * MiB;
  now.all.bytes_read = 300 * MiB;
  now.all.read_wait_ns = 1'000'000'000;
  array_usage a = one("a"), b = one("b"), idle = one("idle");
  idle.counts.bytes_read = 1000 * MiB;
  b.counts.bytes_read = 200 * MiB;
  b.place = 128 * MiB;
  CHECK(progress_line(before, now, {a, idle}, {a, b, idle}) ==
        "oocarray: 12 s, read 300 MiB (100 MiB/s), wrote 0 B (0 B/s), waiting 50 %; 'b' at 25 %");
}

TEST_CASE("the order of touches is that of the sweeps that are followed") {
  segment_history h;
  std::vector<block_index> wanted;
  for (block_index b = 0; b < 100; ++b) h.follow(b, 1000, 8, {}, wanted);
  CHECK(h.order().onward > 90);
  for (block_index b = 900; b > 800; --b) h.follow(b, 1000, 8, {}, wanted);
  CHECK(h.order().back > 90);
  CHECK(h.order().scattered < 15);
  segment_history of_grains;
  for (std::uint64_t place = 0; place < 100 * MiB; place += MiB)
    of_grains.follow_grains(place, 200 * MiB, 4096, 8, true, wanted);
  CHECK(of_grains.order().by_steps > 90);
}
