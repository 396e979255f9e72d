// Tests of what must be on stable storage before what else.
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <string>

#include "failing_disk.hpp"
#include "storage/object/range_locks.hpp"
#include "support/node_fixture.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr local_node_options plain{.workers = 4, .direct_io = false, .io_uring = false};

}  // namespace

TEST_CASE("no write goes out before the mark that there are unsynced ones is durable, whoever sets it") {
  for (const bool other_process : {false, true}) {
    CAPTURE(other_process);
    node_with_file f(2 * range_locks::region_bytes, {0, 1, 65536}, plain);
    const auto second = other_process ? open_local_node(f.folder.path(), plain) : f.node;
    const bytes old(2 * range_locks::region_bytes, std::byte{'o'});
    REQUIRE_FALSE(f.write(request::contiguous(0, old.size()), old.data()));
    REQUIRE_FALSE(sync(*f.node, f.shape));
    bytes b(old.size());
    REQUIRE_FALSE(testing::read(*second, f.shape, 0, request::contiguous(0, b.size()), b.data()));

    std::promise<void> go_on;
    std::shared_future<void> may_end(go_on.get_future());
    std::atomic<int> waiting{0};
    std::atomic<bool> durable{false}, early{false};
    const failing_disk disk([&](disk_call c, int fd, std::size_t) {
      if (c == disk_call::flush && is_named(fd, ".sum") && !durable) {
        ++waiting;
        may_end.wait();
        durable = true;
      }
      if (c == disk_call::write && is_named(fd, ".data") && !durable) early = true;
      return disk_answer{};
    });
    const auto write_chunk = [&](io_service& n, std::uint64_t chunk) {
      return started([&](completion done) {
        n.write(f.shape, 0, std::make_shared<const request>(request::contiguous(chunk * chunk_size, chunk_size)),
                old.data(), std::move(done));
      });
    };
    auto one = write_chunk(*f.node, 0);
    REQUIRE(soon([&] { return waiting > 0; }));
    // Processes take turns at one region of locks.
    auto two = write_chunk(*second, range_locks::region_bytes / chunk_size + 3);
    CHECK(never_within(std::chrono::milliseconds(300), [&] { return early.load() || has_ended(two); }));
    go_on.set_value();
    CHECK_FALSE(one.get());
    CHECK_FALSE(two.get());
  }
}

TEST_CASE("a sync does not end before another one has made durable what it finds to be synced") {
  for (const bool other_process : {false, true}) {
    CAPTURE(other_process);
    node_with_file f(8 * chunk_size, {0, 1, 65536}, plain);
    const auto second = other_process ? open_local_node(f.folder.path(), plain) : f.node;
    const bytes old(8 * chunk_size, std::byte{'o'});
    REQUIRE_FALSE(f.write(request::contiguous(0, old.size()), old.data()));
    REQUIRE_FALSE(sync(*f.node, f.shape));
    REQUIRE_FALSE(testing::write(*second, f.shape, 0, request::contiguous(10, 100), old.data()));

    std::promise<void> go_on;
    std::shared_future<void> may_end(go_on.get_future());
    std::atomic<bool> waiting{false};
    const failing_disk disk([&](disk_call c, int fd, std::size_t) {
      if (c != disk_call::flush || !is_named(fd, ".sum")) return disk_answer{};
      checksum_header h;
      if (open_sums(f.folder.path(), f.shape->id).read_header(h) == 0 && h.unsynced == boot_id{}) {
        waiting = true;
        may_end.wait();
      }
      return disk_answer{};
    });
    auto one = begin_sync(*f.node, f.shape);
    REQUIRE(soon([&] { return waiting.load(); }));
    auto two = begin_sync(*second, f.shape);
    CHECK(never_within(std::chrono::milliseconds(300), [&] { return has_ended(two); }));
    go_on.set_value();
    CHECK_FALSE(one.get());
    CHECK_FALSE(two.get());
  }
}
