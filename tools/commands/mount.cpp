// ooc mount and ooc umount.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>

#include "base/command.hpp"
#include "commands/disks.hpp"
#include "mount/session.hpp"
#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::tool {

namespace {

/// The process that goes on serving in the background, and the one that waits until it does.
class daemon_start {
 public:
  /// Returns in the child alone; the parent ends with the child's word, or its own where the child dies without one.
  daemon_start() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw io_error({errno, std::generic_category()}, "a pipe");
    const pid_t child = ::fork();
    if (child < 0) throw io_error({errno, std::generic_category()}, "going to the background");
    if (child != 0) {
      ::close(ends[1]);
      char well = 0;
      ssize_t n = 0;
      do n = ::read(ends[0], &well, 1);
      while (n < 0 && errno == EINTR);
      if (n == 1) ::_exit(success);
      int status = 0;
      ::waitpid(child, &status, 0);
      ::_exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : failed);
    }
    ::close(ends[0]);
    well_ = storage::file_descriptor(ends[1]);
    ::setsid();
  }
  void is_well() {
    (void)!::chdir("/");
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
    ::close(null);
    (void)!::write(well_.get(), "", 1);
    well_ = {};
  }

 private:
  storage::file_descriptor well_;
};

// Options that mount(8) and fstab hand on and that mean nothing to this program.
const std::set<std::string> for_others{"rw",     "defaults", "auto",    "noauto", "nofail", "user",
                                       "nouser", "users",    "_netdev", "exec",   "suid",   "dev"};
const std::set<std::string> for_fuse{"allow_other", "allow_root", "auto_unmount", "noexec", "nosuid",
                                     "nodev",       "noatime",    "sync",         "dirsync"};

void take_options(const std::string& list, mount::mount_options& o, std::string& key) {
  std::istringstream in(list);
  for (std::string one; std::getline(in, one, ',');) {
    if (one.empty() || for_others.count(one) != 0 || one.starts_with("x-")) continue;
    if (one == "ro")
      o.read_only = true;
    else if (one == "single")
      o.single = true;
    else if (one.starts_with("key="))
      key = one.substr(4);
    else if (for_fuse.count(one) != 0)
      o.fuse.push_back(one);
    else
      throw usage_mistake("-o " + one +
                          " is unknown; there are ro, single, key=FILE, allow_other, "
                          "allow_root, auto_unmount, noexec, nosuid, nodev, noatime, sync and dirsync");
  }
}

int run_mount(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("options,o", po::value<std::vector<std::string>>()->value_name("OPTION,..."),
                "ro; single: no other program uses the store, so the kernel caches writes and names; "
                "key=FILE; allow_other, allow_root, auto_unmount, noexec, nosuid, nodev, noatime: as of "
                "mount.fuse3(8)");
  line.option()("foreground,f", "stay there; otherwise the command ends when the folder shows the store");
  line.positional("URL");
  line.positional("FOLDER");
  if (!line.parse(arguments)) return success;
  mount::mount_options o;
  o.url = line.required("URL");
  std::string key;
  for (const std::string& list : line.texts("options")) take_options(list, o, key);
  o.folder = std::filesystem::absolute(line.required("FOLDER")).string();
  std::error_code ec;
  if (!std::filesystem::is_directory(o.folder, ec))
    throw usage_mistake("'" + o.folder + "' is not a folder: make it first");
  if (!key.empty()) key = std::filesystem::absolute(key).string();
  std::optional<daemon_start> daemon;
  if (!line.has("foreground")) daemon.emplace();
  // After the fork: a store belongs to the process that has opened it.
  store_options with;
  with.create = false;
  with.key = key;
  const ooc::store store = ooc::store::open(o.url, with);
  const bool served = o.url.starts_with("ooc:");
  o.ask_space = [&store, &o, &key, served] {
    const disk_sum s = sum_of(served ? served_disks(o.url, key) : own_disks(store));
    return mount::space{s.bytes, s.free};
  };
  mount::serve(store, o, [&] {
    if (daemon) daemon->is_well();
  });
  return success;
}

int run_umount(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("lazy,l", "take it out of sight at once, and end when nothing uses it any more");
  line.positional("FOLDER");
  if (!line.parse(arguments)) return success;
  const std::string folder = line.required("FOLDER");
  const bool lazy = line.has("lazy");
  if (::geteuid() == 0) {
    if (::umount2(folder.c_str(), lazy ? MNT_DETACH : 0) == 0) return success;
    const int why = errno;
    throw io_error({why, std::generic_category()},
                   "'" + folder + "' cannot be unmounted" +
                       (why == EBUSY ? " while programs use it (`fuser -m` shows them; -l does not wait)" : ""));
  }
  ::execlp("fusermount3", "fusermount3", "-u", lazy ? "-z" : "--", folder.c_str(), nullptr);
  throw io_error({errno, std::generic_category()}, "fusermount3 (Debian: fuse3) cannot be run");
}

}  // namespace

const command mount_store{"mount", "mount [options] URL FOLDER", "Shows a store as a folder, for every program.",
                          run_mount};
const command umount_store{"umount", "umount [options] FOLDER", "Ends what `ooc mount` began.", run_umount};

}  // namespace ooc::tool
