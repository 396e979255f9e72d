// The request of a typed array to the compiled one, to be made or opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "oocarray/array_options.hpp"

namespace ooc::detail {

enum class memory_layout : std::uint8_t { right, tiled };

/// The request of a typed array to the core.
struct array_request {
  enum class how : std::uint8_t { create, create_or_open, open, open_read_only };

  how action = how::open;
  memory_layout layout = memory_layout::right;
  std::string element_type;  ///< empty: type and rank are those recorded with the file
  std::uint32_t element_size = 0;
  std::size_t rank = 0;
  std::vector<std::uint64_t> extents;  ///< empty: those recorded with the file
  std::vector<std::byte> fill;         ///< one element; empty: zeros
  array_options<std::byte> options;    ///< all but `fill`
};

}  // namespace ooc::detail
