// Numbers as a picture: a PNG with a colour for every value, from blue-black over red to white; NaN
// is grey.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ooc {

/// The file.  Rows of `width` values, from top to bottom; `low` to `high` is the scale of colours.
/// Throws std::runtime_error where libpng refuses, as for more than 2^31 - 1 columns.
std::vector<std::byte> png_image_of(std::span<const double> values, std::size_t width, double low, double high);

}  // namespace ooc
