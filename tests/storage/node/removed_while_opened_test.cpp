// A removal and the first opening of a stripe object at the same time.
#include <fcntl.h>

#include <atomic>
#include <catch2/catch.hpp>

#include "failing_disk.hpp"
#include "support/node_fixture.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

/// Somebody has locked the whole stripe object, or it is gone by now.
bool is_locked_or_gone(const fs::path& sums) {
  const storage::file_descriptor fd(::open(sums.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return true;
  struct flock l {};
  l.l_type = F_WRLCK;
  l.l_whence = SEEK_SET;
  l.l_len = 1;
  return ::fcntl(fd.get(), F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

}  // namespace

TEST_CASE("a stripe object is removed while its first opening after a loss of power is about to recover it") {
  for (const bool lost_its_size : {false, true}) {
    CAPTURE(lost_its_size);
    constexpr std::uint64_t size = 8 * chunk_size;
    node_with_file f(size, {0, 1, 65536}, {.workers = 4, .direct_io = false, .io_uring = false});
    const bytes old(size, std::byte{'o'});
    REQUIRE_FALSE(f.write(request::contiguous(0, size), old.data()));
    REQUIRE_FALSE(sync(*f.node, f.shape));
    REQUIRE_FALSE(f.write(request::contiguous(10, 100), old.data()));
    f.node.reset();
    if (lost_its_size) {
      const checksum_file sums = open_sums(f.folder.path(), f.shape->id);
      checksum_header h;
      REQUIRE(sums.read_header(h) == 0);
      h.unsynced = {};
      h.flags |= checksum_header::power_lost;
      h.chunks -= 1;
      REQUIRE(sums.write_header(h) == 0);
    } else {
      change_boot(f.folder.path(), f.shape->id);
    }

    std::promise<void> go_on;
    std::shared_future<void> may_read(go_on.get_future());
    std::atomic<bool> opening{false};
    const failing_disk disk([&](disk_call c, int fd, std::size_t) {
      if (c == disk_call::read && is_named(fd, ".sum") && !opening.exchange(true)) may_read.wait();
      return disk_answer{};
    });
    f.node = open_local_node(f.folder.path(), {.workers = 4, .direct_io = false, .io_uring = false});
    bytes b(size);
    const auto reading = started([&](completion done) {
      f.node->read(f.shape, 0, std::make_shared<const request>(request::contiguous(0, size)), b.data(),
                   std::move(done));
    });
    REQUIRE(soon([&] { return opening.load(); }));
    auto gone = std::make_shared<file_shape>();
    gone->id = f.shape->id;
    auto removal = started([&](completion done) { f.node->remove(gone, std::move(done)); });
    CHECK(soon([&] { return is_locked_or_gone(node_folder(f.folder.path()).sums(gone->id)); }));
    go_on.set_value();
    CHECK(soon([&] { return has_ended(reading) && has_ended(removal); }));
    CHECK_FALSE(removal.get());
    CHECK(list(*f.node).second.empty());
  }
}
