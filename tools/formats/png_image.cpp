#include "formats/png_image.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace ooc {

namespace {

struct colour {
  double r, g, b;
};

/// Equal steps in value are about equal steps in brightness, so that no edge appears where the
/// field has none.
constexpr std::array<colour, 7> scale{
    {{8, 6, 30}, {50, 18, 110}, {130, 30, 120}, {205, 60, 75}, {245, 125, 30}, {252, 205, 80}, {255, 253, 230}}};

std::array<std::uint8_t, 3> colour_of(double x) {
  if (std::isnan(x)) return {128, 128, 128};
  const double at = std::clamp(x, 0.0, 1.0) * (scale.size() - 1);
  const std::size_t k = std::min(static_cast<std::size_t>(at), scale.size() - 2);
  const double t = at - static_cast<double>(k);
  const auto mix = [t](double from, double to) {
    return static_cast<std::uint8_t>(std::lround(from + t * (to - from)));
  };
  return {mix(scale[k].r, scale[k + 1].r), mix(scale[k].g, scale[k + 1].g), mix(scale[k].b, scale[k + 1].b)};
}

}  // namespace

std::vector<std::byte> png_image_of(std::span<const double> values, std::size_t width, double low, double high) {
  std::vector<std::uint8_t> pixels;
  pixels.reserve(values.size() * 3);
  for (const double v : values) {
    // Halves, so that the span of the largest numbers is one.
    const double x = high > low ? (v / 2 - low / 2) / (high / 2 - low / 2) : std::isnan(v) ? v : 0.0;
    for (const std::uint8_t c : colour_of(x)) pixels.push_back(c);
  }
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(values.size() / width);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::byte> file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = file.size();
  if (!png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr))
    throw std::runtime_error(std::string("libpng cannot make the picture: ") + image.message);
  file.resize(size);
  return file;
}

}  // namespace ooc
