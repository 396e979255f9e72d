#include "daemon/fair_share.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/random_seed.hpp"

using ooc::servers::client_number;
using ooc::servers::fair_share;
using claim = fair_share::claim;

namespace {

/// Takes `amount` again and again, as long as it is granted at once.
std::vector<claim> all_for(fair_share& share, client_number who, std::uint64_t amount) {
  std::vector<claim> held;
  while (claim c = share.try_take(who, amount)) held.push_back(std::move(c));
  return held;
}

}  // namespace

TEST_CASE("shares shrink as clients come, and something is left for the next one") {
  const auto share = std::make_shared<fair_share>(1000, 1);
  std::vector<std::vector<claim>> held;
  for (std::uint64_t user = 1; user <= 9; ++user) {
    held.push_back(all_for(*share, {user, user}, 1));
    CHECK(held.back().size() >= 1);
    CHECK(share->held() < 1000);
  }
  // The first has a third, as a process of a user; the next ones less and less.
  CHECK(held[0].size() == 334);
  for (std::size_t i = 1; i < held.size(); ++i) CHECK(held[i].size() < held[i - 1].size());
  CHECK(share->above_share({1, 1}));
  held.clear();
  CHECK(share->held() == 0);
}

TEST_CASE("the processes of one user share what the user may have") {
  const auto share = std::make_shared<fair_share>(1000);
  std::vector<std::vector<claim>> held;
  for (std::uint64_t process = 1; process <= 50; ++process) held.push_back(all_for(*share, {1, process}, 1));
  CHECK(share->held() <= 500 + 50);
  CHECK(all_for(*share, {2, 100}, 1).size() > 100);
}

TEST_CASE("who holds nothing gets something large while there is room outside the reserve") {
  const auto share = std::make_shared<fair_share>(800, 10);
  std::vector<claim> held;
  const auto take = [&](std::uint64_t user, std::uint64_t process) {
    if (claim c = share->try_take({user, process}, 100)) held.push_back(std::move(c));
  };
  for (std::uint64_t process = 1; process <= 20; ++process) take(1, process);
  CHECK(held.size() == 4);  // one user's
  for (std::uint64_t other = 50; other <= 60; ++other) take(other, other);
  CHECK(held.size() == 7);
  CHECK(share->try_take({1, 100}, 10));  // small
  CHECK_FALSE(share->try_take({1, 101}, 11));
}

TEST_CASE("what does not fit waits for its turn, and is served when others give back") {
  const auto share = std::make_shared<fair_share>(100, 100);
  claim all = share->take_now({1, 1}, 100);
  std::vector<int> order;
  std::vector<claim> held;
  const auto want = [&](std::uint64_t process, int n) {
    share->take({1, process}, 40, [&, n](claim c) {
      order.push_back(n);
      held.push_back(std::move(c));
    });
  };
  want(2, 20);
  want(2, 21);
  want(2, 22);
  want(3, 30);
  CHECK(share->short_of());
  CHECK(order.empty());
  all = {};
  CHECK(order == std::vector{20, 30});  // each of them, before the first again
  claim first = std::move(held[0]);
  first = {};
  CHECK(order.size() == 3);
  CHECK(order.back() == 21);
  // Whoever still waits is served into `held` while it is emptied.
  for (std::size_t i = 0; i < held.size(); ++i) const claim given_back = std::move(held[i]);
  CHECK(order.size() == 4);
}

TEST_CASE("more than the limit is to be had by one alone") {
  const auto share = std::make_shared<fair_share>(100);
  claim some = share->try_take({1, 1}, 1);
  bool served = false;
  claim large;
  share->take({2, 2}, 1000, [&](claim c) {
    served = true;
    large = std::move(c);
  });
  CHECK_FALSE(served);
  some = {};
  CHECK(served);
  CHECK_FALSE(share->try_take({3, 3}, 1));
  large.shrink(50);
  CHECK(share->held() == 50);
  CHECK(share->try_take({3, 3}, 1));
}

TEST_CASE("who gives back at once what it is given does not call itself") {
  const auto share = std::make_shared<fair_share>(100, 100);
  claim all = share->take_now({1, 1}, 100);
  int served = 0;
  for (std::uint64_t i = 0; i < 200000; ++i) share->take({2, i % 7}, 100, [&](claim) { ++served; });
  all = {};
  CHECK(served == 200000);
  CHECK(share->held() == 0);
}

TEST_CASE("many threads that take and give back leave nothing held, and nobody waiting") {
  const std::uint64_t seed = ooc::testing::random_seed("fair_share");
  const auto share = std::make_shared<fair_share>(1000, 10);
  std::atomic<int> granted{0};
  std::atomic<std::uint64_t> most{0};
  constexpr int each = 3000;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      for (int i = 0; i < each; ++i) {
        const client_number who{random() % 3, 1 + random() % 9};
        share->take({who.user, who.user * 100 + who.process}, 1 + random() % 400, [&](claim c) {
          ++granted;
          std::uint64_t now = share->held(), before = most;
          while (now > before && !most.compare_exchange_weak(before, now)) {
          }
          (void)c;  // given back at once, perhaps by another thread
        });
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(granted == 4 * each);
  CHECK(most <= 1000);
  CHECK(share->held() == 0);
  CHECK_FALSE(share->short_of());
}

TEST_CASE("who waited may hold something of the same share until it is forgotten") {
  // As the request of a session may own the session, and that a place or memory of its own.
  std::promise<void> over;
  std::future<void> ended = over.get_future();
  std::thread run([over = std::move(over)]() mutable {
    const auto share = std::make_shared<fair_share>(100, 1);
    {
      claim most = share->take_now({1, 1}, 100);
      auto own = std::make_shared<claim>(share->take_now({2, 2}, 5));
      share->take({2, 2}, 10, [own = std::move(own)](claim) {});
    }
    if (share->held() == 0) over.set_value();
  });
  const bool in_time = ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  if (in_time)
    run.join();
  else
    run.detach();  // it waits for itself
  REQUIRE(in_time);
  CHECK_NOTHROW(ended.get());
}
