// A failed sync is final: the kernel tells each open file once, and nobody may take what is lost for durable later.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <set>

#include "failing_disk.hpp"
#include "storage/node/plain_file_node.hpp"
#include "support/node_fixture.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr local_node_options eight_workers{.workers = 8, .direct_io = false, .io_uring = false};
constexpr std::uint64_t synced_bytes = 8 * chunk_size;

/// The first flush of such a file fails.
class one_failed_flush {
 public:
  explicit one_failed_flush(std::string ending) : ending_(std::move(ending)) {}

  disk_answer operator()(disk_call c, int fd, std::size_t) {
    if (c != disk_call::flush || !is_named(fd, ending_) || failed_.exchange(true)) return {};
    return {EIO, {}};
  }

 private:
  const std::string ending_;
  std::atomic<bool> failed_{false};
};

/// Of two flushes of such a file, both under way if that can be, the first one fails.
class two_flushes {
 public:
  explicit two_flushes(std::string ending) : ending_(std::move(ending)) {}

  disk_answer operator()(disk_call c, int fd, std::size_t) {
    if (c != disk_call::flush || !is_named(fd, ending_)) return {};
    if (++begun_ > 1) return {};
    // Where they are done one after another no second one comes.
    (void)soon([&] { return begun_ > 1; }, std::chrono::milliseconds(500));
    return {EIO, {}};
  }

 private:
  const std::string ending_;
  std::atomic<int> begun_{0};
};

shape_ptr of_generation(const shape_ptr& f, std::uint64_t generation, std::uint64_t size) {
  auto next = std::make_shared<file_shape>(*f);
  next->generation = generation;
  next->size = size;
  return next;
}

}  // namespace

TEST_CASE("a flush that fails in an opening for writing, or in a resize, makes later syncs fail") {
  for (const bool resizes : {false, true}) {
    CAPTURE(resizes);
    node_with_file f(synced_bytes, {0, 1, 65536}, eight_workers);
    const bytes b(synced_bytes, std::byte{'o'});
    REQUIRE_FALSE(f.write(request::contiguous(0, b.size()), b.data()));
    REQUIRE_FALSE(sync(*f.node, f.shape));
    REQUIRE_FALSE(f.write(request::contiguous(10, 100), b.data()));
    const auto change = [&] {
      return resizes ? resize(*f.node, of_generation(f.shape, 0, 2 * synced_bytes), 0, synced_bytes)
                     : testing::advance(*f.node, of_generation(f.shape, 1, synced_bytes));
    };
    const auto disk = std::make_shared<one_failed_flush>(".sum");
    const failing_disk failing([disk](disk_call c, int fd, std::size_t n) { return (*disk)(c, fd, n); });
    CHECK(change().code == std::errc::io_error);
    const failure lost = sync(*f.node, f.shape);
    CHECK(lost.code == std::errc::io_error);
    CHECK_THAT(lost.what, Catch::Contains("may be lost; write it anew to another file"));
    CHECK_THAT(change().what, Catch::Contains("may be lost; write it anew to another file"));
  }
}

TEST_CASE("a rollback whose bits of sides cannot be flushed has failed for good") {
  temporary_folder folder;
  const auto node = open_local_node(folder.path(), eight_workers);
  auto shape = std::make_shared<file_shape>(*make_shape(1, {0, 1, 65536}, synced_bytes));
  shape->commits = true;
  REQUIRE_FALSE(create(*node, shape));
  const bytes b(synced_bytes, std::byte{'o'});
  const auto put = [&](const shape_ptr& f) {
    return testing::write(*node, f, 0, request::contiguous(0, b.size()), b.data());
  };
  REQUIRE_FALSE(put(shape));
  REQUIRE_FALSE(prepare(*node, shape));
  const auto committed = std::make_shared<file_shape>(*shape);
  committed->commit = 1;
  REQUIRE_FALSE(put(committed));
  const auto disk = std::make_shared<one_failed_flush>(".side");
  const failing_disk failing([disk](disk_call c, int fd, std::size_t n) { return (*disk)(c, fd, n); });
  CHECK(roll_back(*node, committed).code == std::errc::io_error);
  CHECK(roll_back(*node, committed).code == std::errc::io_error);
}

TEST_CASE("of two syncs at a time none succeeds where the kernel tells one of them of a failure") {
  node_with_file f(synced_bytes, {0, 1, 65536}, eight_workers);
  const bytes b(synced_bytes, std::byte{'o'});
  REQUIRE_FALSE(f.write(request::contiguous(0, b.size()), b.data()));
  const auto disk = std::make_shared<two_flushes>(".data");
  const failing_disk failing([disk](disk_call c, int fd, std::size_t n) { return (*disk)(c, fd, n); });
  auto one = begin_sync(*f.node, f.shape), two = begin_sync(*f.node, f.shape);
  CHECK(one.get().code == std::errc::io_error);
  CHECK(two.get().code == std::errc::io_error);
}

TEST_CASE("of two syncs of a file in place at a time none succeeds where the kernel tells one of them of a failure") {
  const temporary_folder folder;
  const fs::path path = folder.path() / "in_place";
  std::ofstream(path) << std::string(synced_bytes, 'o');
  auto file = std::make_shared<storage::plain_file>();
  file->path = path;
  file->file = storage::file_descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  file->writable = true;
  const auto node = make_plain_file_node(file, {.workers = 4, .io_uring = false});
  const auto shape = make_shape(1, {0, 1, synced_bytes}, synced_bytes);
  const auto disk = std::make_shared<two_flushes>("in_place");
  const failing_disk failing([disk](disk_call c, int fd, std::size_t n) { return (*disk)(c, fd, n); });
  auto one = begin_sync(*node, shape), two = begin_sync(*node, shape);
  CHECK(one.get().code == std::errc::io_error);
  CHECK(two.get().code == std::errc::io_error);
}

TEST_CASE("a sync that could not say durably that all is durable leaves it unsaid, and others that saw it are told") {
  node_with_file f(synced_bytes, {0, 1, 65536}, eight_workers);
  const auto second = open_local_node(f.folder.path(), eight_workers);  // as another process has it open
  const bytes b(synced_bytes, std::byte{'o'});
  REQUIRE_FALSE(f.write(request::contiguous(0, b.size()), b.data()));
  REQUIRE_FALSE(sync(*f.node, f.shape));
  REQUIRE_FALSE(testing::write(*second, f.shape, 0, request::contiguous(10, 100), b.data()));
  const auto read_header = [&] {
    checksum_header h;
    REQUIRE(open_sums(f.folder.path(), f.shape->id).read_header(h) == 0);
    return h;
  };

  {
    std::promise<void> go_on;
    std::shared_future<void> may_end(go_on.get_future());
    std::atomic<bool> waiting{false};
    std::mutex mutex;
    std::set<int> told;  // each descriptor once
    const failing_disk disk([&](disk_call c, int fd, std::size_t) {
      if (c != disk_call::flush || !is_named(fd, ".sum")) return disk_answer{};
      if (!waiting) {
        checksum_header h;
        if (open_sums(f.folder.path(), f.shape->id).read_header(h) != 0 || h.unsynced != boot_id{})
          return disk_answer{};
        waiting = true;
        may_end.wait();
      }
      const std::lock_guard lock(mutex);
      return told.insert(fd).second ? disk_answer{EIO, {}} : disk_answer{};
    });
    auto one = begin_sync(*f.node, f.shape);
    REQUIRE(soon([&] { return waiting.load(); }));
    auto two = begin_sync(*second, f.shape);
    CHECK(never_within(std::chrono::milliseconds(300), [&] { return has_ended(two); }));
    go_on.set_value();
    CHECK(one.get().code == std::errc::io_error);
    CHECK(two.get().code == std::errc::io_error);
  }
  // Who opens it later is not told, and finds that there is something to be made durable.
  CHECK(read_header().unsynced == this_boot());
  CHECK_FALSE(sync(*open_local_node(f.folder.path(), eight_workers), f.shape));
  CHECK(read_header().unsynced == boot_id{});
}
