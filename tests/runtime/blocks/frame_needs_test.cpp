#include "runtime/blocks/frame_needs.hpp"

#include <catch2/catch.hpp>

using ooc::detail::frame_needs;

TEST_CASE("a copy across two borders needs four blocks") {
  frame_needs n;
  CHECK(n.bytes() == 0);
  n.add(4096, false);
  CHECK(n.bytes() == 4 * 4096);
}

TEST_CASE("in a shared array the two blocks that are written have twins") {
  frame_needs n;
  n.add(4096, true);
  CHECK(n.bytes() == 6 * 4096);
}

TEST_CASE("the dearest pair of arrays counts, in any order") {
  frame_needs n;
  n.add(4096, true);
  n.add(65536, false);
  CHECK(n.bytes() == 4 * 65536);  // two blocks of 64 KiB cost more than small ones with twins
  frame_needs m;
  m.add(49152, true);
  m.add(65536, false);
  CHECK(m.bytes() == 2 * 65536 + 4 * 49152);
  frame_needs same;
  same.add(65536, false);
  same.add(49152, true);
  CHECK(same.bytes() == m.bytes());
}
