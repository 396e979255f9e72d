// ooc picture: what an array looks like, from every k-th element.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "base/interrupt.hpp"
#include "copying/array_to_read.hpp"
#include "copying/box_walk.hpp"
#include "formats/plain_file.hpp"
#include "formats/png_image.hpp"
#include "oocarray/error.hpp"
#include "storage/layout/element_type.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

using storage::index;

/// The part of an array that is shown: a box, and which of its dimensions go down and across.
struct slice {
  box part;
  std::size_t down = 0, across = 0;  ///< the same: it has one dimension, which goes across
};

/// "5,:,0:100": numbers stand still, ranges are shown.  Empty: the last two dimensions, in the
/// middle of the others.
slice parse_slice(const std::string& text, const index& extents) {
  std::string ranges;
  std::vector<std::size_t> shown;
  std::size_t d = 0;
  for (std::size_t at = 0; at <= text.size() && !text.empty(); ++d) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    at = end + 1;
    std::uint64_t n = 0;
    const auto r = std::from_chars(one.data(), one.data() + one.size(), n);
    const bool still = r.ec == std::errc() && r.ptr == one.data() + one.size() && n + 1 > n;
    if (!still) shown.push_back(d);
    ranges += (d == 0 ? "" : ",") + one + (still ? ":" + std::to_string(n + 1) : "");
  }
  for (d = 0; text.empty() && d < extents.size(); ++d) {
    const bool still = d + 2 < extents.size();
    if (!still) shown.push_back(d);
    const auto middle = extents[d] / 2;
    ranges += (d == 0 ? "" : ",") + (still ? std::to_string(middle) + ":" + std::to_string(middle + 1) : ":");
  }
  slice s;
  try {
    s.part = parse_box(ranges, extents);
  } catch (const usage_mistake&) {
    throw usage_mistake("--slice: '" + text + "' is no part of " + shape_text(extents) +
                        "; write a number or a range for each dimension, for instance " +
                        (extents.size() > 1 ? "0,:" : "0:1"));
  }
  if (shown.empty() || shown.size() > 2)
    throw usage_mistake("--slice: '" + text + "' has " + std::to_string(shown.size()) +
                        " ranges, and a picture shows one or two dimensions; give a number for each of the others");
  s.down = shown.front();
  s.across = shown.back();
  return s;
}

double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double value = exponent == 31  ? (mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                                                        : std::numeric_limits<double>::infinity())
                       : exponent == 0 ? std::ldexp(mantissa, -24)
                                       : std::ldexp(mantissa + 1024, exponent - 25);
  return bits >> 15 ? -value : value;
}

template <class T>
double as(const std::byte* p) {
  T value{};
  std::memcpy(&value, p, sizeof value);
  return static_cast<double>(value);
}

/// Elements that are numbers here.  Only on x86 is a long double what "f16" stands for.
bool is_number(const std::string& type) {
  const bool extended = type == "f16" || type == "c32";
  return storage::element_size(type) != 0 && !type.starts_with("struct") &&
         (!extended || std::numeric_limits<long double>::digits == 64);
}

/// Of complex numbers, the absolute value.
double number(const std::string& type, const std::byte* p) {
  if (type == "f8") return as<double>(p);
  if (type == "f4") return as<float>(p);
  if (type == "f2") return half(static_cast<std::uint16_t>(as<std::uint16_t>(p)));
  if (type == "c8") return std::hypot(as<float>(p), as<float>(p + 4));
  if (type == "f16") return as<long double>(p);
  if (type == "c16") return std::hypot(as<double>(p), as<double>(p + 8));
  if (type == "c32") return std::hypot(as<long double>(p), as<long double>(p + 16));
  if (type == "i1") return as<std::int8_t>(p);
  if (type == "i2") return as<std::int16_t>(p);
  if (type == "i4") return as<std::int32_t>(p);
  if (type == "i8") return as<std::int64_t>(p);
  if (type == "u2") return as<std::uint16_t>(p);
  if (type == "u4") return as<std::uint32_t>(p);
  if (type == "u8") return as<std::uint64_t>(p);
  if (type == "u1" || type == "b1") return as<std::uint8_t>(p);
  throw usage_error(errc::invalid_request, "elements of type " + type + " are no numbers that a picture shows");
}

/// Every `step`-th element of the slice, packed.
struct sampling {
  std::uint64_t down = 1, across = 1;   ///< steps
  std::uint64_t height = 1, width = 1;  ///< elements
};

std::uint64_t offset_of(const storage::array_description& a, const index& at) {
  index after = at;
  for (auto& n : after) ++n;
  return storage::box_request(a, at, after).entries()[0].file_offset;
}

void read(const storage::opened_file& f, const slice& s, const sampling& n, std::span<std::byte> out) {
  const auto& a = f.meta.array;
  const std::uint64_t size = a.element_size;
  if (a.tile.empty()) {
    // In row-major order it is one strided request, however large the array is.
    index next = s.part.lower;
    const std::uint64_t first = offset_of(a, next);
    nested_request r;
    r.file_offset = first;
    r.run = size;
    const auto step = [&](std::size_t d) {
      std::uint64_t bytes = size;
      for (std::size_t k = d + 1; k < a.extents.size(); ++k) bytes *= a.extents[k];
      return bytes;
    };
    r.depth = 2;
    r.levels[0] = {n.height, s.down == s.across ? 0 : n.down * step(s.down), n.width * size};
    r.levels[1] = {n.width, n.across * step(s.across), size};
    request wanted;
    wanted.add(r);
    return throw_if(f.file->read(wanted, out.data()));
  }
  // In tiles the elements are no regular pattern: lists of them.
  constexpr std::size_t most = 1 << 16;
  request wanted;
  std::uint64_t memory = 0;
  for (std::uint64_t i = 0; i < n.height; ++i) {
    check_interrupted();
    for (std::uint64_t j = 0; j < n.width; ++j, memory += size) {
      index at = s.part.lower;
      if (s.down != s.across) at[s.down] += i * n.down;
      at[s.across] += j * n.across;
      wanted.add(offset_of(a, at), memory, size);
    }
    if (wanted.entries().size() < most && i + 1 < n.height) continue;
    throw_if(f.file->read(wanted, out.data()));
    wanted = {};
  }
}

int run_picture(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("slice", po::value<std::string>()->value_name("I,L:U,..."),
                "what is shown: a number or a range for each dimension, for instance 5,:,0:100; "
                "otherwise the last two "
                "dimensions, in the middle of the others");
  line.option()("size", po::value<std::uint32_t>()->value_name("N"), "at most N rows and N columns; otherwise 512");
  line.option()("range", po::value<std::string>()->value_name("LOW:HIGH"),
                "values of the darkest and the lightest colour; otherwise the least and the largest shown");
  line.option()("force,f", "replace the file if it is there");
  line.positional("PATH");
  line.positional("FILE");
  if (!line.parse(arguments)) return success;
  const std::string path = line.required("PATH"), file = line.required("FILE");
  const std::uint64_t most = line.number("size", 512);
  if (most < 1 || most > 16384) throw usage_mistake("--size: " + std::to_string(most) + " is not 1 to 16384");

  const array_to_read opened = open_to_read(line, path);
  const storage::opened_file& f = opened.file;
  const auto& a = f.meta.array;
  if (a.extents.empty())
    throw usage_mistake("'" + f.meta.path + "' is a file of bytes; a picture shows arrays, which `ooc import` makes");
  if (!is_number(a.element_type))
    throw usage_mistake("'" + f.meta.path + "' has elements of " + std::to_string(a.element_size) +
                        " bytes that are no numbers, and a picture shows numbers");
  const slice s = parse_slice(line.text_or("slice", ""), a.extents);
  const index extents = s.part.extents();
  sampling n;
  n.across = (extents[s.across] + most - 1) / most;
  n.width = (extents[s.across] + n.across - 1) / n.across;
  if (s.down != s.across) {
    n.down = (extents[s.down] + most - 1) / most;
    n.height = (extents[s.down] + n.down - 1) / n.down;
  }

  catch_interrupts();
  output_file out(file, line.has("force"));
  std::vector<std::byte> bytes(n.height * n.width * a.element_size);
  read(f, s, n, bytes);
  std::vector<double> values;
  values.reserve(n.height * n.width);
  for (std::size_t at = 0; at < bytes.size(); at += a.element_size)
    values.push_back(number(a.element_type, &bytes[at]));

  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double v : values)
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  if (low > high) low = high = 0;
  if (line.has("range")) {
    const std::string text = line.text("range");
    char extra = 0;
    if (std::sscanf(text.c_str(), "%lf:%lf%c", &low, &high, &extra) != 2 || !(low < high) || !std::isfinite(high - low))
      throw usage_mistake("--range: '" + text + "' is no range of values; write for instance 0:1.5");
  }
  // One dimension is a strip.
  const std::size_t strip = n.height == 1 && s.down == s.across ? 32 : 1;
  std::vector<double> shown;
  for (std::size_t k = 0; k < strip; ++k) shown.insert(shown.end(), values.begin(), values.end());
  out.append(png_image_of(shown, n.width, low, high));
  out.publish();

  std::string box;
  for (std::size_t d = 0; d < extents.size(); ++d)
    box += (d == 0 ? "" : ",") + std::to_string(s.part.lower[d]) +
           (d == s.down || d == s.across ? ":" + std::to_string(s.part.upper[d]) : "");
  std::fprintf(file == "-" ? stderr : stdout,
               "%s[%s]: %llu x %llu of %llu x %llu elements, from %g (dark) to %g (light)\n",
               printable(f.meta.path).c_str(), box.c_str(), static_cast<unsigned long long>(n.height),
               static_cast<unsigned long long>(n.width),
               static_cast<unsigned long long>(s.down == s.across ? 1 : extents[s.down]),
               static_cast<unsigned long long>(extents[s.across]), low, high);
  return std::fflush(stdout) == 0 ? success : failed;
}

}  // namespace

const command picture{
    "picture", "picture [options] PATH FILE",
    "Draws an array, or a slice of it, as a PNG of every k-th element; reads no others but their "
    "neighbours.\n"
    "PATH is in a store, or names a file: ./a.npy, ./run.h5/g/x, ./run.zarr/x, file:/data/run.h5/g/x.",
    run_picture};

}  // namespace ooc::tool
