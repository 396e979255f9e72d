#include "failing_disk.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>
#include <vector>

namespace ooc::testing {
namespace {

std::atomic<const failing_disk::rule*> in_force{nullptr};

disk_answer answer_to(disk_call c, int fd, std::size_t bytes) {
  const failing_disk::rule* const r = in_force.load();
  return r == nullptr ? disk_answer{} : (*r)(c, fd, bytes);
}

ssize_t failed(int error) {
  errno = error;
  return -1;
}

ssize_t moved(disk_call c, long number, int fd, void* memory, std::size_t bytes, off_t at) {
  const disk_answer a = answer_to(c, fd, bytes);
  if (a.error != 0) return failed(a.error);
  return ::syscall(number, fd, memory, std::min(bytes, a.most.value_or(bytes)), at);
}

ssize_t moved_all(disk_call c, long number, int fd, const iovec* v, int count, off_t at) {
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += v[i].iov_len;
  const disk_answer a = answer_to(c, fd, bytes);
  if (a.error != 0) return failed(a.error);
  std::vector<iovec> parts;
  std::size_t left = std::min(bytes, a.most.value_or(bytes));
  for (int i = 0; i < count && left > 0; ++i) {
    parts.push_back({v[i].iov_base, std::min(left, v[i].iov_len)});
    left -= parts.back().iov_len;
  }
  return ::syscall(number, fd, parts.data(), parts.size(), at, 0L);
}

int ended(disk_call c, int fd, long number, long first = 0, long second = 0, long third = 0) {
  const disk_answer a = answer_to(c, fd, 0);
  if (a.error != 0) return static_cast<int>(failed(a.error));
  return static_cast<int>(::syscall(number, fd, first, second, third));
}

std::atomic<unsigned> refused_one_in{0};
std::atomic<unsigned> drawn{0};
thread_local bool memory_for_all = false;

bool is_refused() noexcept {
  const unsigned n = refused_one_in.load(std::memory_order_relaxed);
  if (n == 0 || memory_for_all) return false;
  unsigned x = drawn.fetch_add(2654435761U, std::memory_order_relaxed);
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  return x % n == 0;
}

}  // namespace

bool is_named(int fd, const std::string& ending) {
  std::error_code e;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), e).string().ends_with(ending);
}

failing_disk::failing_disk(rule r) : rule_(std::move(r)) { in_force = &rule_; }
failing_disk::~failing_disk() { in_force = nullptr; }

scarce_memory::scarce_memory(unsigned one_in, unsigned seed) {
  memory_for_all = true;
  drawn = seed;
  refused_one_in = one_in;
}
scarce_memory::~scarce_memory() {
  refused_one_in = 0;
  memory_for_all = false;
}

has_memory::has_memory() : had_(memory_for_all) { memory_for_all = true; }
has_memory::~has_memory() { memory_for_all = had_; }

}  // namespace ooc::testing

void* operator new(std::size_t bytes) {
  void* const p = ooc::testing::is_refused() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return ooc::testing::is_refused() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using namespace ooc::testing;

extern "C" {

ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  return moved(disk_call::read, SYS_pread64, fd, to, bytes, at);
}
ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
  return moved(disk_call::write, SYS_pwrite64, fd, const_cast<void*>(from), bytes, at);
}
ssize_t preadv(int fd, const iovec* v, int count, off_t at) {
  return moved_all(disk_call::read, SYS_preadv, fd, v, count, at);
}
ssize_t pwritev(int fd, const iovec* v, int count, off_t at) {
  return moved_all(disk_call::write, SYS_pwritev, fd, v, count, at);
}
int fdatasync(int fd) { return ended(disk_call::flush, fd, SYS_fdatasync); }
int fsync(int fd) { return ended(disk_call::flush, fd, SYS_fsync); }
int ftruncate(int fd, off_t bytes) noexcept { return ended(disk_call::cut, fd, SYS_ftruncate, bytes); }
int fallocate(int fd, int mode, off_t from, off_t bytes) {
  return ended(disk_call::lengthen, fd, SYS_fallocate, mode, from, bytes);
}

}  // extern "C"
