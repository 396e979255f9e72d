#include "measure/raw_io.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"

namespace bench::raw {
namespace {

[[noreturn]] void fail(const char* what, const path& file) {
  throw std::system_error(errno, std::generic_category(), std::string(what) + " " + file.string());
}

class open_file {
 public:
  /// Direct where the file system can.
  open_file(const path& file, int flags, bool direct) : path_(file) {
    if (direct) fd_ = ::open(file.c_str(), flags | O_DIRECT | O_CLOEXEC, 0644);
    if (fd_ < 0) fd_ = ::open(file.c_str(), flags | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("cannot open", file);
  }
  ~open_file() { ::close(fd_); }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  void read(char* to, std::uint64_t n, std::uint64_t at) const {
    if (::pread(fd_, to, n, static_cast<off_t>(at)) != static_cast<ssize_t>(n)) fail("reading", path_);
  }
  void write(const char* from, std::uint64_t n, std::uint64_t at) const {
    if (::pwrite(fd_, from, n, static_cast<off_t>(at)) != static_cast<ssize_t>(n)) fail("writing", path_);
  }
  int fd() const noexcept { return fd_; }

 private:
  path path_;
  int fd_ = -1;
};

struct free_memory {
  void operator()(char* p) const { std::free(p); }
};

/// Buffers of `size` bytes, in huge pages: a request of 512 scattered pages is cut into many by the
/// device.
class buffers {
 public:
  /// `memory` bytes, untouched; 0: one buffer for every request in flight, touched.
  explicit buffers(std::uint64_t memory = 0, std::uint64_t size = request_bytes)
      : fresh_(memory != 0), size_(size), count_(fresh_ ? std::max<std::uint64_t>(memory / size, depth) : depth) {
    constexpr std::uint64_t huge = std::uint64_t{2} << 20;
    const std::uint64_t bytes = (count_ * size_ + huge - 1) / huge * huge;
    memory_.reset(static_cast<char*>(std::aligned_alloc(huge, bytes)));
    if (!memory_) throw std::bad_alloc();
    ::madvise(memory_.get(), bytes, MADV_HUGEPAGE);
    for (std::uint64_t k = 0; !fresh_ && k < count_; ++k) fill(at(k));
  }
  char* at(std::uint64_t k) const { return memory_.get() + k % count_ * size_; }
  /// What a program does before it writes.
  void produce(char* p) const {
    if (fresh_) fill(p);
  }

 private:
  void fill(char* p) const { std::fill_n(reinterpret_cast<double*>(p), size_ / sizeof(double), 1.0); }

  const bool fresh_;
  const std::uint64_t size_, count_;
  std::unique_ptr<char, free_memory> memory_;
};

/// Calls transfer(k) for k in [0, count), `at_once` of them at once and each in a turn of its own;
/// returns seconds.
template <class F>
double in_parallel(std::uint64_t count, F&& transfer, unsigned at_once = depth) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<int> error{0};
  const stopwatch w;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < at_once; ++i)
    threads.emplace_back([&] {
      try {
        for (std::uint64_t k; (k = next++) < count && !error;) transfer(k);
      } catch (const std::system_error& e) {
        error = e.code().value();
      }
    });
  for (std::thread& t : threads) t.join();
  if (error) throw std::system_error(error, std::generic_category(), "raw transfer");
  return w.seconds();
}

std::uint64_t requests_in(const path& file) {
  const std::uint64_t bytes = std::filesystem::file_size(file);
  if (bytes == 0 || bytes % request_bytes) throw std::invalid_argument(file.string() + " is not a multiple of 2 MiB");
  return bytes / request_bytes;
}

std::vector<std::unique_ptr<open_file>> opened(const std::vector<path>& files, int flags) {
  std::vector<std::unique_ptr<open_file>> all;
  for (const path& f : files) all.push_back(std::make_unique<open_file>(f, flags, true));
  return all;
}

/// All files have the size of the first; they are gone through side by side, as stripes are.
double direct(const std::vector<path>& files, bool write, std::uint64_t memory) {
  for (const path& f : files) drop_cache(f);
  const auto open = opened(files, write ? O_WRONLY : O_RDONLY);
  const buffers b(memory);
  return in_parallel(requests_in(files.front()) * files.size(), [&](std::uint64_t k) {
    const open_file& f = *open[k % files.size()];
    const std::uint64_t at = k / files.size() * request_bytes;
    if (!write) return f.read(b.at(k), request_bytes, at);
    b.produce(b.at(k));
    f.write(b.at(k), request_bytes, at);
  });
}

}  // namespace

void make_file(const path& file, std::uint64_t bytes) {
  {
    const open_file f(file, O_WRONLY | O_CREAT | O_TRUNC, false);
    if (const int e = ::posix_fallocate(f.fd(), 0, static_cast<off_t>(bytes))) {
      errno = e;
      fail("reserving space for", file);
    }
  }
  direct_write({file});
}

double direct_read(const std::vector<path>& files, std::uint64_t memory) { return direct(files, false, memory); }

double direct_read_columns(const std::vector<path>& files, std::uint64_t piece, std::uint64_t columns,
                           std::uint64_t memory) {
  for (const path& f : files) drop_cache(f);
  const auto open = opened(files, O_RDONLY);
  const std::uint64_t rows = requests_in(files.front()) * request_bytes / piece / columns;
  const buffers b(memory, piece);
  return in_parallel(rows * columns * files.size(), [&](std::uint64_t k) {
    const std::uint64_t n = k / files.size();
    open[k % files.size()]->read(b.at(k), piece, (n % rows * columns + n / rows) * piece);
  });
}

double direct_write(const std::vector<path>& files, std::uint64_t memory) { return direct(files, true, memory); }

double direct_copy(const path& from, const path& to) {
  drop_cache(from);
  drop_cache(to);
  const open_file in(from, O_RDONLY, true);
  const open_file out(to, O_WRONLY, true);
  const buffers b;
  return in_parallel(requests_in(from), [&](std::uint64_t k) {
    in.read(b.at(k), request_bytes, k * request_bytes);
    out.write(b.at(k), request_bytes, k * request_bytes);
  });
}

double direct_transpose(const path& from, const path& to, std::uint64_t row, std::uint64_t piece) {
  constexpr unsigned at_once = 64;
  drop_cache(from);
  drop_cache(to);
  const open_file in(from, O_RDONLY, true);
  const open_file out(to, O_WRONLY, true);
  const std::uint64_t rows = std::filesystem::file_size(from) / row;
  const std::uint64_t side = piece / sizeof(double);  // rows of a square
  const std::uint64_t across = (row + piece - 1) / piece;
  std::vector<std::unique_ptr<buffers>> own;
  for (unsigned i = 0; i < (at_once + depth - 1) / depth; ++i) own.push_back(std::make_unique<buffers>(0, piece));
  return in_parallel(
      across * across * side,
      [&](std::uint64_t k) {
        const std::uint64_t line = k % side, j = k / side % across, i = k / side / across;
        char* const memory = own[k / depth % own.size()]->at(k);
        const auto move = [&](std::uint64_t a, std::uint64_t b, bool write) {
          const std::uint64_t y = a * side + line, x = b * piece;
          if (y >= rows) return;
          const std::uint64_t bytes = std::min(piece, row - x);
          if (write)
            out.write(memory, bytes, y * row + x);
          else
            in.read(memory, bytes, y * row + x);
        };
        move(i, j, false);
        move(j, i, true);
      },
      at_once);
}

double direct_combine(const std::vector<path>& from, const path& to) {
  for (const path& f : from) drop_cache(f);
  drop_cache(to);
  const auto in = opened(from, O_RDONLY);
  const open_file out(to, O_WRONLY, true);
  const buffers b;
  return in_parallel(requests_in(to), [&](std::uint64_t k) {
    for (const auto& f : in) f->read(b.at(k), request_bytes, k * request_bytes);
    out.write(b.at(k), request_bytes, k * request_bytes);
  });
}

double buffered_read(const path& file) {
  drop_cache(file);
  const open_file f(file, O_RDONLY, false);
  ::posix_fadvise(f.fd(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const buffers b;
  const std::uint64_t n = requests_in(file);
  return seconds_of([&] {
    for (std::uint64_t k = 0; k < n; ++k) f.read(b.at(k), request_bytes, k * request_bytes);
  });
}

double buffered_write(const path& file) {
  drop_cache(file);
  const open_file f(file, O_WRONLY, false);
  const buffers b;
  const std::uint64_t n = requests_in(file);
  return seconds_of([&] {
    for (std::uint64_t k = 0; k < n; ++k) f.write(b.at(k), request_bytes, k * request_bytes);
    if (::fdatasync(f.fd()) != 0) fail("syncing", file);
  });
}

}  // namespace bench::raw
