#include "harness/picture.hpp"

#include <png.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

namespace jacobi {
namespace {

struct colour {
  double r, g, b;
};

/// Equal steps in value are about equal steps in brightness, so that no edge appears where the
/// field has none.
constexpr std::array<colour, 7> scale{{{8, 6, 30},
                                       {50, 18, 110},
                                       {130, 30, 120},
                                       {205, 60, 75},
                                       {245, 125, 30},
                                       {252, 205, 80},
                                       {255, 253, 230}}};

std::array<std::uint8_t, 3> colour_of(double x) {
  const double at = std::clamp(x, 0.0, 1.0) * (scale.size() - 1);
  const std::size_t k = std::min(static_cast<std::size_t>(at), scale.size() - 2);
  const double t = at - static_cast<double>(k);
  const auto mix = [t](double from, double to) {
    return static_cast<std::uint8_t>(std::lround(from + t * (to - from)));
  };
  return {mix(scale[k].r, scale[k + 1].r), mix(scale[k].g, scale[k + 1].g),
          mix(scale[k].b, scale[k + 1].b)};
}

}  // namespace

void write_png(const std::string& file, const std::vector<float>& values, std::size_t width) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double span = *high > *low ? double(*high) - *low : 1.0;
  std::vector<std::uint8_t> pixels;
  pixels.reserve(values.size() * 3);
  for (float v : values)
    for (std::uint8_t c : colour_of((double(v) - *low) / span)) pixels.push_back(c);

  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(values.size() / width);
  image.format = PNG_FORMAT_RGB;
  errno = 0;
  if (!png_image_write_to_file(&image, file.c_str(), 0, pixels.data(), 0, nullptr))
    throw std::system_error(errno ? errno : EIO, std::generic_category(),
                            "writing the picture " + file + ": " + image.message);
}

}  // namespace jacobi
