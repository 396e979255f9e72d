#include "attack/lost_power.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>

#include "support/soon.hpp"

namespace ooc::attack {

namespace {

constexpr unsigned long shut_down = _IOR('X', 125, std::uint32_t);  // EXT4_IOC_SHUTDOWN
constexpr std::uint32_t without_log = 2;                            // EXT4_GOING_FLAGS_NOLOGFLUSH

}  // namespace

disk_with_power::disk_with_power(round& r) : r_(r), image_(r.folder() / "image"), disk_(r.folder() / "disk") {
  if (::geteuid() != 0) throw finding(verdict::not_run, "needs root, for loop devices");
  std::filesystem::create_directory(disk_);
  must_run({"truncate", "-s", "96M", image_.string()});
  must_run({"mkfs.ext4", "-q", "-F", image_.string()});
}

void disk_with_power::switch_on() {
  const auto file = r_.folder() / ("boot-" + std::to_string(++boot_));
  char id[64];
  std::snprintf(id, sizeof id, "%08x-0000-4000-8000-%012llx", static_cast<unsigned>(boot_),
                static_cast<unsigned long long>(r_.seed() & 0xffffffffffff));
  std::ofstream(file) << id << "\n";
  if (::mount(file.c_str(), "/proc/sys/kernel/random/boot_id", nullptr, MS_BIND, nullptr) != 0)
    throw finding(verdict::not_run, "another boot id cannot be mounted: " + std::generic_category().message(errno));
  must_run({"mount", "-o", "loop,commit=1", image_.string(), disk_.string()});
}

void disk_with_power::cut_power() {
  const int fd = ::open(disk_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::uint32_t how = without_log;
  const int failed = ::ioctl(fd, shut_down, &how);
  const int why = errno;
  ::close(fd);
  if (failed) throw finding(verdict::not_run, "EXT4_IOC_SHUTDOWN: " + std::generic_category().message(why));
}

void disk_with_power::unmount() {
  int failed = EBUSY;  // what a process that was killed had under way holds the file system for a moment
  testing::soon([&] {
    failed = ::umount(disk_.c_str()) == 0 ? 0 : errno;
    return failed != EBUSY;
  });
  if (failed != 0)
    throw finding(verdict::failed, "the image cannot be unmounted after everybody has ended: " +
                                       std::generic_category().message(failed));
}

}  // namespace ooc::attack
