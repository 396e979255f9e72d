#include "plain_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "oocarray/error.hpp"

namespace ooc::tool {

input_file::input_file(const std::string& name)
    : name_(name), fd_(::open(name.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct ::stat s {};
  if (fd_ >= 0 && ::fstat(fd_, &s) == 0 && S_ISREG(s.st_mode)) return;
  const int error = fd_ < 0 ? errno : S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
  if (fd_ >= 0) ::close(fd_);
  throw io_error({error, std::generic_category()}, "'" + name + "' cannot be read");
}

input_file::~input_file() {
  ::close(fd_);
}

std::uint64_t input_file::size() const {
  struct ::stat s {};
  if (::fstat(fd_, &s) != 0)
    throw io_error({errno, std::generic_category()}, "'" + name_ + "' cannot be read");
  return static_cast<std::uint64_t>(s.st_size);
}

void input_file::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw io_error({errno, std::generic_category()}, "'" + name_ + "' cannot be read");
    if (n == 0)
      throw io_error({EIO, std::generic_category()},
                     "'" + name_ + "' became shorter while it was being read");
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

output_file::output_file(const std::string& name, bool replace)
    : name_(name), part_(name + ".part-" + std::to_string(::getpid())), replace_(replace) {
  std::error_code ec;
  const auto status = std::filesystem::symlink_status(name, ec);
  if (std::filesystem::is_directory(status)) fail(EISDIR, "made");
  if (std::filesystem::exists(status) && !replace)
    throw usage_error({EEXIST, std::generic_category()},
                      "'" + name + "' is there already; give --force to replace it");
  fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(errno, "made");
}

output_file::~output_file() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(part_.c_str());
}

void output_file::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno, "written");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void output_file::publish() {
  if (::fsync(fd_) != 0) fail(errno, "written");
  int done = ::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, name_.c_str(),
                         replace_ ? 0 : RENAME_NOREPLACE);
  if (done != 0 && errno == EINVAL)  // a file system without RENAME_NOREPLACE
    done = ::rename(part_.c_str(), name_.c_str());
  if (done != 0) fail(errno, "made");
  ::close(fd_);
  fd_ = -1;
}

void output_file::fail(int error, const char* doing) const {
  throw io_error({error, std::generic_category()}, "'" + name_ + "' cannot be " + doing);
}

}  // namespace ooc::tool
