// The memory that a program would use without this library: an array in memory, or a mapped file.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <filesystem>

namespace bench {

/// `n` doubles in huge pages, as a user who cares for speed would ask for them; all are touched.
class plain_array {
 public:
  explicit plain_array(std::size_t n);
  ~plain_array();
  plain_array(const plain_array&) = delete;
  plain_array& operator=(const plain_array&) = delete;

  double* data() const noexcept { return data_; }

 private:
  void* mapping_;
  std::size_t mapped_;
  double* data_;
};

/// A whole file of doubles, mapped for reading and writing; its pages are dropped from the cache
/// before.
class mapped_file {
 public:
  /// `advice`: MADV_NORMAL, MADV_SEQUENTIAL ...  Throws std::system_error.
  mapped_file(const std::filesystem::path& file, int advice);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  double* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_ / sizeof(double); }

 private:
  std::size_t bytes_;
  double* data_;
};

/// The advice that a user would try, and which does best differs from kernel to kernel.
inline constexpr int advices[] = {MADV_NORMAL, MADV_SEQUENTIAL};

}  // namespace bench
