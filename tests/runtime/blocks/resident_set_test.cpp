#include "runtime/blocks/resident_set.hpp"

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "storage/base/page.hpp"
#include "support/small_space.hpp"

using namespace ooc::detail;
using ooc::testing::in_child;

namespace {

constexpr std::size_t block_bytes = 64 << 10;

/// Eight frames, and two segments of 32 blocks that the test moves in and out itself.
struct resident_blocks {
  resident_blocks() : set(8 * block_bytes), table(new block[64]()) {
    for (segment_state* made : {&s, &other}) {
      made->options.block_bytes = block_bytes;
      made->cls = &set.pool().class_for(block_bytes);
      made->reserved = 32 * block_bytes;
      made->base = sys::map(nullptr, made->reserved, PROT_NONE, sys::reserve_flags);
      REQUIRE(made->base != nullptr);
      made->table = table.get() + (made == &s ? 0 : 32);
      made->set_blocks(32, 0);
    }
  }
  ~resident_blocks() {
    for (segment_state* made : {&s, &other}) sys::unmap(made->base, made->reserved);
  }

  /// Brings block `b` in, as a load does whose block is touched at once; false where no frame is had.
  bool bring_in(block_index b, block_state as = block_state::ro) { return bring_in(s, b, as); }
  bool bring_in(segment_state& in, block_index b, block_state as = block_state::ro) {
    REQUIRE(in.at(b).try_take(block_state::out));
    frame* f = set.obtain(lock, in);
    if (f == nullptr) {
      in.at(b).publish(block_state::out);
      return false;
    }
    set.assign(f, in, b);
    std::memset(f->memory, static_cast<int>(b + 1), block_bytes);
    if (as != block_state::ready) set.map_in(f, as == block_state::rw);
    if (as == block_state::rw) set.mark_dirty(f);
    set.order().make_active(f);
    in.at(b).publish(as);
    return true;
  }
  frame* frame_of(block_index b) const { return s.frame_of(s.at(b)); }
  block_state state(block_index b) const { return s.at(b).state(); }
  std::uint64_t evictions() { return set.all_counts.evictions; }

  resident_set set;
  segment_state s, other;
  std::unique_ptr<block[]> table;
  resident_set::lock_type lock{set.mutex()};
};

}  // namespace

TEST_CASE("a block that is mapped has its bytes at its address, and takes them back to its frame") {
  resident_blocks r;
  REQUIRE(r.bring_in(5));
  CHECK(r.s.address(5)[block_bytes - 1] == std::byte{6});
  REQUIRE(r.s.at(5).try_take(block_state::ro));
  frame* f = r.frame_of(5);
  REQUIRE(r.set.map_out(f, block_access::read));
  CHECK(f->memory[0] == std::byte{6});
  f->memory[0] = std::byte{9};  // writable again
  r.s.at(5).publish(block_state::ready);
}

TEST_CASE("the clean block that was seen longest ago gives way, the last three never do") {
  resident_blocks r;
  for (block_index b = 0; b < 8; ++b) REQUIRE(r.bring_in(b));
  CHECK(r.s.resident_count == 8);
  REQUIRE(r.bring_in(8));
  CHECK(r.state(0) == block_state::out);
  CHECK(r.evictions() == 1);
  // Five become dirty, and the other three came last: nobody is left to give way.
  for (block_index b = 1; b < 6; ++b) r.set.mark_dirty(r.frame_of(b));
  CHECK_FALSE(r.bring_in(9));
  CHECK(r.state(9) == block_state::out);
  CHECK(r.s.dirty == 5);
  for (block_index b = 6; b < 9; ++b) CHECK(r.state(b) != block_state::out);
  // Once one is written it is taken.
  r.set.mark_clean(r.frame_of(3));
  CHECK(r.bring_in(9));
  CHECK(r.state(3) == block_state::out);
}

TEST_CASE("blocks age as others come in, and an inactive block that is touched stays longer") {
  resident_blocks r;
  for (block_index b = 0; b < 8; ++b) REQUIRE(r.bring_in(b));
  CHECK(r.set.order().inactive_size() > 0);
  REQUIRE(r.state(0) == block_state::inactive);
  REQUIRE(r.s.at(0).try_take(block_state::inactive));  // a soft fault
  r.set.set_access(r.frame_of(0), block_access::read);
  r.set.order().make_active(r.frame_of(0));
  r.s.at(0).publish(block_state::ro);
  CHECK(r.s.address(0)[0] == std::byte{1});
  REQUIRE(r.bring_in(8));
  CHECK(r.state(0) != block_state::out);
  CHECK(r.state(1) == block_state::out);
}

TEST_CASE("a block that somebody is busy with is passed over") {
  resident_blocks r;
  for (block_index b = 0; b < 8; ++b) REQUIRE(r.bring_in(b));
  const block_state was = r.state(0);
  REQUIRE(r.s.at(0).try_take(was));
  REQUIRE(r.bring_in(8));
  CHECK(r.state(0) == block_state::busy);
  CHECK(r.state(1) == block_state::out);
  r.s.at(0).publish(was);
}

TEST_CASE("a segment with a limit of its own evicts its own blocks, with memory left") {
  resident_blocks r;
  r.s.options.max_resident = 4;
  REQUIRE(r.bring_in(r.other, 0));  // seen longer ago than all of them
  for (block_index b = 0; b < 6; ++b) REQUIRE(r.bring_in(b));
  CHECK(r.s.resident_count == 4);
  CHECK(r.other.at(0).state() != block_state::out);
  CHECK(r.set.pool().used() == 5 * block_bytes);
  CHECK(r.state(0) == block_state::out);
  CHECK(r.state(1) == block_state::out);
}

TEST_CASE("bytes taken off the budget push clean blocks out, and dirty ones refuse") {
  resident_blocks r;
  for (block_index b = 0; b < 8; ++b) REQUIRE(r.bring_in(b, b < 5 ? block_state::ro : block_state::rw));
  CHECK(r.set.reserve(r.lock, 5 * block_bytes));
  CHECK(r.s.resident_count == 3);
  CHECK_FALSE(r.set.reserve(r.lock, block_bytes));
  for (block_index b = 5; b < 8; ++b) CHECK(r.state(b) != block_state::out);
  CHECK(r.s.dirty == 3);
}

TEST_CASE("active blocks stay while an inactive one can be written and taken instead") {
  resident_blocks r;
  for (block_index b = 0; b < 8; ++b) REQUIRE(r.bring_in(b, b < 4 ? block_state::rw : block_state::ro));
  CHECK_FALSE(r.bring_in(8));
  for (block_index b = 0; b < 4; ++b) {
    REQUIRE(r.state(b) == block_state::inactive);
    r.frame_of(b)->failed = true;  // the store does not take them
  }
  CHECK(r.bring_in(8));
  CHECK(r.state(4) == block_state::out);
}

TEST_CASE("a block is dirty once however often it is marked, and on record until that is asked for") {
  resident_blocks r;
  REQUIRE(r.bring_in(2, block_state::rw));
  r.set.mark_dirty(r.frame_of(2));
  CHECK(r.s.dirty == 1);
  r.set.mark_clean(r.frame_of(2));
  r.set.mark_clean(r.frame_of(2));
  CHECK(r.s.dirty == 0);
  CHECK(r.s.at(2).written == 1);
}

#ifndef NDEBUG
// Each breaks one invariant behind the back of what keeps it; such a process is not to go on.
TEST_CASE("where asserts are on, a broken invariant of the memory ends the process") {
  const std::vector<std::pair<const char*, void (*)(resident_blocks&)>> broken{
      {"none is broken", [](resident_blocks&) {}},
      {"a frame is counted twice", [](resident_blocks& r) { ++r.s.resident_count; }},
      {"a frame is another segment's", [](resident_blocks& r) { r.frame_of(1)->segment = &r.other; }},
      {"a block has the frame of another", [](resident_blocks& r) { r.s.at(1).frame = r.s.at(2).frame; }},
      {"a pinned frame may be evicted", [](resident_blocks& r) { r.frame_of(1)->pins = 1; }},
      {"a frame stands in a queue that does not know",
       [](resident_blocks& r) { r.frame_of(1)->list = frame_list::none; }},
      {"the order goes round", [](resident_blocks& r) { r.frame_of(2)->prev = r.frame_of(3); }},
      {"a frame in use is free", [](resident_blocks& r) { r.s.cls->free = r.frame_of(1); }},
      {"memory is counted that nobody has", [](resident_blocks& r) { r.s.cls->cost += ooc::page_bytes; }}};
  for (const auto& [what, breaks] : broken) {
    CAPTURE(what);
    const int status = in_child([&, breaks = breaks] {
      ::signal(SIGABRT, SIG_DFL);
      static_cast<void>(std::freopen("/dev/null", "w", stderr));
      auto* const r = new resident_blocks;  // which is not destroyed in that state
      for (block_index b = 1; b <= 3; ++b) r->bring_in(b);
      breaks(*r);
      r->set.pool().check_invariants();
      r->set.order().check_invariants();
      check_frames(r->s);
      return 0;
    });
    CHECK(status == (breaks == broken[0].second ? 0 : 128 + SIGABRT));
  }
}
#endif
