// Jobs where memory is short.
#include "storage/base/job_threads.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <new>
#include <optional>
#include <thread>

#include "../node/failing_disk.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::testing;

TEST_CASE("a job runs once where post() has returned, and never where it has thrown") {
  const auto seed = static_cast<unsigned>(random_seed("job_threads"));
  for (unsigned round = 0; round < 200; ++round) {
    CAPTURE(round);
    std::atomic<int> ran{0}, posted{0};
    std::atomic<bool> go_on{false};
    {
      const scarce_memory little(3, seed + round);
      std::thread poster([&] {
        std::optional<has_memory> here(std::in_place);
        job_threads<> threads(4);
        threads.post([&go_on] { go_on.wait(false); });  // so that other threads are wanted
        here.reset();
        for (int i = 0; i < 20; ++i) {
          try {
            threads.post([&ran] { ++ran; });
            ++posted;
          } catch (const std::bad_alloc&) {
            // Then it must not run.
          }
        }
        go_on = true;
        go_on.notify_all();
      });
      poster.join();
    }
    REQUIRE(ran == posted);
  }
}
