#include "runtime/policy/waste_watch.hpp"

#include <cstdio>

namespace ooc::detail {

bool waste_watch::mapped(std::uint64_t bytes, std::uint64_t ran_ns) noexcept {
  if (found_) return false;
  if (blocks_ == 0) {
    began_ = ran_ns;
    bytes_ = 0;
  }
  bytes_ += bytes;
  if (++blocks_ <= window) return false;  // the first one begins it
  blocks_ = 0;
  ran_ = ran_ns - began_;
  found_ = least_ns(bytes_) > ran_;
  return found_;
}

std::string waste_watch::text(const std::string& array) const {
  char sizes[160];
  std::snprintf(sizes, sizeof sizes,
                "of the last %llu MiB that were read for it, the program can have touched %.2g MiB",
                static_cast<unsigned long long>(bytes_ >> 20), static_cast<double>(ran_ * bytes_per_ns) / (1 << 20));
  return "oocarray: array '" + array + "' is read far more than it is touched: " + sizes +
         ". A loop in the order of the file, tiles() of a layout_tiled array in file_order::tiled, "
         "gather() and scatter() of many indices, or a smaller block (array_options::block) read less. "
         "This is said once; runtime_options::hints = false turns it off\n";
}

}  // namespace ooc::detail
