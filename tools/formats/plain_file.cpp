#include "formats/plain_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "oocarray/error.hpp"
#include "oocarray/units.hpp"

namespace ooc::tool {

namespace {

/// True for files that are written to as they are, rather than replaced.
bool is_stream_mode(mode_t mode) { return S_ISFIFO(mode) || S_ISCHR(mode); }

// A signal does not end the wait for the other end of a stream by itself, as it may come just before: waits are short,
// and check_interrupted() comes between them.  So FIFOs do not block.
constexpr int longest_wait = 500, wait_for_reader = 50;  // ms

/// As open(2), but for FIFOs that a signal ends the wait for a reader.  That for a writer is left to who reads.
int open_file(const std::string& name, int flags) {
  struct ::stat s {};
  const bool fifo = ::stat(name.c_str(), &s) == 0 && S_ISFIFO(s.st_mode);
  for (;;) {
    const int fd = ::open(name.c_str(), flags | O_CLOEXEC | (fifo ? O_NONBLOCK : 0));
    if (fd >= 0 || errno != ENXIO || !fifo) return fd;
    check_interrupted();
    (void)::poll(nullptr, 0, wait_for_reader);
  }
}

/// Standard output; a FIFO as if it were opened once more, for others may use it, too, and want it to block.
int open_standard_output() {
  struct ::stat s {};
  const bool fifo = ::fstat(1, &s) == 0 && S_ISFIFO(s.st_mode);
  const int own = fifo ? ::open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  return own >= 0 ? own : ::fcntl(1, F_DUPFD_CLOEXEC, 3);
}

/// Until the stream is ready for `events`, or for an error.  Throws interrupted.
void wait_for(int fd, short events) {
  struct pollfd wanted {
    fd, events, 0
  };
  do check_interrupted();
  while (::poll(&wanted, 1, longest_wait) <= 0);
}

}  // namespace

input_file::input_file(const std::string& name, bool read_empty)
    : name_(name), fd_(name == "-" ? ::fcntl(0, F_DUPFD_CLOEXEC, 3) : open_file(name, O_RDONLY)) {
  struct ::stat s {};
  if (fd_ >= 0 && ::fstat(fd_, &s) == 0) {
    // Standard input may be a file that somebody has read a part of.
    stream_ = name == "-" || is_stream_mode(s.st_mode) || S_ISSOCK(s.st_mode) ||
              (read_empty && S_ISREG(s.st_mode) && s.st_size == 0);
    if (stream_ ? !S_ISDIR(s.st_mode) : S_ISREG(s.st_mode)) return;
  }
  const int error = fd_ < 0 ? errno : S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
  if (fd_ >= 0) ::close(fd_);
  throw io_error({error, std::generic_category()}, "'" + name + "' cannot be read");
}

input_file::~input_file() { ::close(fd_); }

std::uint64_t input_file::size() const {
  struct ::stat s {};
  if (::fstat(fd_, &s) != 0) throw io_error({errno, std::generic_category()}, "'" + name_ + "' cannot be read");
  return static_cast<std::uint64_t>(s.st_size);
}

std::size_t input_file::read_once(std::uint64_t offset, std::span<std::byte> out) const {
  for (;;) {
    if (stream_) wait_for(fd_, POLLIN);
    const ssize_t n = stream_ ? ::read(fd_, out.data(), out.size())
                              : ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR && errno != EAGAIN)
      throw io_error({errno, std::generic_category()}, "'" + name_ + "' cannot be read");
  }
}

void input_file::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::size_t n = read_once(offset, out);
    if (n == 0)
      throw io_error::in_full(
          {EIO, std::generic_category()},
          "'" + name_ + (stream_ ? "' ended before its shape was filled" : "' became shorter while it was being read"));
    offset += n;
    out = out.subspan(n);
  }
}

void input_file::skip(std::uint64_t bytes) const {
  std::vector<std::byte> passed(std::min<std::uint64_t>(bytes, 64_KiB));
  for (; bytes > 0; bytes -= passed.size()) {
    passed.resize(std::min<std::uint64_t>(bytes, passed.size()));
    read(0, passed);
  }
}

std::size_t input_file::read_some(std::span<std::byte> out) const {
  std::size_t got = 0;
  while (got < out.size()) {
    const std::size_t n = read_once(0, out.subspan(got));
    if (n == 0) break;
    got += n;
  }
  return got;
}

void input_file::expect_end() const {
  std::byte more{};
  if (read_once(0, {&more, 1}) != 0)
    throw usage_error(errc::invalid_request, "'" + name_ + "' holds more data than its shape needs");
}

output_file::output_file(const std::string& name, bool replace, unsigned mode) : name_(name), replace_(replace) {
  struct ::stat s {};
  if (name == "-") {
    fd_ = open_standard_output();
  } else if (::stat(name.c_str(), &s) == 0 && is_stream_mode(s.st_mode)) {
    fd_ = open_file(name, O_WRONLY);
  } else {
    make_part(mode);
    return;
  }
  if (fd_ < 0) fail(errno, "written");
  stream_ = true;
}

void output_file::make_part(unsigned mode) {
  std::error_code ec;
  if (std::filesystem::is_directory(name_, ec)) fail(EISDIR, "made");
  if (std::filesystem::exists(std::filesystem::symlink_status(name_, ec)) && !replace_)
    throw usage_error({EEXIST, std::generic_category()},
                      "'" + name_ + "' is there already; give --force to replace it");
  place_ = name_;
  if (std::filesystem::exists(name_, ec)) {
    if (!std::filesystem::is_regular_file(name_, ec))
      throw usage_error({EEXIST, std::generic_category()},
                        "'" + name_ + "' is a socket or a device, which no file replaces; take another name");
    // A symbolic link stays, as /dev/stdout: the file that it leads to is replaced.
    place_ = std::filesystem::canonical(name_, ec).string();
    if (ec) fail(ec.value(), "replaced");
  } else if (std::filesystem::is_symlink(name_, ec)) {
    throw usage_error({ENOENT, std::generic_category()},
                      "'" + name_ + "' is a symbolic link to '" + std::filesystem::read_symlink(name_, ec).string() +
                          "', which is not there; make that file, or remove the link");
  }
  // A name may have 255 bytes, and this one has more than the file's.
  const auto begin = place_.find_last_of('/') + 1;  // npos + 1 == 0: no folder
  const std::string first = place_.substr(0, begin) + place_.substr(begin, 200) + ".part-" + std::to_string(::getpid());
  part_ = first;
  // One that was killed has left its own there; in a container processes have the same ids again and again.
  for (int n = 1;; ++n) {
    fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd_ >= 0) return;
    if (errno != EEXIST || n == 10'000) fail(errno, "made");
    part_ = first + "-" + std::to_string(n);
  }
}

output_file::~output_file() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!stream_) ::unlink(part_.c_str());
}

void output_file::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      wait_for(fd_, POLLOUT);
      continue;
    }
    if (n < 0) fail(errno, "written");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void output_file::skip(std::uint64_t bytes) {
  if (!stream_) {
    const off_t end = ::lseek(fd_, static_cast<off_t>(bytes), SEEK_CUR);
    if (end < 0 || ::ftruncate(fd_, end) != 0) fail(errno, "written");
    return;
  }
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(bytes, 64_KiB));
  for (; bytes > 0; bytes -= std::min<std::uint64_t>(bytes, zeros.size()))
    append(std::span(zeros).first(std::min<std::uint64_t>(bytes, zeros.size())));
}

void output_file::publish() {
  if (stream_) {
    if (::close(std::exchange(fd_, -1)) != 0) fail(errno, "written");
    return;
  }
  if (::fsync(fd_) != 0) fail(errno, "written");
  int done = ::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, place_.c_str(), replace_ ? 0 : RENAME_NOREPLACE);
  if (done != 0 && errno == EINVAL)  // a file system without RENAME_NOREPLACE
    done = ::rename(part_.c_str(), place_.c_str());
  if (done != 0) fail(errno, "made");
  ::close(fd_);
  fd_ = -1;
}

void output_file::fail(int error, const char* doing) const {
  throw io_error({error, std::generic_category()}, "'" + name_ + "' cannot be " + doing);
}

}  // namespace ooc::tool
