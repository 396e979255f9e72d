#include "storage/base/file_access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "storage/base/file_descriptor.hpp"

namespace ooc::storage {

namespace {

constexpr std::uint32_t keep = ~std::uint32_t{0};
constexpr std::uint32_t permission_bits = 07777;

// Where the group is not what it should be, it may do what everybody may.
std::uint32_t for_another_group(std::uint32_t mode) { return (mode & ~std::uint32_t{070}) | ((mode & 07) << 3 & mode); }

// `look`, `chmod` and `chown` are those of an open file or of a path.
template <class Stat, class Chmod, class Chown>
int set_with(Stat&& look, Chmod&& chmod, Chown&& chown, std::uint32_t mode, std::uint32_t owner, std::uint32_t group) {
  struct stat st {};
  if (look(st) != 0) return errno;
  std::uint32_t now = st.st_mode & permission_bits;
  const bool other_owner = owner != keep && owner != st.st_uid;
  const bool other_group = group != keep && group != st.st_gid;
  if (other_owner || other_group) {
    if ((now & mode) != now) {
      if (chmod(now & mode) != 0) return errno;
      now &= mode;
    }
    // Whoever may not give a file away keeps it; a member may still pass it to his group.
    const bool given = other_owner && chown(owner, other_group ? group : keep) == 0;
    if (!given && other_group && chown(keep, group) != 0) {
      if (errno != EPERM) return errno;
      mode = for_another_group(mode);
    }
  }
  // Also where it has the mode already: who may not change it must be told.
  return chmod(mode) == 0 ? 0 : errno;
}

}  // namespace

std::uint32_t process_umask() {
  // umask(2) can only be asked by changing it, for all threads.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint32_t mask = 0;
    if (word == "Umask:" && status >> std::oct >> mask) return mask;
  }
  return 077;
}

std::vector<std::uint32_t> further_groups() {
  std::vector<std::uint32_t> all;
  const int n = ::getgroups(0, nullptr);
  if (n <= 0) return all;
  std::vector<gid_t> groups(static_cast<std::size_t>(n));
  const int got = ::getgroups(n, groups.data());
  for (int i = 0; i < got; ++i) all.push_back(groups[static_cast<std::size_t>(i)]);
  return all;
}

std::error_code forbidden(const std::filesystem::path& path, int access) {
  if (::faccessat(AT_FDCWD, path.c_str(), access, AT_EACCESS) == 0) return {};
  return {errno, std::generic_category()};
}

int set_access(const std::filesystem::path& path, std::uint32_t mode, std::uint32_t owner, std::uint32_t group) {
  // Never through a symbolic link: whoever may write the folder could have put one there.
  return set_with(
      [&](struct stat& st) { return ::lstat(path.c_str(), &st); },
      [&](std::uint32_t m) { return ::fchmodat(AT_FDCWD, path.c_str(), static_cast<mode_t>(m), AT_SYMLINK_NOFOLLOW); },
      [&](std::uint32_t o, std::uint32_t g) { return ::lchown(path.c_str(), o, g); }, mode, owner, group);
}

int set_access(int fd, std::uint32_t mode, std::uint32_t owner, std::uint32_t group) {
  return set_with([&](struct stat& st) { return ::fstat(fd, &st); },
                  [&](std::uint32_t m) { return ::fchmod(fd, static_cast<mode_t>(m)); },
                  [&](std::uint32_t o, std::uint32_t g) { return ::fchown(fd, o, g); }, mode, owner, group);
}

int make_folder_like(const std::filesystem::path& folder, const std::filesystem::path& like) {
  struct stat st {};
  if (::stat(folder.c_str(), &st) == 0) return 0;
  if (::stat(like.c_str(), &st) != 0) return errno;
  // Another user must not find it while it is still closed to him.
  std::string fresh = folder.string() + ".new-XXXXXX";
  if (::mkdtemp(fresh.data()) == nullptr) return errno;
  int error = set_access(fresh, st.st_mode & permission_bits, keep, st.st_gid);
  if (error == 0 && ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_NOREPLACE) != 0)
    error = errno;
  if (error == EINVAL)  // a file system without that
    error = ::rename(fresh.c_str(), folder.c_str()) == 0 ? 0 : errno;
  if (error == 0) return 0;
  ::rmdir(fresh.c_str());
  return error == EEXIST || error == ENOTEMPTY ? 0 : error;
}

}  // namespace ooc::storage
