// Tests of what a node does with the writes of those whose claims to write a file have ended.
#include <catch2/catch.hpp>
#include <string>

#include "support/node_fixture.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

shape_ptr opened(const shape_ptr& f, std::uint64_t generation, write_claim claim) {
  auto s = std::make_shared<file_shape>(*f);
  s->generation = generation;
  s->claim = claim;
  return s;
}

struct claimed_file : node_with_file {
  claimed_file() : node_with_file(8192, {0, 1, 4096}) {}

  /// Opens it for writing, the n-th time.
  shape_ptr open(std::uint64_t n, bool alone) {
    const auto s = opened(shape, n, {n, alone});
    REQUIRE_FALSE(testing::advance(*node, s));
    return s;
  }
  bool may_write(const shape_ptr& as) {
    const bytes some(4096);
    const failure f = testing::write(*node, as, 0, request::contiguous(0, 4096), some.data());
    if (f) {
      INFO(f.what);
      CHECK(f.code == std::error_code(ESTALE, std::generic_category()));
      CHECK(f.what.find("'plate/a'") != std::string::npos);
    }
    return !f;
  }
};

}  // namespace

TEST_CASE("a claim to write alone ends those before it; one to write together ends those to write alone") {
  claimed_file f;
  const auto alone = f.open(1, true);
  CHECK(f.may_write(alone));
  const auto together = f.open(2, false);
  CHECK_FALSE(f.may_write(alone));
  CHECK(f.may_write(together));
  const auto beside = f.open(3, false);
  CHECK(f.may_write(together));
  CHECK(f.may_write(beside));
  const auto last = f.open(4, true);
  CHECK_FALSE(f.may_write(together));
  CHECK_FALSE(f.may_write(beside));
  CHECK(f.may_write(last));
}

TEST_CASE("who opens a file without a claim ends nobody's, and is not kept from writing") {
  claimed_file f;
  const auto alone = f.open(1, true);
  const auto plain = opened(f.shape, 2, {});
  REQUIRE_FALSE(testing::advance(*f.node, plain));
  CHECK(f.may_write(alone));
  f.open(3, true);
  CHECK(f.may_write(plain));
}

TEST_CASE("a claim that has ended stays ended when the node is opened again, and changes no size") {
  claimed_file f;
  const auto lost = f.open(1, true);
  f.open(2, true);
  f.node.reset();
  f.node = open_local_node(f.folder.path());
  CHECK_FALSE(f.may_write(lost));
  auto longer = std::make_shared<file_shape>(*lost);
  longer->size = 1 << 20;
  longer->generation = 2;
  CHECK(testing::resize(*f.node, longer, 0, 8192).code == std::error_code(ESTALE, std::generic_category()));
  CHECK(testing::advance(*f.node, opened(f.shape, 3, lost->claim)).code ==
        std::error_code(ESTALE, std::generic_category()));
}

TEST_CASE("a claim ends for who has the stripe object open when another process ends it") {
  claimed_file f;
  const auto lost = f.open(1, true);
  CHECK(f.may_write(lost));
  const auto other = open_local_node(f.folder.path());
  REQUIRE_FALSE(testing::advance(*other, opened(f.shape, 2, {2, true})));
  CHECK_FALSE(f.may_write(lost));
}
