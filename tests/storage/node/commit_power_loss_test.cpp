// Losses of power at any moment of writes, commits and rollbacks: of what was written since a file was last flushed,
// each sector is on the disk or is not.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>

#include "failing_disk.hpp"
#include "support/modelled_file.hpp"
#include "support/node_fixture.hpp"
#include "support/random_seed.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr file_id lost_file = 9;
constexpr std::size_t sector = 512;

std::string contents_of(const fs::path& path) {
  std::string bytes(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

/// The files of a stripe object as the disk has them, and as they would be after a loss of power at a call that
/// chance draws.
class unreliable_disk {
 public:
  unreliable_disk(const fs::path& folder, std::mt19937_64& random)
      : random_(random()),
        paths_{node_folder(folder).data(lost_file), node_folder(folder).sums(lost_file),
               node_folder(folder).sides(lost_file)} {
    for (const fs::path& p : paths_) durable_[p.string()] = contents_of(p);
  }

  /// The power goes at the call of that number from now on; what is lost is drawn then.
  void lose_power_at(std::uint64_t call) {
    const std::lock_guard lock(mutex_);
    calls_ = 0;
    at_ = call;
    lost_.clear();
  }
  bool power_is_lost() const {
    const std::lock_guard lock(mutex_);
    return !lost_.empty();
  }

  disk_answer operator()(disk_call c, int fd, std::size_t) {
    if (c != disk_call::write && c != disk_call::flush) return {};
    std::error_code e;
    const std::string name = fs::read_symlink("/proc/self/fd/" + std::to_string(fd), e).string();
    const std::lock_guard lock(mutex_);
    if (lost_.empty() && ++calls_ == at_) draw();
    if (const auto f = durable_.find(name); c == disk_call::flush && f != durable_.end()) f->second = contents_of(name);
    return {};
  }

  /// After the node has been closed: the machine comes up again.
  void come_up(const fs::path& folder) {
    for (const auto& [path, bytes] : lost_) {
      std::ofstream file(path, std::ios::binary | std::ios::trunc);
      file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      durable_[path] = bytes;
    }
    checksum_header h;
    REQUIRE(open_sums(folder, lost_file).read_header(h) == 0);
    if (h.unsynced == this_boot()) change_boot(folder, lost_file);
    durable_[paths_[1].string()] = contents_of(paths_[1]);
  }

 private:
  void draw() {
    for (const fs::path& p : paths_) {
      std::string now = contents_of(p);
      std::string& was = durable_[p.string()];
      // Of the file of sides the length is lost, too; that of the others is known to the header.
      if (p.extension() == ".side" && between(random_, 0, 1) == 0) now.resize(was.size());
      was.resize(now.size());
      const std::uint64_t kept = between(random_, 0, 2);  // none, all or half of the sectors
      for (std::size_t at = 0; at < now.size(); at += sector)
        if (kept == 0 || (kept == 2 && between(random_, 0, 1) == 0)) now.replace(at, sector, was, at, sector);
      lost_[p.string()] = now;
    }
  }

  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  const std::vector<fs::path> paths_;
  std::map<std::string, std::string> durable_, lost_;
  std::uint64_t calls_ = 0, at_ = 0;
};

}  // namespace

TEST_CASE("a loss of power at any moment leaves the last commit, and what came after is refused until a rollback") {
  std::mt19937_64 random(random_seed("commit_power"));
  constexpr std::uint64_t size = 20 << 20;  // bits of its regions lie in two sectors of a page
  const local_node_options plain{.workers = 2, .staging = 64 << 10, .direct_io = false, .io_uring = false};
  temporary_folder folder;
  auto file = std::make_shared<file_shape>(*make_shape(lost_file, {0, 1, 65536}, size));
  file->commits = true;
  shape_ptr shape = file;
  REQUIRE_FALSE(create(*open_local_node(folder.path(), plain), shape));
  unreliable_disk disk(folder.path(), random);
  const failing_disk watched([&](disk_call c, int fd, std::size_t n) { return disk(c, fd, n); });
  bytes now(size), committed(size), b(size);
  const request all = request::contiguous(0, size);
  const auto change_commit = [&](std::uint64_t commit) {
    auto next = std::make_shared<file_shape>(*shape);
    next->commit = commit;
    shape = next;
  };
  for (int round = 0; round < 15; ++round) {
    CAPTURE(round);
    auto node = open_local_node(folder.path(), plain);
    disk.lose_power_at(between(random, 1, 120));
    REQUIRE_FALSE(roll_back(*node, shape));
    now = committed;
    bool dirty = false;
    while (!disk.power_is_lost()) {
      const std::uint64_t what = between(random, 0, 9);
      if (what < 6) {
        const request r = random_request(random, size);
        const auto v = static_cast<int>(random() & 0xff);
        std::memset(b.data(), v, size);
        REQUIRE_FALSE(write(*node, shape, 0, r, b.data()));
        r.for_each_run([&](std::uint64_t at, std::uint64_t, std::uint64_t n) { std::memset(now.data() + at, v, n); });
        dirty = true;
      } else if (what < 7) {
        REQUIRE_FALSE(sync(*node, shape));
      } else if (what < 8) {
        REQUIRE_FALSE(roll_back(*node, shape));
        if (!disk.power_is_lost()) now = committed;
      } else {
        REQUIRE_FALSE(prepare(*node, shape));
        if (disk.power_is_lost() || between(random, 0, 3) == 0) continue;
        change_commit(shape->commit + 1);
        committed = now;
        dirty = false;
      }
    }
    node.reset();
    disk.come_up(folder.path());

    node = open_local_node(folder.path(), plain);
    auto reader = std::make_shared<file_shape>(*shape);
    reader->at_commit = true;
    const failure read_committed = read(*node, reader, 0, all, b.data());
    INFO(read_committed.what);
    REQUIRE_FALSE(read_committed);
    REQUIRE(b == committed);
    // What was synced and what was not may stand side by side: nobody sees that.
    const failure read_present = read(*node, shape, 0, all, b.data());
    if (read_present) {
      INFO(read_present.what);
      REQUIRE_THAT(read_present.what, Catch::Contains("the machine went down"));
      REQUIRE(write(*node, shape, 0, all, b.data()));
      REQUIRE(prepare(*node, shape));
      REQUIRE(sync(*node, shape));
    } else {
      REQUIRE((dirty || b == committed));
    }
    REQUIRE_FALSE(roll_back(*node, shape));
    REQUIRE_FALSE(read(*node, shape, 0, all, b.data()));
    REQUIRE(b == committed);
    const auto [failed, report] = verify(*node, shape);
    REQUIRE_FALSE(failed);
    REQUIRE(report.corrupt == 0);
  }
}

TEST_CASE("a loss of power amid a commit of what was synced before leaves the commit before it") {
  std::mt19937_64 random(random_seed("commit_synced_power"));
  constexpr std::uint64_t size = 20 << 20;
  const local_node_options plain{.workers = 2, .staging = 64 << 10, .direct_io = false, .io_uring = false};
  temporary_folder folder;
  auto file = std::make_shared<file_shape>(*make_shape(lost_file, {0, 1, 65536}, size));
  file->commits = true;
  REQUIRE_FALSE(create(*open_local_node(folder.path(), plain), file));
  unreliable_disk disk(folder.path(), random);
  const failing_disk watched([&](disk_call c, int fd, std::size_t n) { return disk(c, fd, n); });
  const request all = request::contiguous(0, size);
  bytes b(size, std::byte{'c'});
  {
    const auto node = open_local_node(folder.path(), plain);
    REQUIRE_FALSE(write(*node, file, 0, all, b.data()));
    REQUIRE_FALSE(prepare(*node, file));
    file->commit = 1;
  }
  const bytes committed = b;
  for (std::uint64_t call = 1; call <= 24; ++call) {
    CAPTURE(call);
    auto node = open_local_node(folder.path(), plain);
    b.assign(size, std::byte{'n'});
    REQUIRE_FALSE(write(*node, file, 0, request::contiguous(0, size / 2), b.data()));  // bits change in two sectors
    REQUIRE_FALSE(sync(*node, file));
    disk.lose_power_at(call);
    REQUIRE_FALSE(prepare(*node, file));
    if (!disk.power_is_lost()) {
      REQUIRE(call > 2);
      break;
    }
    node.reset();
    disk.come_up(folder.path());
    node = open_local_node(folder.path(), plain);
    const failure back = roll_back(*node, file);
    INFO(back.what);
    REQUIRE_FALSE(back);
    REQUIRE_FALSE(read(*node, file, 0, all, b.data()));
    REQUIRE(b == committed);
  }
}
