#include "runtime/blocks/replacement.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <vector>

using namespace ooc::detail;

namespace {

struct frames {
  std::array<frame, 8> all{};
  replacement order;

  /// Numbers of the frames in the order in which they were last seen.
  std::vector<long> seen() const {
    std::vector<long> numbers;
    for (const frame* f = order.oldest(); f; f = f->next) numbers.push_back(f - all.data());
    for (const frame* f = order.oldest_active(); f; f = f->next) numbers.push_back(f - all.data());
    return numbers;
  }
};

}  // namespace

TEST_CASE("inactive blocks come before active ones in the order of the last look") {
  frames f;
  for (frame& x : f.all) f.order.make_active(&x);
  for (const int n : {0, 1, 2}) f.order.make_inactive(&f.all[n]);
  CHECK(f.seen() == std::vector<long>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(f.order.newest_inactive() == &f.all[2]);
  CHECK(f.order.newest_active() == &f.all[7]);
  f.order.make_active(&f.all[1]);  // touched again
  CHECK(f.seen() == std::vector<long>{0, 2, 3, 4, 5, 6, 7, 1});
  CHECK(f.order.inactive_size() == 2);
}

TEST_CASE("ageing is wanted until half of the blocks are inactive") {
  frames f;
  CHECK_FALSE(f.order.wants_ageing());
  for (frame& x : f.all) f.order.make_active(&x);
  int aged = 0;
  for (; f.order.wants_ageing(); ++aged) f.order.make_inactive(f.order.oldest_active());
  CHECK(aged == 4);
  f.order.make_active(f.order.oldest());
  CHECK(f.order.wants_ageing());
}

TEST_CASE("a block that is forgotten is in neither queue, and may come back") {
  frames f;
  for (int n = 0; n < 3; ++n) f.order.make_active(&f.all[n]);
  f.order.make_inactive(&f.all[1]);
  f.order.forget(&f.all[0]);
  f.order.forget(&f.all[1]);
  f.order.forget(&f.all[1]);  // once more is nothing
  CHECK(f.all[1].list == frame_list::none);
  CHECK(f.seen() == std::vector<long>{2});
  CHECK(f.order.inactive_size() == 0);
  f.order.make_inactive(&f.all[0]);
  CHECK(f.seen() == std::vector<long>{0, 2});
}

TEST_CASE("a block that is made active again goes to the end, wherever it was") {
  frames f;
  for (int n = 0; n < 4; ++n) f.order.make_active(&f.all[n]);
  f.order.make_active(&f.all[3]);  // the last
  f.order.make_active(&f.all[0]);  // the first
  f.order.make_active(&f.all[2]);  // one between
  CHECK(f.seen() == std::vector<long>{1, 3, 0, 2});
}
