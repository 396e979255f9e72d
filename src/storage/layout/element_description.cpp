#include "storage/layout/element_description.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <utility>

#include "storage/layout/element_type.hpp"
#include "storage/layout/python_literal.hpp"

namespace ooc::storage {

namespace {

constexpr std::uint64_t largest_element = 1 << 16;
constexpr bool little = std::endian::native == std::endian::little;
constexpr std::size_t deepest = 32;  // records in records

std::uint64_t number_in(std::string_view digits) {
  std::uint64_t n = 0;
  const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return r.ec == std::errc() && r.ptr == digits.data() + digits.size() && digits[0] != '0' ? n : 0;
}

/// "M8", "m8[25us]".
bool is_time(std::string_view type) {
  if (!type.starts_with("M8") && !type.starts_with("m8")) return false;
  std::string_view unit = type.substr(2);
  if (unit.empty()) return true;
  if (unit.size() < 3 || unit.front() != '[' || unit.back() != ']') return false;
  unit = unit.substr(1, unit.size() - 2);
  // As NumPy has it: a number, the unit, and perhaps "/number".
  return std::ranges::all_of(unit, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/';
  });
}

std::uint64_t size_of_type(std::string_view type) {
  if (is_time(type)) return 8;
  if (type.size() < 2) return 0;
  const std::uint64_t n = number_in(type.substr(1));
  switch (type[0]) {
    case 'S':
    case 'V': return n <= largest_element ? n : 0;
    case 'U': return n <= largest_element / 4 ? 4 * n : 0;
    case 's': return 0;  // "struct8" is our name, not NumPy's
    default: return element_size(type);
  }
}

element_description scalar(const std::string& text) {
  const std::string shown = "elements of NumPy type '" + text + "'";
  if (text.empty()) throw no_element("elements of NumPy type '' are not supported");
  const bool ordered = std::string_view("<>|=").find(text[0]) != std::string_view::npos;
  element_description d;
  d.type = text.substr(ordered ? 1 : 0);
  if (d.type == "O")
    throw no_element(shown +
                     " are Python objects, which have no bytes to store; give the array a type of fixed size first");
  if (d.type.starts_with("T"))
    throw no_element(shown +
                     " are strings of variable length, which have no place to be stored in; give the array a "
                     "type of fixed size first, with .astype('S20') or .astype('U20')");
  if (size_of_type(d.type) == 0)
    throw no_element(shown + " are not supported; give them one of fixed size, with .astype(): " + element_types +
                     ", S and U texts, times, records of them");
  d.swapped = ordered && text[0] == (little ? '>' : '<') && d.unit() != 0;
  return d;
}

std::uint64_t times(std::uint64_t n, const std::vector<std::uint64_t>& shape) {
  for (const std::uint64_t k : shape) {
    if (k == 0) return 0;
    if (n > largest_element / k) return largest_element + 1;
    n *= k;
  }
  return n;
}

element_description read(literal_reader& in, std::size_t depth);

element_field read_field(literal_reader& in, std::size_t depth) {
  element_field f;
  in.expect('(');
  if (in.accept('(')) {
    f.title = in.string();
    in.expect(',');
    f.name = in.string();
    in.accept(',');
    in.expect(')');
  } else {
    f.name = in.string();
  }
  in.expect(',');
  f.element = read(in, depth + 1);
  if (in.accept(',') && in.at('(')) {
    f.shape = in.numbers();
    in.accept(',');
  }
  in.expect(')');
  return f;
}

element_description read(literal_reader& in, std::size_t depth) {
  if (depth > deepest) throw no_element("elements are records in records more than 32 deep");
  if (in.at('\'') || in.at('"')) return scalar(in.string());
  if (in.at('(')) throw no_element("elements are arrays themselves; save them as more dimensions of the array");
  element_description d;
  in.expect('[');
  while (!in.accept(']')) {
    d.fields.push_back(read_field(in, depth));
    if (!in.accept(',') && !in.at(']')) throw malformed_literal("its fields are not a list");
  }
  return d;
}

}  // namespace

std::uint64_t element_field::size() const { return times(element.size(), shape); }

std::uint64_t element_description::size() const {
  if (!type.empty()) return size_of_type(type);
  std::uint64_t bytes = 0;
  for (const element_field& f : fields) bytes = std::min(bytes + f.size(), largest_element + 1);
  return bytes;
}

std::uint32_t element_description::unit() const {
  const auto bytes = static_cast<std::uint32_t>(size());
  switch (kind()) {
    case 'S':
    case 'V': return 0;
    case 'U': return 4;
    case 'c': return bytes / 2;
    default: return bytes > 1 ? bytes : 0;
  }
}

std::string element_description::text() const {
  if (!type.empty()) return python_string((unit() == 0 ? '|' : swapped == little ? '>' : '<') + type);
  std::string all = "[";
  for (const element_field& f : fields) {
    all += all.size() > 1 ? ", (" : "(";
    all += f.title.empty() ? python_string(f.name) : "(" + python_string(f.title) + ", " + python_string(f.name) + ")";
    all += ", " + f.element.text();
    for (std::size_t i = 0; i < f.shape.size(); ++i) all += (i == 0 ? ", (" : ", ") + std::to_string(f.shape[i]);
    all += f.shape.empty() ? ")" : f.shape.size() == 1 ? ",))" : "))";
  }
  return all + "]";
}

element_description read_description(literal_reader& in) {
  element_description d = read(in, 0);
  const std::uint64_t bytes = d.size();
  if (bytes == 0 || bytes > largest_element)
    throw no_element("elements of NumPy type " + d.text() + " have " + (bytes == 0 ? "no bytes" : "more than 64 KiB") +
                     "; 1 to 65536 bytes are possible");
  return d;
}

element_description description_of(std::string_view text) {
  try {
    literal_reader in(text);
    element_description d = read_description(in);
    if (!in.finished()) throw malformed_literal("something follows");
    return d;
  } catch (const malformed_literal& why) {
    throw no_element("'" + std::string(text) + "' describes no type (" + why.what() + ")");
  }
}

recorded_element recorded(const element_description& d) {
  const auto bytes = static_cast<std::uint32_t>(d.size());
  const std::string structure = "struct" + std::to_string(bytes);
  if (d.type.empty() || d.swapped) return {structure, bytes, d.text()};
  if (d.kind() == 'V') return {structure, bytes, ""};
  if (element_size(d.type) != 0) return {d.type, bytes, ""};
  return {structure, bytes, d.text()};
}

element_description description_named(const std::string& name) {
  element_description d;
  d.type = name.starts_with("struct") ? "V" + name.substr(6) : name;
  return d;
}

}  // namespace ooc::storage
