#include "copying/salvage.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/interrupt.hpp"
#include "storage/layout/element_type.hpp"
#include "storage/layout/file_shape.hpp"

namespace ooc::tool {

namespace {

constexpr std::size_t named_ranges = 5;

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

/// Empty: the text is no such number.
template <class T>
std::vector<std::byte> number(const std::string& text) {
  T value{};
  const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size()) return {};
  return bytes_of(value);
}

/// The nearest number of 16 bits.
std::vector<std::byte> half(const std::string& text) {
  const std::vector<std::byte> wide = number<float>(text);
  if (wide.empty()) return {};
  float value = 0;
  std::memcpy(&value, wide.data(), sizeof value);
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return bytes_of<std::uint16_t>(0x7e00);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520) return bytes_of<std::uint16_t>(sign | 0x7c00);
  int exponent = 0;
  (void)std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, -14);
  const auto units = static_cast<std::uint16_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // Subnormal numbers have the field 0; a mantissa that was rounded up carries into the exponent.
  const auto field = static_cast<std::uint16_t>(units < 1024 ? 0 : exponent + 14);
  return bytes_of(static_cast<std::uint16_t>(sign | ((field << 10) + units)));
}

/// Elements that are no numbers here: their bytes are filled, all with the same.
bool is_filled_by_bytes(const storage::array_description& array) {
  const std::string& type = array.element_type;
  return array.extents.empty() || storage::element_size(type) != array.element_size || type.starts_with("struct") ||
         type == "f16" || type == "c32";
}

std::vector<std::byte> filling_element(const std::string& text, const std::string& type, std::size_t size) {
  const char kind = type[0];
  std::vector<std::byte> e;
  if (kind == 'f' && size == 2) return half(text);
  if ((kind == 'f' && size == 4) || (kind == 'c' && size == 8)) e = number<float>(text);
  if ((kind == 'f' && size == 8) || (kind == 'c' && size == 16)) e = number<double>(text);
  if (kind == 'c' && !e.empty()) e.resize(size);  // the imaginary part is 0
  if (kind == 'i' && size == 1) e = number<std::int8_t>(text);
  if (kind == 'i' && size == 2) e = number<std::int16_t>(text);
  if (kind == 'i' && size == 4) e = number<std::int32_t>(text);
  if (kind == 'i' && size == 8) e = number<std::int64_t>(text);
  if ((kind == 'u' || kind == 'b') && size == 1) e = number<std::uint8_t>(text);
  if (kind == 'u' && size == 2) e = number<std::uint16_t>(text);
  if (kind == 'u' && size == 4) e = number<std::uint32_t>(text);
  if (kind == 'u' && size == 8) e = number<std::uint64_t>(text);
  return e;
}

}  // namespace

void add_salvage_option(command_line& line) {
  line.option()("salvage", po::value<std::string>()->value_name("VALUE"),
                "what cannot be read of a file gets this value (a number, nan; of plain files and structures a byte), "
                "is counted, and the status is 1; without it, such a file is left out");
}

salvage::salvage(const std::string& value, const storage::entry& file) : value_(value) {
  const storage::array_description& array = file.array;
  const bool bytes = is_filled_by_bytes(array);
  element_ = bytes ? number<std::uint8_t>(value) : filling_element(value, array.element_type, array.element_size);
  if (element_.empty())
    throw usage_mistake("--salvage: '" + value + "' is no " + (bytes ? "byte (0 to 255)" : array.element_type) +
                        ", which '" + file.path + "' needs");
  if (bytes && !array.extents.empty()) element_.resize(array.element_size, element_[0]);
  // Checksums change at the ends of stripes, and every 4 KiB of what a node has: at multiples of this in the file.
  const std::uint64_t unit = std::gcd(storage::chunk_size, file.striping.sf);
  together_ = std::max<std::uint64_t>(1, unit / element_.size());
}

std::optional<salvage> salvage::of(const command_line& line, const storage::entry& file) {
  if (!line.has("salvage")) return std::nullopt;
  return salvage(line.text("salvage"), file);
}

void salvage::lose(range r, std::byte* out) {
  for (std::uint64_t i = r.begin; i < r.end; ++i, out += element_.size())
    std::memcpy(out, element_.data(), element_.size());
  lost_ += r.end - r.begin;
  if (!first_.empty() && last_end_ == r.begin) {
    if (more_ == 0) first_.back().end = r.end;
  } else if (first_.size() < named_ranges) {
    first_.push_back(r);
  } else {
    ++more_;
  }
  last_end_ = r.end;
}

void salvage::read(std::uint64_t begin, std::uint64_t end, std::uint64_t tile, std::uint64_t at, std::byte* out,
                   const read_elements& read) {
  const auto readable = [&](std::uint64_t from, std::uint64_t to, std::byte* memory) {
    const failure f = read(from, to, memory);
    if (f && why_.empty()) why_ = f.what;
    return !f;
  };
  if (readable(begin, end, out)) return;
  check_interrupted();
  const std::uint64_t n = end - begin;
  const bool apart = tile != 0 && begin / tile != (end - 1) / tile;
  std::vector<std::byte> one(element_.size());
  // Both ends of what has at most two checksums are unreadable: so is all between them.
  if (n == 1 ||
      (!apart && n <= together_ && !readable(begin, begin + 1, one.data()) && !readable(end - 1, end, one.data())))
    return lose({at, at + n}, out);
  std::uint64_t left = n > together_ ? (n / 2 + together_ - 1) / together_ * together_ : n / 2;
  if (apart) {  // at the beginning of a tile
    const std::uint64_t middle = (begin + n / 2) / tile * tile;
    left = (middle > begin ? middle : middle + tile) - begin;
  }
  this->read(begin, begin + left, tile, at, out, read);
  this->read(begin + left, end, tile, at + left, out + left * element_.size(), read);
}

std::string salvage::report(const std::string& path) const {
  const bool bytes = element_.size() == 1;
  std::string text = "'" + path + "': " + std::to_string(lost_) + (bytes ? " bytes" : " elements");
  if (!bytes) text += " (" + std::to_string(lost_ * element_.size()) + " bytes)";
  text += " cannot be read and are " + value_ + " in the copy: ";
  for (std::size_t i = 0; i < first_.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(first_[i].begin) + "-" + std::to_string(first_[i].end - 1);
  if (more_ != 0) text += " and " + std::to_string(more_) + " more ranges";
  return text + " (" + why_ + ")";
}

}  // namespace ooc::tool
