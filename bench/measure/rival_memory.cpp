#include "measure/rival_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <system_error>

#include "measure/scratch.hpp"

namespace bench {

plain_array::plain_array(std::size_t n) {
  constexpr std::size_t huge = std::size_t{2} << 20;
  const std::size_t bytes = (n * sizeof(double) + huge - 1) / huge * huge;
  mapped_ = bytes + huge;
  mapping_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  const auto start = reinterpret_cast<std::uintptr_t>(mapping_);
  data_ = reinterpret_cast<double*>((start + huge - 1) / huge * huge);
  ::madvise(data_, bytes, MADV_HUGEPAGE);
  std::fill_n(data_, n, 1.0);
}

plain_array::~plain_array() { ::munmap(mapping_, mapped_); }

mapped_file::mapped_file(const std::filesystem::path& file, int advice) : bytes_(std::filesystem::file_size(file)) {
  drop_cache(file);
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "cannot open " + file.string());
  void* p = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  ::close(fd);
  if (p == MAP_FAILED) throw std::system_error(error, std::generic_category(), "cannot map " + file.string());
  data_ = static_cast<double*>(p);
  if (advice != MADV_NORMAL) ::madvise(p, bytes_, advice);
}

mapped_file::~mapped_file() { ::munmap(data_, bytes_); }

}  // namespace bench
