#include "harness/picture.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "formats/png_image.hpp"

namespace jacobi {

void write_png(const std::string& file, const std::vector<float>& values, std::size_t width) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const std::vector<double> wide(values.begin(), values.end());
  const auto png = ooc::png_image_of(wide, width, *low, *high);
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
  out.close();
  if (!out) throw std::system_error(errno ? errno : EIO, std::generic_category(), "writing the picture " + file);
}

}  // namespace jacobi
