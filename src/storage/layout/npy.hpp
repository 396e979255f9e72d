// The header of NumPy's .npy files, versions 1 to 3: what the array is and where its data begin.
//
// Data are never touched here.  Everything that a header can say and oocarray cannot store is
// refused with usage_error (errc::type_mismatch) and a remedy; a file that is not .npy, or cut
// short, with usage_error (errc::invalid_request).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace ooc::storage {

struct npy_header {
  std::string element_type;          ///< oocarray's name, see element_type.hpp
  std::uint32_t element_size = 0;    ///< bytes
  std::string description;           ///< of elements that the name does not say, see element_description.hpp
  std::uint32_t swap_unit = 0;       ///< in the file the bytes of each so many stand in the other order; 0: none do
  bool fortran_order = false;        ///< first index fastest
  std::vector<std::uint64_t> shape;  ///< as NumPy prints it; empty: one element
  std::uint64_t data_offset = 0;     ///< bytes of the header
  std::uint64_t data_bytes = 0;      ///< product of shape times element_size
};

/// Reads a header and leaves `in` at the first byte of the data.  `name` is for messages.
npy_header read_npy_header(std::istream& in, const std::string& name);

/// The header (version 1, or 2 where that is too small, or 3 where fields have names beyond ASCII) for an array in
/// row-major order.  Its length is a multiple of 64.
std::string format_npy_header(std::string_view element_type, const std::vector<std::uint64_t>& shape,
                              std::string_view description = {});

}  // namespace ooc::storage
