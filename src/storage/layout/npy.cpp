#include "storage/layout/npy.hpp"

#include <algorithm>
#include <array>
#include <istream>

#include "oocarray/error.hpp"
#include "storage/layout/element_description.hpp"
#include "storage/layout/element_order.hpp"
#include "storage/layout/python_literal.hpp"

namespace ooc::storage {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr std::size_t max_header = std::size_t{1} << 20;

[[noreturn]] void malformed(const std::string& name, const std::string& why) {
  throw usage_error(errc::invalid_request, "'" + name + "' is not a usable .npy file: " + why +
                                               "; copy it again where it was cut short, and say type and shape "
                                               "where it is a raw file");
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t n = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[i]);
  return n;
}

/// Versions 1 and 2 have their header in Latin-1, version 3 in UTF-8.
std::string from_latin_1(std::string_view text) {
  std::string s;
  for (const char c : text) append_utf8(s, static_cast<unsigned char>(c));
  return s;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void set_element(npy_header& h, element_description d) {
  if (d.swapped) h.swap_unit = d.unit();
  d.swapped = false;
  const recorded_element is = recorded(d);
  h.element_type = is.name;
  h.element_size = is.size;
  h.description = is.description;
}

/// {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
npy_header read_dictionary(const std::string& text, const std::string& name) {
  npy_header h;
  bool has_descr = false, has_order = false, has_shape = false;
  literal_reader r(text);
  r.expect('{');
  while (!r.accept('}')) {
    const std::string key = r.string();
    r.expect(':');
    if (key == "descr") {
      try {
        set_element(h, read_description(r));
      } catch (const no_element& why) {
        throw usage_error(errc::type_mismatch, "'" + name + "': " + why.what());
      }
      has_descr = true;
    } else if (key == "fortran_order") {
      h.fortran_order = r.boolean();
      has_order = true;
    } else if (key == "shape") {
      h.shape = r.numbers();
      has_shape = true;
    } else {
      throw malformed_literal("it has an unknown key '" + key + "'");
    }
    if (!r.accept(',') && !r.at('}')) throw malformed_literal("it is not a Python dictionary");
  }
  if (!r.finished()) throw malformed_literal("something follows the dictionary in it");
  if (!has_descr || !has_order || !has_shape) throw malformed_literal("it lacks descr, fortran_order or shape");
  return h;
}

}  // namespace

npy_header read_npy_header(std::istream& in, const std::string& name) {
  std::array<char, 12> start{};
  in.read(start.data(), 8);
  if (!in || std::string_view(start.data(), magic.size()) != magic)
    malformed(name, "it does not begin with the .npy mark");
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3)
    malformed(name, "format version " + std::to_string(version) + " is unknown (1 to 3 are known)");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  in.read(start.data() + 8, static_cast<std::streamsize>(length_bytes));
  if (!in) malformed(name, "its header is cut short");
  const std::uint64_t length = little_endian({start.data() + 8, length_bytes});
  if (length > max_header) malformed(name, "its header claims to be longer than 1 MiB");
  std::string text(length, '\0');
  in.read(text.data(), static_cast<std::streamsize>(length));
  if (!in) malformed(name, "its header is cut short");

  if (version < 3) text = from_latin_1(text);
  npy_header h;
  try {
    h = read_dictionary(text, name);
  } catch (const malformed_literal& why) {
    malformed(name, std::string("of its header: ") + why.what());
  }
  h.data_offset = 8 + length_bytes + length;
  h.data_bytes = h.element_size;
  bool empty = false;
  for (const std::uint64_t n : h.shape) empty = empty || n == 0;
  if (empty) h.data_bytes = 0;
  for (const std::uint64_t n : h.shape) {
    if (empty) break;
    if (n > max_array_bytes / h.data_bytes) malformed(name, "its shape has more than 2^63 - 1 bytes");
    h.data_bytes *= n;
  }
  return h;
}

std::string format_npy_header(std::string_view element_type, const std::vector<std::uint64_t>& shape,
                              std::string_view description) {
  const std::string descr =
      description.empty() ? description_named(std::string(element_type)).text() : std::string(description);
  std::string text = "{'descr': " + descr + ", 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }";

  const bool utf8 = !is_ascii(text);
  const auto with_prefix = [&](std::size_t length_bytes) {
    const std::size_t prefix = 8 + length_bytes;
    const std::size_t total = (prefix + text.size() + 1 + 63) / 64 * 64;
    std::string out(magic);
    out += static_cast<char>(utf8 ? 3 : length_bytes == 2 ? 1 : 2);
    out += '\0';
    const std::size_t length = total - prefix;
    for (std::size_t i = 0; i < length_bytes; ++i) out += static_cast<char>(length >> (8 * i) & 0xff);
    out += text;
    out.resize(total - 1, ' ');
    out += '\n';
    return out;
  };
  return text.size() + 128 < 65536 && !utf8 ? with_prefix(2) : with_prefix(4);
}

}  // namespace ooc::storage
