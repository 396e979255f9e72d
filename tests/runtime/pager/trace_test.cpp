// Tests of what a runtime records of its blocks where OOC_TRACE is in the environment.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"
#include "runtime/policy/event_trace.hpp"
#include "support/memory_source.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;

namespace {

const auto traced_block = static_cast<std::uint32_t>(16 * grain_bytes);

class recorded {
 public:
  recorded() : file_((dir_.path() / "trace").string()) { ::setenv("OOC_TRACE", file_.c_str(), 1); }
  ~recorded() { ::unsetenv("OOC_TRACE"); }
  std::vector<trace_event> events() const { return read_trace(file_); }

 private:
  testing::temporary_folder dir_;
  std::string file_;
};

}  // namespace

TEST_CASE("a recording tells as many misses, evictions and stores as the runtime counts") {
  const recorded to;
  runtime_stats n;
  {
    runtime rt({.memory = 16 * traced_block, .block = traced_block});
    memory_source source(64, traced_block);
    {
      segment s(rt.pager(), {.name = "a", .block_bytes = traced_block, .blocks = 64, .row_bytes = 4096}, source);
      auto* const bytes = reinterpret_cast<volatile char*>(s.base());
      std::uint64_t at = 7;
      for (int i = 0; i < 400; ++i, at = at * 29 % (64 * traced_block)) {
        (void)bytes[at];
        if (i % 3 == 0) bytes[at] = 1;
      }
      for (std::size_t b = 0; b < 64; ++b) (void)bytes[b * traced_block];
      CHECK_FALSE(s.writeback());
    }
    n = rt.stats();  // nothing arrives any more
  }
  std::map<traced, std::uint64_t> count;
  std::optional<trace_event> opened, shape;
  for (const trace_event& e : to.events()) {
    ++count[e.what];
    if (e.what == traced::opened) opened = e;
    if (e.what == traced::shape) shape = e;
  }
  CHECK(count[traced::began] == 1);
  CHECK(count[traced::lost] == 0);
  CHECK(count[traced::missed] == n.faults);
  CHECK(count[traced::evicted] == n.evictions);
  CHECK(count[traced::first_write] == n.write_faults);
  CHECK(count[traced::arrived] == n.read_ahead_blocks);
  CHECK(count[traced::written_back] * traced_block == n.bytes_written);
  CHECK(count[traced::found] >= n.soft_faults);
  CHECK(count[traced::ran] > 0);
  CHECK(count[traced::closed] == 1);
  REQUIRE((opened && shape));
  CHECK(*opened == trace_event{64 * traced_block, traced_block, 1, traced::opened});
  CHECK(shape->block == 4096);
}

TEST_CASE("a recording tells grains by themselves, and those that were mapped ahead") {
  const recorded to;
  const std::size_t grains_in_block = traced_block / grain_bytes, blocks = 64;
  {
    runtime rt({.memory = 16 * traced_block, .block = traced_block});
    memory_source source(blocks, traced_block);
    const auto grains = source.in_blocks_of(grain_bytes);
    segment s(rt.pager(),
              {.name = "a", .block_bytes = traced_block, .blocks = blocks, .grains = grains.get(), .element_bytes = 8},
              source);
    auto* const bytes = reinterpret_cast<volatile char*>(s.base());
    for (std::size_t column = 0; column < 4; ++column)
      for (std::size_t row = 0; row < blocks * grains_in_block / 3; ++row)
        (void)bytes[row * 3 * grain_bytes + column * 8];
  }
  std::uint64_t missed = 0, in_grains = 0, others = 0;
  std::uint16_t of_grains = 0;
  for (const trace_event& e : to.events()) {
    if (e.what == traced::opened && e.detail == 1) of_grains = e.segment;
    if (e.what == traced::missed) ++(e.segment == of_grains ? missed : others);
    if (e.what == traced::in_grains) ++in_grains;
  }
  if (of_grains == 0) return;  // the kernel has no userfaultfd for the process
  CHECK(missed > 0);
  CHECK(in_grains > 0);
  CHECK(missed > others);
}

TEST_CASE("a runtime whose recording has no place is not made") {
  ::setenv("OOC_TRACE", "/nowhere/at/all", 1);
  CHECK_THROWS_AS(runtime({.memory = 16 * traced_block}), usage_error);
  ::unsetenv("OOC_TRACE");
}
