#include "storage/layout/npy.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <istream>
#include <limits>

#include "oocarray/error.hpp"
#include "storage/layout/element_order.hpp"
#include "storage/layout/element_type.hpp"

namespace ooc::storage {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr std::size_t max_header = std::size_t{1} << 20;

[[noreturn]] void malformed(const std::string& name, const std::string& why) {
  throw usage_error(errc::invalid_request, "'" + name + "' is not a usable .npy file: " + why +
                                               "; copy it again where it was cut short, and say type and shape "
                                               "where it is a raw file");
}

[[noreturn]] void unsupported(const std::string& name, const std::string& why) {
  throw usage_error(errc::type_mismatch, "'" + name + "': " + why);
}

/// Reads the Python literal {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }.
class literal_reader {
 public:
  literal_reader(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) malformed(name_, std::string("its header lacks a '") + c + "'");
  }

  bool at(char c) {
    skip_space();
    return !rest_.empty() && rest_[0] == c;
  }

  std::string string() {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"'))
      malformed(name_, "its header lacks a string");
    const auto end = rest_.find(rest_[0], 1);
    if (end == rest_.npos) malformed(name_, "a string in its header does not end");
    std::string s(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return s;
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true},
                                      std::pair<std::string_view, bool>{"False", false}})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    malformed(name_, "fortran_order is neither True nor False");
  }

  std::uint64_t number() {
    skip_space();
    std::uint64_t n = 0;
    const auto r = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    if (r.ec != std::errc()) malformed(name_, "its shape holds something that is not a number");
    rest_.remove_prefix(static_cast<std::size_t>(r.ptr - rest_.data()));
    if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);  // written by Python 2
    return n;
  }

  bool finished() {
    skip_space();
    return rest_.empty();
  }

 private:
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t'))
      rest_.remove_prefix(1);
  }

  std::string_view rest_;
  const std::string& name_;
};

/// '<f8' -> "f8".
std::string element_type_of(const std::string& descr, const std::string& name) {
  const std::string shown = "elements of NumPy type '" + descr + "'";
  if (descr.size() < 2) unsupported(name, shown + " are not supported");
  constexpr bool little = std::endian::native == std::endian::little;
  const char order = descr[0];
  const std::string type = descr.substr(1);
  if (order == (little ? '>' : '<'))
    unsupported(name, shown +
                          " have the other byte order; convert them first: np.save(file, "
                          "a.astype(a.dtype.newbyteorder('=')))");
  if (order != '<' && order != '>' && order != '|' && order != '=')
    unsupported(name, shown + " are not supported");
  if (type[0] == 'V') {
    const std::string structure = "struct" + type.substr(1);
    if (element_size(structure) != 0) return structure;
  }
  if (type == "O")
    unsupported(name, shown +
                          " are Python objects, which have no bytes to store; give the array "
                          "a numeric type first");
  if (element_size(type) != 0 && type[0] != 's') return type;
  unsupported(name, shown + std::string(" are not supported (") + element_types +
                        " are); convert them with .astype(), or .view('V<bytes>') to keep the "
                        "bytes as they are");
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t n = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[i]);
  return n;
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

  npy_header h;
  h.data_offset = 8 + length_bytes + length;
  bool has_descr = false, has_order = false, has_shape = false;
  literal_reader r(text, name);
  r.expect('{');
  while (!r.accept('}')) {
    const std::string key = r.string();
    r.expect(':');
    if (key == "descr") {
      if (r.at('['))
        unsupported(name,
                    "elements with named fields are not supported; import their bytes: "
                    "np.save(file, a.view('V' + str(a.dtype.itemsize)))");
      h.element_type = element_type_of(r.string(), name);
      has_descr = true;
    } else if (key == "fortran_order") {
      h.fortran_order = r.boolean();
      has_order = true;
    } else if (key == "shape") {
      r.expect('(');
      while (!r.accept(')')) {
        h.shape.push_back(r.number());
        if (!r.accept(',') && !r.at(')')) malformed(name, "its shape is not a list of numbers");
      }
      has_shape = true;
    } else {
      malformed(name, "its header has an unknown key '" + key + "'");
    }
    if (!r.accept(',') && !r.at('}')) malformed(name, "its header is not a Python dictionary");
  }
  if (!r.finished()) malformed(name, "something follows the dictionary in its header");
  if (!has_descr || !has_order || !has_shape)
    malformed(name, "its header lacks descr, fortran_order or shape");

  h.element_size = element_size(h.element_type);
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

std::string format_npy_header(std::string_view element_type,
                              const std::vector<std::uint64_t>& shape) {
  const std::uint32_t size = element_size(element_type);
  const char order = std::endian::native == std::endian::little ? '<' : '>';
  std::string descr;
  if (element_type.starts_with("struct"))
    descr = "|V" + std::to_string(size);
  else
    descr = (size == 1 ? '|' : order) + std::string(element_type);
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }";

  const auto with_prefix = [&](std::size_t length_bytes) {
    const std::size_t prefix = 8 + length_bytes;
    const std::size_t total = (prefix + text.size() + 1 + 63) / 64 * 64;
    std::string out(magic);
    out += static_cast<char>(length_bytes == 2 ? 1 : 2);
    out += '\0';
    const std::size_t length = total - prefix;
    for (std::size_t i = 0; i < length_bytes; ++i)
      out += static_cast<char>(length >> (8 * i) & 0xff);
    out += text;
    out.resize(total - 1, ' ');
    out += '\n';
    return out;
  };
  return text.size() + 128 < 65536 ? with_prefix(2) : with_prefix(4);
}

}  // namespace ooc::storage
