#include "storage/chunked/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "storage/base/file_descriptor.hpp"
#include "storage/base/whole_transfer.hpp"

namespace ooc::storage {
namespace {

std::error_code last_error() { return {errno, std::generic_category()}; }

/// Waits for the lock of the file; where the file system has none, nobody is kept apart.
void lock(int fd) {
  struct flock l {};
  l.l_type = F_WRLCK;
  l.l_whence = SEEK_SET;
  while (::fcntl(fd, F_OFD_SETLKW, &l) != 0 && errno == EINTR) {
  }
}

/// Those of a group that is another one are what everybody has.
mode_t for_other_group(mode_t mode) { return mode & (0707 | (mode & 007) << 3); }

/// Owner, group and mode, as far as this process may say so: who may write the file, but may not give it away, keeps
/// it.  `beside`: added to the mode.
void take_rights(int fd, const struct stat& of, mode_t beside) {
  struct stat now {};
  if (::fstat(fd, &now) != 0) return;
  const bool given = (now.st_uid == of.st_uid && now.st_gid == of.st_gid) || ::fchown(fd, of.st_uid, of.st_gid) == 0 ||
                     now.st_gid == of.st_gid || ::fchown(fd, static_cast<uid_t>(-1), of.st_gid) == 0;
  const mode_t mode = (given ? of.st_mode : for_other_group(of.st_mode)) | beside;
  if ((now.st_mode & 07777) != mode) static_cast<void>(::fchmod(fd, mode));
}

/// The file with this name, empty and locked.
std::error_code open_passing(const std::string& name, mode_t mode, file_descriptor& file) {
  for (;;) {
    file = file_descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!file) return last_error();
    lock(file.get());
    struct stat opened {
    }, named{};
    if (::fstat(file.get(), &opened) != 0) return last_error();
    // Whoever had the lock before may have given the file its last name.
    if (::stat(name.c_str(), &named) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev) break;
  }
  return ::ftruncate(file.get(), 0) == 0 ? std::error_code{} : last_error();
}

}  // namespace

std::error_code write_whole_file(const std::string& path, std::span<const std::byte> bytes, int like) {
  const auto write = [&](int fd) {
    return std::error_code(write_whole(fd, bytes.data(), bytes.size(), 0), std::generic_category());
  };
  return write_whole_file(path, write, like);
}

std::error_code write_whole_file(const std::string& path, const std::function<std::error_code(int fd)>& write,
                                 int like) {
  struct stat rights {};
  const bool replaces = ::stat(path.c_str(), &rights) == 0;
  const bool known = replaces || (like >= 0 && ::fstat(like, &rights) == 0);
  rights.st_mode &= replaces ? 0777 : 0666;
  // Nobody opens it before who may not open it afterwards, but for who writes it after a crash.
  const mode_t first_mode = known ? for_other_group(rights.st_mode) | S_IWUSR : 0666;
  const std::filesystem::path last(path);
  const std::string passing = last.parent_path() / ("." + last.filename().string() + ".oocarray");
  file_descriptor file;
  std::error_code e = open_passing(passing, first_mode, file);
  if (e == std::errc::no_such_file_or_directory) {
    std::filesystem::create_directories(last.parent_path(), e);
    if (!e) e = open_passing(passing, first_mode, file);
  }
  if (e) return e;
  if (known) take_rights(file.get(), rights, S_IWUSR);
  e = write(file.get());
  // What is durable already stays so: some file systems give a name to a file whose bytes are not there yet.  Those of
  // a new name are only on their way then: waiting for each makes many new chunks take several times as long.
  if (!e && ::access(path.c_str(), F_OK) == 0)
    e = ::fdatasync(file.get()) == 0 ? std::error_code{} : last_error();
  else if (!e)
    static_cast<void>(::sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
  if (known && (rights.st_mode & S_IWUSR) == 0) take_rights(file.get(), rights, 0);
  // File systems of other machines write when a file is closed, and say whether they could.
  if (!e && ::close(::dup(file.get())) != 0) e = last_error();
  if (!e && ::rename(passing.c_str(), path.c_str()) != 0) e = last_error();
  if (e) static_cast<void>(::unlink(passing.c_str()));
  return e;
}

std::error_code sync_files_below(const std::string& folder, int before, dev_t device) {
  // A file that is opened now hears of failures from now on only.
  if (::syncfs(before) == 0) {
    const file_descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd && errno == ENOENT) return {};  // nothing was ever written
    struct stat s {};
    if (fd && ::fstat(fd.get(), &s) == 0 && (s.st_dev == device || ::syncfs(fd.get()) == 0)) return {};
  }
  return last_error();
}

}  // namespace ooc::storage
