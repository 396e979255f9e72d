#include "harness/plain_array.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace examples {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// An open file, closed at the end of the scope.
class descriptor {
 public:
  descriptor(const std::filesystem::path& file, int flags)
      : descriptor(::open(file.c_str(), flags, 0644), file.string()) {}
  /// Takes over one that has just been opened, or throws what errno says of that.
  descriptor(int fd, const std::string& what) : fd_(fd) {
    if (fd_ < 0) fail(errno, "opening " + what);
  }
  ~descriptor() { ::close(fd_); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  operator int() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Calls transfer(first byte, bytes), which moves as many bytes as it returns, until all of `part`
/// have been moved.
template <class Transfer>
void whole(const byte_range& part, const std::filesystem::path& file, Transfer&& transfer) {
  for (std::uint64_t at = part.first; at < part.last;) {
    const ssize_t n = transfer(at, std::min<std::uint64_t>(part.last - at, 1 << 26));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(n < 0 ? errno : EIO, "reading or writing " + file.string());
    at += static_cast<std::uint64_t>(n);
  }
}

std::byte* map(std::uint64_t bytes, int flags, int fd, const std::string& what) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (p == MAP_FAILED) fail(errno, "mapping " + std::to_string(bytes) + " bytes of " + what);
  return static_cast<std::byte*>(p);
}

}  // namespace

plain_memory plain_memory::create(const std::filesystem::path& file, std::uint64_t bytes, const ranks& all) {
  if (!all.leads()) all.barrier();  // until it is there
  const descriptor fd(file, O_RDWR | O_CLOEXEC | (all.leads() ? O_CREAT | O_TRUNC : 0));
  if (all.leads()) {
    if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes)))
      fail(error, "reserving " + std::to_string(bytes) + " bytes for " + file.string());
    all.barrier();
  }
  return {map(bytes, MAP_SHARED, fd, file.string()), bytes};
}

plain_memory plain_memory::open(const std::filesystem::path& file, std::uint64_t bytes) {
  std::error_code error;
  if (const auto found = std::filesystem::file_size(file, error); error || found != bytes)
    throw bad_option("--stage compute: " + file.string() + " does not have the " + std::to_string(bytes) +
                     " bytes of these options; make it with --stage create");
  const descriptor fd(file, O_RDWR | O_CLOEXEC);
  return {map(bytes, MAP_SHARED, fd, file.string()), bytes};
}

plain_memory plain_memory::read_from(const std::filesystem::path& file, std::vector<byte_range> parts,
                                     const ranks& all) {
  plain_memory m = anonymous(std::filesystem::file_size(file), all);
  m.file_ = file;
  m.parts_ = std::move(parts);
  m.read_parts();
  all.barrier();
  return m;
}

plain_memory plain_memory::anonymous(std::uint64_t bytes, const ranks& all) {
  if (all.size() == 1) return {map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, "anonymous memory"), bytes};
  // Memory without a file on any disk, which the other ranks find by its descriptor on rank 0.
  if (!all.leads()) {
    const descriptor fd(all.broadcast(std::string(), 0), O_RDWR | O_CLOEXEC);
    plain_memory mine(map(bytes, MAP_SHARED, fd, "shared memory"), bytes);
    all.barrier();
    return mine;
  }
  const descriptor fd(::memfd_create("plain memory", MFD_CLOEXEC), "shared memory");
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail(errno, "shared memory");
  plain_memory mine(map(bytes, MAP_SHARED, fd, "shared memory"), bytes);
  all.broadcast("/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd), 0);
  all.barrier();  // until everybody has mapped it
  return mine;
}

void plain_memory::read_parts() {
  const descriptor fd(file_, O_RDONLY | O_CLOEXEC);
  for (const byte_range& part : parts_)
    whole(part, file_,
          [&](std::uint64_t at, std::uint64_t n) { return ::pread(fd, data_ + at, n, static_cast<off_t>(at)); });
}

void plain_memory::write_parts() const {
  const descriptor fd(file_, O_WRONLY | O_CLOEXEC);
  for (const byte_range& part : parts_)
    whole(part, file_,
          [&](std::uint64_t at, std::uint64_t n) { return ::pwrite(fd, data_ + at, n, static_cast<off_t>(at)); });
  if (::fdatasync(fd) != 0) fail(errno, "writing " + file_.string());
}

plain_memory::plain_memory(plain_memory&& o) noexcept { *this = std::move(o); }

plain_memory& plain_memory::operator=(plain_memory&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  std::swap(file_, o.file_);
  std::swap(parts_, o.parts_);
  return *this;
}

plain_memory::~plain_memory() {
  if (data_) ::munmap(data_, size_);
}

void plain_memory::writeback() {
  if (!file_.empty()) return write_parts();
  if (::msync(data_, size_, MS_SYNC) != 0) fail(errno, "writing a mapped file back");
}

rival_folder::rival_folder(const common_options& o, const std::string& program, const ranks& all)
    : creates_(o.creates()), keep_(o.keeps()), ranks_(all) {
  const std::string prefix = "local:", &url = o.store;
  if (!url.starts_with(prefix))
    throw bad_option("--vm with --store " + url + ": plain memory needs plain files; give a local: store");
  const std::filesystem::path store = url.substr(prefix.size(), url.find(',') - prefix.size());
  const bool stays = keep_ || !creates_;
  path_ = store / all.broadcast("rival-" + (stays ? program : std::to_string(::getpid())), 0);
  if (all.leads()) std::filesystem::create_directories(path_);
  all.barrier();
}

rival_folder::~rival_folder() {
  if (std::uncaught_exceptions() == 0) ranks_.barrier();  // else the others may not come
  if (!ranks_.leads() || keep_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

plain_memory rival_folder::map(const std::string& name, std::uint64_t bytes) const {
  return creates_ ? plain_memory::create(path_ / name, bytes, ranks_) : plain_memory::open(path_ / name, bytes);
}

}  // namespace examples
