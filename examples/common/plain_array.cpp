#include "common/plain_array.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "common/command_line.hpp"

namespace examples {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// An open file, closed at the end of the scope.
class descriptor {
 public:
  descriptor(const std::filesystem::path& file, int flags) : fd_(::open(file.c_str(), flags, 0644)) {
    if (fd_ < 0) fail(errno, "opening " + file.string());
  }
  ~descriptor() { ::close(fd_); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  operator int() const noexcept { return fd_; }

 private:
  int fd_;
};

std::byte* map(std::uint64_t bytes, int flags, int fd, const std::string& what) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (p == MAP_FAILED) fail(errno, "mapping " + std::to_string(bytes) + " bytes of " + what);
  return static_cast<std::byte*>(p);
}

}  // namespace

plain_memory plain_memory::create(const std::filesystem::path& file, std::uint64_t bytes) {
  const descriptor fd(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC);
  if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes)))
    fail(error, "reserving " + std::to_string(bytes) + " bytes for " + file.string());
  return {map(bytes, MAP_SHARED, fd, file.string()), bytes};
}

plain_memory plain_memory::read_from(const std::filesystem::path& file) {
  const descriptor fd(file, O_RDONLY | O_CLOEXEC);
  struct stat s {};
  if (::fstat(fd, &s) != 0) fail(errno, "reading " + file.string());
  const auto bytes = static_cast<std::uint64_t>(s.st_size);
  plain_memory m{map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, "anonymous memory"), bytes};
  for (std::uint64_t at = 0; at < bytes;) {
    const ssize_t n = ::read(fd, m.data_ + at, std::min<std::uint64_t>(bytes - at, 1 << 26));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(n < 0 ? errno : EIO, "reading " + file.string());
    at += static_cast<std::uint64_t>(n);
  }
  return m;
}

plain_memory::plain_memory(plain_memory&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}

plain_memory& plain_memory::operator=(plain_memory&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  return *this;
}

plain_memory::~plain_memory() {
  if (data_) ::munmap(data_, size_);
}

void plain_memory::writeback() {
  if (::msync(data_, size_, MS_SYNC) != 0) fail(errno, "writing a mapped file back");
}

rival_folder::rival_folder(const std::string& url) {
  const std::string prefix = "local:";
  if (!url.starts_with(prefix))
    throw bad_option("--vm with --store " + url +
                     ": plain memory needs plain files; give a local: store");
  const std::filesystem::path store = url.substr(prefix.size(), url.find(',') - prefix.size());
  std::filesystem::create_directories(store);
  path_ = store / ("rival-" + std::to_string(::getpid()));
  std::filesystem::create_directory(path_);
}

rival_folder::~rival_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace examples
