// The power fails: the store is on a file system of its own in an image file, and that file system
// is shut down in the middle (EXT4_IOC_SHUTDOWN without flushing its log: from then on nothing
// reaches the image, what was not written there is gone).  Mounted again, what was durable is
// there.
//
// The machine goes on, so its boot id is made another by a file mounted over it.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "attack/history.hpp"
#include "oocarray/file.hpp"
#include "storage/service/store_core.hpp"
#include "support/pauses.hpp"
#include "support/soon.hpp"

namespace ooc::attack {

namespace {

constexpr unsigned long shut_down = _IOR('X', 125, std::uint32_t);  // EXT4_IOC_SHUTDOWN
constexpr std::uint32_t without_log = 2;                            // EXT4_GOING_FLAGS_NOLOGFLUSH

/// What a process that was killed had under way holds the file system for a moment.
void unmount(const std::filesystem::path& disk) {
  int failed = EBUSY;
  testing::soon([&] {
    failed = ::umount(disk.c_str()) == 0 ? 0 : errno;
    return failed != EBUSY;
  });
  if (failed != 0)
    throw finding(verdict::failed, "the image cannot be unmounted after everybody has ended: " +
                                       std::generic_category().message(failed));
}

void mount_image(const std::filesystem::path& image, const std::filesystem::path& on) {
  must_run({"mount", "-o", "loop,commit=1", image.string(), on.string()});
}

void cut_power(const std::filesystem::path& mounted) {
  const int fd = ::open(mounted.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::uint32_t how = without_log;
  const int failed = ::ioctl(fd, shut_down, &how);
  const int why = errno;
  ::close(fd);
  if (failed) throw finding(verdict::not_run, "EXT4_IOC_SHUTDOWN: " + std::generic_category().message(why));
}

/// The next boot's id, for this process and its children.
void boot_again(round& r, std::uint64_t boot) {
  const auto file = r.folder() / ("boot-" + std::to_string(boot));
  char id[64];
  std::snprintf(id, sizeof id, "%08x-0000-4000-8000-%012llx", static_cast<unsigned>(boot + 1),
                static_cast<unsigned long long>(r.seed() & 0xffffffffffff));
  std::ofstream(file) << id << "\n";
  if (::mount(file.c_str(), "/proc/sys/kernel/random/boot_id", nullptr, MS_BIND, nullptr) != 0)
    throw finding(verdict::not_run, "another boot id cannot be mounted: " + std::generic_category().message(errno));
}

// Files that were synced once, and are removed or replaced by others that were.
constexpr int name_count = 12;

std::vector<std::byte> bytes_of(int file, bool replaced) {
  return std::vector<std::byte>(30'000 + 1000 * file, static_cast<std::byte>(2 * file + replaced + 1));
}

void make_file(const store& s, const std::string& path, const std::vector<std::byte>& bytes) {
  file f = file::create(s, path, {.striping = {0, 0, 4096}});
  f.write_at(0, bytes);
  f.sync();
}

void check_names(const store& s, std::uint64_t boot) {
  for (int i = 0; i < name_count; ++i) {
    const std::string path = "name" + std::to_string(boot) + "-" + std::to_string(i);
    if (!s.exists(path)) {
      if (i % 3 == 0) throw finding(verdict::lost, path + ", which nobody has removed, is gone");
      if (i % 3 == 1) throw finding(verdict::lost, path + ", which was replaced in one step, is gone");
      continue;
    }
    try {
      const file f = file::open(s, path);
      std::vector<std::byte> bytes(f.size());
      f.read_at(0, bytes);
      if (bytes != bytes_of(i, false) && (i % 3 != 1 || bytes != bytes_of(i, true)))
        throw finding(verdict::wrong, path + " is there again with other bytes than it ever had");
    } catch (const error& e) {
      throw finding(verdict::lost, path + " is there again without its bytes: " + e.what());
    }
  }
}

/// A file that was removed, or replaced, is there again whole, or it is gone.
void lose_names(round& r, const std::filesystem::path& image, const std::filesystem::path& disk, const std::string& url,
                std::uint64_t boot) {
  boot_again(r, boot);
  mount_image(image, disk);
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) throw finding(verdict::not_run, "no pipe");
  const std::string prefix = "name" + std::to_string(boot) + "-";
  const pid_t remover = r.in_child([&] {
    const store s = store::open(url);
    for (int i = 0; i < name_count; ++i) {
      make_file(s, prefix + std::to_string(i), bytes_of(i, false));
      if (i % 3 == 1) make_file(s, prefix + "new" + std::to_string(i), bytes_of(i, true));
    }
    for (int i = 0; i < name_count; ++i) {
      if (i % 3 == 1) s.core()->replace(prefix + "new" + std::to_string(i), prefix + std::to_string(i));
      if (i % 3 == 2) s.remove(prefix + std::to_string(i));
    }
    if (::write(ready[1], "+", 1) != 1) return 1;
    ::pause();
    return 0;
  });
  ::close(ready[1]);
  char one = 0;
  if (::read(ready[0], &one, 1) != 1) r.wait_for(remover);
  ::close(ready[0]);
  // The file system writes its own log every second, the database's only when it is told to.
  testing::random_pause(std::chrono::milliseconds(r.between(0, 2500)));
  ::kill(remover, SIGSTOP);
  cut_power(disk);
  ::kill(remover, SIGKILL);
  r.wait_for(remover);
  unmount(disk);
  boot_again(r, boot + 1);
  mount_image(image, disk);
  const pid_t checker = r.in_child([&] {
    check_names(store::open(url), boot);
    return 0;
  });
  if (const int s = r.wait_for(checker, std::chrono::seconds(60), "the checker"))
    throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
  verify_store(url, true);
  unmount(disk);
}

}  // namespace

void power_loss(round& r) {
  if (::geteuid() != 0) throw finding(verdict::not_run, "needs root, for loop devices");
  const auto image = r.folder() / "image", disk = r.folder() / "disk";
  std::filesystem::create_directory(disk);
  must_run({"truncate", "-s", "96M", image.string()});
  must_run({"mkfs.ext4", "-q", "-F", image.string()});

  const std::string url = "local:" + (disk / "store").string();
  for (std::uint64_t boot = 0, boots = r.between(1, 3); boot < boots; ++boot) {
    if (r.one_in(3)) {
      lose_names(r, image, disk, url, boot);
      continue;
    }
    boot_again(r, boot);
    mount_image(image, disk);
    const history h(r.dice()(), r.between(1000, 30000), 80, true);
    writer_options o = draw_writer(r, url, 1);
    o.path = "history" + std::to_string(boot);
    report_pipe told;
    const pid_t writer = r.in_child([&] {
      write_history(h, o, told, r.counts());
      return 0;
    });
    told.writer_started();
    std::uint64_t reached = told.wait_for(r.between(0, 40), std::chrono::seconds(40));
    testing::random_pause(std::chrono::microseconds(r.between(0, 20'000)));
    // Stopped before the power goes, so that it sees no error, and what it told was before that.
    ::kill(writer, SIGSTOP);
    cut_power(disk);
    ::kill(writer, SIGKILL);
    r.wait_for(writer);
    reached = told.last();
    unmount(disk);
    if (reached == 0) continue;

    std::uint64_t kept = reached;
    while (kept > 0 && !h.writes(kept).durable) --kept;
    std::cout << "power lost after epoch " << reached << ", durable " << kept << std::endl;
    boot_again(r, boot + 1);
    mount_image(image, disk);
    const pid_t checker = r.in_child([&] {
      check_history(h, o, {kept, reached + 1}, r);
      return 0;
    });
    if (const int s = r.wait_for(checker, std::chrono::seconds(60), "the checker"))
      throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
    verify_store(url, true);
    unmount(disk);
  }
}

}  // namespace ooc::attack
