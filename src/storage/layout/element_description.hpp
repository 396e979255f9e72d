// The description of an element in NumPy's words: the `descr` of a .npy file, and the attribute `dtype` of an array
// whose elements have no name of their own (docs/disk-format.md, "Element types").
//
//     '<f8'                                              a number; the first character is the order of its bytes
//     '|S4', '<U3', '<M8[ns]'                            a text of 4 bytes, one of 3 characters, a time
//     [('x', '<f4'), ('pos', '<f8', (3,)), ('', '|V4')]  a record; a field without a name is padding
//
// Pure functions and values.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ooc::storage {

class literal_reader;

/// An element that no array can have; the caller adds whose element it is.
struct no_element : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct element_field;

struct element_description {
  std::string type;                   ///< without the order of bytes: "f8", "S4", "U3", "M8[ns]", "V7"; a record: empty
  bool swapped = false;               ///< its bytes have the order that is not this machine's
  std::vector<element_field> fields;  ///< of a record, one after the other

  /// Bytes.
  std::uint64_t size() const;
  char kind() const { return type.empty() ? 'V' : type[0]; }
  /// Bytes in which the order counts: 4 of "U3" and of "c8"; 0: the order says nothing.
  std::uint32_t unit() const;
  /// As Python writes it.
  std::string text() const;
};

struct element_field {
  std::string name, title;           ///< in UTF-8; title: mostly empty
  std::vector<std::uint64_t> shape;  ///< the field is an array of this shape; mostly empty
  element_description element;

  std::uint64_t size() const;
};

/// Throws malformed_literal (python_literal.hpp) for what is no description, and no_element for elements that have no
/// bytes, are not of fixed size, or of more than 64 KiB.
element_description read_description(literal_reader& in);
/// The same of a whole text.  Throws no_element for everything.
element_description description_of(std::string_view text);

/// The record that an array keeps of its elements.
struct recorded_element {
  std::string name;         ///< see element_type.hpp
  std::uint32_t size = 0;   ///< bytes
  std::string description;  ///< the attribute `dtype`; empty: the name says it
};
recorded_element recorded(const element_description& d);

/// The description of elements of a recorded name ("f8", "struct7").
element_description description_named(const std::string& name);

/// The attribute's name.
inline constexpr const char* dtype_attribute = "dtype";

}  // namespace ooc::storage
