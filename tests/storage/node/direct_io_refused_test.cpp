// File systems that take O_DIRECT when a file is opened, and refuse the transfer.
#include <fcntl.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <future>
#include <vector>

#include "failing_disk.hpp"
#include "support/node_fixture.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr local_node_options direct_io{.workers = 8, .io_uring = false};

/// Transfers of descriptors with O_DIRECT are refused, and counted.
class no_direct_transfers {
 public:
  no_direct_transfers()
      : disk_([this](disk_call c, int fd, std::size_t) {
          if ((c != disk_call::read && c != disk_call::write) || (::fcntl(fd, F_GETFL) & O_DIRECT) == 0)
            return disk_answer{};
          ++refused;
          return disk_answer{EINVAL, {}};
        }) {}

  std::atomic<int> refused{0};

 private:
  const failing_disk disk_;
};

/// Else a file system has no such descriptors, and nothing of this can happen.
bool takes_o_direct(const fs::path& folder) {
  const auto probe = folder / "probe";
  const storage::file_descriptor fd(::open(probe.c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600));
  if (!fd) WARN("not run: " << folder << " has no O_DIRECT");
  return static_cast<bool>(fd);
}

}  // namespace

TEST_CASE("an overwrite that was cut short is written over where the file system refuses direct transfers") {
  node_with_file f(2 * chunk_size, {0, 1, 65536}, direct_io);
  if (!takes_o_direct(f.folder.path())) return;
  aligned_bytes b(2 * chunk_size);
  std::fill_n(b.data(), b.size(), std::byte{'o'});
  REQUIRE_FALSE(f.write(request::contiguous(0, b.size()), b.data()));
  f.node.reset();
  checksum_entry e = entry_of(f.folder.path(), f.shape->id, 0);
  e.next ^= 1;  // it was to become something else
  set_entry(f.folder.path(), f.shape->id, 0, e);
  f.node = open_local_node(f.folder.path(), direct_io);
  std::fill_n(b.data(), b.size(), std::byte{'n'});
  {
    const no_direct_transfers disk;
    const failure written = f.write(request::contiguous(0, b.size()), b.data());
    INFO(written.what);
    CHECK_FALSE(written);
    CHECK(disk.refused > 0);
  }
  aligned_bytes found(b.size());
  REQUIRE_FALSE(f.read(request::contiguous(0, b.size()), found.data()));
  CHECK(std::equal(b.data(), b.data() + b.size(), found.data()));
}

TEST_CASE("the first transfers of a stripe object come at the same time where direct ones are refused") {
  node_with_file f(8 * chunk_size, {0, 1, 65536}, direct_io);
  if (!takes_o_direct(f.folder.path())) return;
  aligned_bytes b(8 * chunk_size);
  std::fill_n(b.data(), b.size(), std::byte{'o'});
  for (int round = 0; round < 100; ++round) {
    f.node = open_local_node(f.folder.path(), direct_io);
    const no_direct_transfers disk;
    std::vector<std::future<failure>> ends;
    for (std::uint64_t c = 0; c < 8; ++c)
      ends.push_back(started([&](completion done) {
        f.node->write(f.shape, 0, std::make_shared<const request>(request::contiguous(c * chunk_size, chunk_size)),
                      b.data() + c * chunk_size, std::move(done));
      }));
    for (auto& end : ends) {
      const failure e = end.get();
      INFO(e.what);
      REQUIRE_FALSE(e);
    }
    REQUIRE(disk.refused > 0);
  }
}
