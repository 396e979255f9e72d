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
  if (failed)
    throw finding(verdict::not_run, "EXT4_IOC_SHUTDOWN: " + std::generic_category().message(why));
}

/// The next boot's id, for this process and its children.
void boot_again(round& r, std::uint64_t boot) {
  const auto file = r.folder() / ("boot-" + std::to_string(boot));
  char id[64];
  std::snprintf(id, sizeof id, "%08x-0000-4000-8000-%012llx", static_cast<unsigned>(boot + 1),
                static_cast<unsigned long long>(r.seed() & 0xffffffffffff));
  std::ofstream(file) << id << "\n";
  if (::mount(file.c_str(), "/proc/sys/kernel/random/boot_id", nullptr, MS_BIND, nullptr) != 0)
    throw finding(verdict::not_run,
                  "another boot id cannot be mounted: " + std::generic_category().message(errno));
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
