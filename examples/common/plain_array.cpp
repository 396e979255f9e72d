#include "common/plain_array.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <optional>
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

plain_memory plain_memory::create(const std::filesystem::path& file, std::uint64_t bytes,
                                  const ranks& all) {
  if (!all.leads()) all.barrier();  // until it is there
  const descriptor fd(file, O_RDWR | O_CLOEXEC | (all.leads() ? O_CREAT | O_TRUNC : 0));
  if (all.leads()) {
    if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes)))
      fail(error, "reserving " + std::to_string(bytes) + " bytes for " + file.string());
    all.barrier();
  }
  return {map(bytes, MAP_SHARED, fd, file.string()), bytes};
}

plain_memory plain_memory::read_from(const std::filesystem::path& file, const ranks& all) {
  if (all.size() == 1) return read_alone(file);
  // Memory without a file on any disk, which the other ranks find by its descriptor on rank 0.
  std::string place;
  std::uint64_t bytes = std::filesystem::file_size(file);
  std::optional<plain_memory> m;
  if (all.leads()) {
    const int fd = ::memfd_create("plain memory", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail(errno, "shared memory");
    place = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd);
    m = plain_memory(map(bytes, MAP_SHARED, fd, "shared memory"), bytes);
    m->fill_from(file);
    all.broadcast(place, 0);
    all.barrier();  // until everybody has mapped it
    ::close(fd);
    return std::move(*m);
  }
  const descriptor fd(all.broadcast(place, 0), O_RDWR | O_CLOEXEC);
  plain_memory mine(map(bytes, MAP_SHARED, fd, "shared memory"), bytes);
  all.barrier();
  return mine;
}

plain_memory plain_memory::read_alone(const std::filesystem::path& file) {
  const std::uint64_t bytes = std::filesystem::file_size(file);
  plain_memory m{map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, "anonymous memory"), bytes};
  m.fill_from(file);
  return m;
}

void plain_memory::fill_from(const std::filesystem::path& file) {
  const descriptor fd(file, O_RDONLY | O_CLOEXEC);
  for (std::uint64_t at = 0; at < size_;) {
    const ssize_t n = ::read(fd, data_ + at, std::min<std::uint64_t>(size_ - at, 1 << 26));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(n < 0 ? errno : EIO, "reading " + file.string());
    at += static_cast<std::uint64_t>(n);
  }
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

rival_folder::rival_folder(const std::string& url, const ranks& all) : ranks_(all) {
  const std::string prefix = "local:";
  if (!url.starts_with(prefix))
    throw bad_option("--vm with --store " + url +
                     ": plain memory needs plain files; give a local: store");
  const std::filesystem::path store = url.substr(prefix.size(), url.find(',') - prefix.size());
  path_ = store / all.broadcast("rival-" + std::to_string(::getpid()), 0);
  if (all.leads()) std::filesystem::create_directories(path_);
  all.barrier();
}

rival_folder::~rival_folder() {
  if (std::uncaught_exceptions() == 0) ranks_.barrier();  // else the others may not come
  if (!ranks_.leads()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace examples
