// The rival of ooc::sort(): STXXL 1.4 (Debian's libstxxl-dev), where CMake has found it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

/// The keys that are sorted.
class random_keys {
 public:
  std::uint64_t operator()() noexcept {
    x_ ^= x_ << 13;
    x_ ^= x_ >> 7;
    x_ ^= x_ << 17;
    return x_;
  }

 private:
  std::uint64_t x_ = 88172645463325252;
};

bool stxxl_is_here();
/// Seconds that stxxl::sort() takes for n keys with so many bytes of memory, on a disk file that is made,
/// with direct transfers.  Throws std::runtime_error where the result is not sorted, and where STXXL is not here.
double seconds_of_stxxl_sort(const std::string& disk, std::size_t n, std::uint64_t memory);

}  // namespace bench
