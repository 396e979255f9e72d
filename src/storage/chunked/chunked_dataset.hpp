// What is known of an array that lies in chunks before any of them is read.
//
// A value that does not change; who reads it shares it.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/file_chunks.hpp"
#include "storage/chunked/chunk_grid.hpp"

namespace ooc::storage {

struct chunked_dataset {
  std::string name;  ///< of file and dataset, for messages
  chunk_grid grid;
  file_chunks chunks;
  std::uint32_t element_size;

  /// The name of the file that a chunk, or the shard that it is in, has for itself, as chunk_files says.
  std::string file_of(std::uint64_t chunk) const;
  /// An error about a chunk in this file, which is named with the dataset and its place.
  failure failed(const std::string& file, std::uint64_t chunk, std::error_code code, const std::string& why,
                 bool reading = true) const;
};

}  // namespace ooc::storage
