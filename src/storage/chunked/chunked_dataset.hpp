// What is known of an array that lies in chunks before any of them is read.
//
// A value that does not change; who reads it shares it.
#pragma once

#include <cstdint>
#include <string>

#include "oocarray/file_chunks.hpp"
#include "storage/chunked/chunk_grid.hpp"

namespace ooc::storage {

struct chunked_dataset {
  std::string name;  ///< of file and dataset, for messages
  chunk_grid grid;
  file_chunks chunks;
  std::uint32_t element_size;
};

}  // namespace ooc::storage
