// Datasets that lie in a file in chunks, each packed by filters, as HDF5 and NetCDF-4 have them.
//
// A program that has opened the file with libhdf5 finds all of this there (the calls are named below), and hands it to
// open_file() as file_contents::chunks; the Python package does so.  The array then decodes chunks as they are touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ooc {

/// What has been done to the bytes of a chunk before they were written.
enum class chunk_filter : std::uint8_t {
  deflate,     ///< H5Z_FILTER_DEFLATE: zlib's format
  shuffle,     ///< H5Z_FILTER_SHUFFLE: the first bytes of all elements, then the second ones, ...
  fletcher32,  ///< H5Z_FILTER_FLETCHER32: four bytes at the end check those before
};

/// Where a chunk lies in the file (H5Dget_chunk_info_by_coord); one that was never written has 0 bytes.
struct file_chunk {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t filter_mask = 0;  ///< bit i: the i-th filter was left out
};

struct file_chunks {
  std::string dataset;                ///< its name, for messages
  std::vector<std::size_t> extents;   ///< of a chunk (H5Pget_chunk), as many as the dataset has
  std::vector<chunk_filter> filters;  ///< in the order in which they were applied (H5Pget_filter2)
  std::vector<file_chunk> table;      ///< row-major over the chunks
  std::vector<std::byte> fill;        ///< an element where no chunk was written (H5Pget_fill_value); empty: zeros
};

}  // namespace ooc
