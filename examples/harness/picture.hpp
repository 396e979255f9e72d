// The plate as a picture: a PNG with a colour for every value, from blue-black over red to white.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace jacobi {

/// Writes width x width values, rows from top to bottom.  Colours span their range.  Throws
/// std::system_error naming the file.
void write_png(const std::string& file, const std::vector<float>& values, std::size_t width);

/// Every n / 1024-th point of an n x n plate.  Only the rows that it shows are touched.
template <class Plate>
void write_picture(const std::string& file, const Plate& a, std::size_t n) {
  const std::size_t width = std::min<std::size_t>(n, 1024);
  std::vector<float> values;
  values.reserve(width * width);
  for (std::size_t i = 0; i < width; ++i)
    for (std::size_t j = 0; j < width; ++j)
      values.push_back(static_cast<float>(a[i * (n - 1) / (width - 1)][j * (n - 1) / (width - 1)]));
  write_png(file, values, width);
}

}  // namespace jacobi
