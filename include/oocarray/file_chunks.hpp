// Datasets that lie in chunks, each packed by filters, as HDF5, NetCDF-4 and Zarr have them: in one file, or in many.
//
// A program that has read the file's description (by libhdf5, whose calls are named below, or from Zarr's JSON) hands
// this to open_file() as file_contents::chunks; the Python package does so.  The array then decodes chunks as they are
// touched.  Chunks that are files of their own, or lie in shards, can be written to as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ooc {

/// What has been done to the bytes of a chunk before they were written.
enum class chunk_filter : std::uint8_t {
  deflate,          ///< H5Z_FILTER_DEFLATE, Zarr's `zlib`: zlib's format
  shuffle,          ///< H5Z_FILTER_SHUFFLE: the first bytes of all elements, then the second ones, ...
  fletcher32,       ///< H5Z_FILTER_FLETCHER32: four bytes at the end check those before
  gzip,             ///< Zarr's `gzip`: gzip's format
  crc32c,           ///< Zarr's `crc32c`: four bytes at the end check those before
  zstd,             ///< Zarr's `zstd`, HDF5's filter 32015: a frame of Zstandard
  blosc,            ///< Zarr's `blosc`, HDF5's filter 32001: a buffer of C-Blosc 1
  lzf,              ///< HDF5's filter 32000, which h5py brings: a block of LibLZF
  lz4,              ///< numcodecs' `lz4`: the length in four bytes, little-endian, and a block of LZ4
  hdf5_lz4,         ///< HDF5's filter 32004: several of those
  bitshuffle,       ///< HDF5's filter 32008 without packing, in blocks of its own choice (cd_values[3] and [4] are 0)
  bitshuffle_lz4,   ///< the same with LZ4 (cd_values[4] is 2)
  bitshuffle_zstd,  ///< the same with Zstandard (cd_values[4] is 3)
  bzip2,            ///< HDF5's filter 307, numcodecs' `bz2`: a stream of bzip2
  szip,             ///< H5Z_FILTER_SZIP, with its four parameters
  scale_offset,     ///< H5Z_FILTER_SCALEOFFSET, with its twenty parameters
};

/// Whether the library can undo it: what packs, but for deflate and gzip, needs libraries that it may have been built
/// without.
bool can_undo(chunk_filter f) noexcept;
/// Whether the library can apply it: the same, but for lzf and those of HDF5 that follow lz4.
bool can_apply(chunk_filter f) noexcept;

/// How a filter packs what is written.  Unpacking asks for none of it.
struct chunk_packing {
  /// deflate and gzip: 0 to 9, of which ISA-L knows four (0, up to 3, up to 6, above), -1 is 6; blosc: 0 to 9; zstd: as
  /// its library has it; lz4: its acceleration; bzip2: 1 to 9.
  int level = 1;
  bool checksum = false;  ///< zstd: a checksum follows each frame

  enum class shuffling : std::uint8_t { none, bytes, bits };
  std::string blosc_codec = "lz4";  ///< blosc: blosclz, lz4, lz4hc, snappy, zlib or zstd
  shuffling blosc_shuffle = shuffling::bytes;
  std::uint32_t blosc_element = 0;  ///< bytes; 0: those of an element
  std::uint32_t blosc_block = 0;    ///< bytes; 0: its library chooses
};

/// Where a chunk lies in its file (H5Dget_chunk_info_by_coord); one that was never written has 0 bytes.  Without
/// filters one at the end of the array may lack what lies beyond that, where that is the end of the chunk: so pieces of
/// what is in no chunks need not divide it.
struct file_chunk {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t filter_mask = 0;  ///< bit i: the i-th filter was left out
};

/// Chunks in files of their own, or in shards of several.  The name of a file is `names`, followed by its place among
/// the files along each dimension, with `separator` in between: "/data/t.zarr/c/" and '/' give "/data/t.zarr/c/0/2".
/// A file that is not there holds chunks that were never written.  There is no table: a file may come, go or be
/// replaced while the array is open, and a chunk is what its file holds when it is decoded.
struct chunk_files {
  std::string names;
  char separator = '/';
  /// How many chunks a shard has along each dimension (Zarr's `sharding_indexed`); empty: each chunk is a whole file.
  std::vector<std::size_t> chunks = {};
  bool index_first = false;  ///< of shards: their index is at the beginning, and not at the end
  bool index_summed = true;  ///< of shards: its CRC32C follows the index

  /// Files with names of their own, instead (HDF5's virtual datasets), with a table: what each was when its part of
  /// that was read, and for each chunk, row-major, the number of its file.
  std::vector<std::string> paths = {};
  struct state {
    std::uint64_t bytes = 0;      ///< st_size; 0: there was none
    std::int64_t changed_ns = 0;  ///< st_mtim
    bool operator==(const state&) const = default;
  };
  std::vector<state> states = {};
  std::vector<std::uint32_t> file_of = {};

  bool have_table() const noexcept { return !paths.empty(); }
};

/// The places that the index of a Zarr shard says (`sharding_indexed`): offset and bytes of each chunk as 64-bit
/// numbers, little-endian, all ones for one that was never written; then, if `summed`, their CRC32C.  Throws
/// integrity_error where that does not match, and usage_error (errc::invalid_request) for what is no such index.
std::vector<file_chunk> chunks_of_shard(std::span<const std::byte> index, bool summed);

struct file_chunks {
  std::string dataset;                ///< its name, for messages
  std::vector<std::size_t> extents;   ///< of a chunk (H5Pget_chunk), as many as the dataset has
  std::vector<chunk_filter> filters;  ///< in the order in which they were applied (H5Pget_filter2)
  std::vector<file_chunk> table;      ///< row-major over the chunks, where there is one: see chunk_files
  std::vector<std::byte> fill;        ///< an element where no chunk was written (H5Pget_fill_value); empty: zeros
  /// The dimensions in the order in which a chunk stores them, the one whose index runs fastest last; empty: as they
  /// are.
  std::vector<std::size_t> stored_order = {};
  std::optional<chunk_files> files = {};  ///< none: all chunks are in the file that is opened
  /// Of each filter what unpacking needs to know (cd_values of H5Pget_filter2): of szip and scale_offset; empty:
  /// nothing.
  std::vector<std::vector<std::uint32_t>> parameters = {};
  /// Of each filter, where the array is written to; empty: as chunk_packing says.
  std::vector<chunk_packing> packing = {};
  /// The format does not say what elements have where no chunk was written (`fill_value` null of Zarr): a chunk that is
  /// written is stored, also one that has what `fill` says.
  bool fill_is_undefined = false;
};

}  // namespace ooc
