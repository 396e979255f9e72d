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

/// The file with this name, empty and locked.
std::error_code open_passing(const std::string& name, file_descriptor& file) {
  for (;;) {
    file = file_descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
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

std::error_code write_whole_file(const std::string& path, std::span<const std::byte> bytes) {
  return write_whole_file(path, [&](int fd) {
    return std::error_code(write_whole(fd, bytes.data(), bytes.size(), 0), std::generic_category());
  });
}

std::error_code write_whole_file(const std::string& path, const std::function<std::error_code(int fd)>& write) {
  const std::filesystem::path last(path);
  const std::string passing = last.parent_path() / ("." + last.filename().string() + ".oocarray");
  file_descriptor file;
  std::error_code e = open_passing(passing, file);
  if (e == std::errc::no_such_file_or_directory) {
    std::filesystem::create_directories(last.parent_path(), e);
    if (!e) e = open_passing(passing, file);
  }
  if (e) return e;
  e = write(file.get());
  // What is durable already stays so: some file systems give a name to a file whose bytes are not there yet.
  if (!e && ::access(path.c_str(), F_OK) == 0 && ::fdatasync(file.get()) != 0) e = last_error();
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
