// Files that belong to no store, used as arrays where they lie: raw files, and .npy files of NumPy.
//
//     auto a = ooc::open_file<double, 2>(rt, "/data/a.npy", ooc::open_read_only);
//     auto b = ooc::open_file<float, 3>(rt, "/data/b.raw", ooc::open,
//                                       {.extents = {100, 2000, 3000}, .offset = 512});
//
// Datasets of HDF5 and NetCDF-4 are opened by ooc::open_hdf5() (oocarray/hdf5.hpp), which has libhdf5 say where the
// elements lie.
//
// What is in chunks, packed by the filters of oocarray/file_chunks.hpp, is opened for reading in the same way;
// file_contents::chunks says where the chunks lie.  They are decoded when they are touched.  So is an array of Zarr,
// whose chunks are files of their own, or lie in shards: the file that is opened is then the one that describes it.
// Such chunks can be written to as well.  A chunk that has been changed is packed once all of it has been written, or
// others need its memory, and at the latest by writeback(); its file is then replaced by a new one, so that whoever
// reads it sees the chunk as it was or as it is.  A process that dies loses no more than it had not written back.
// Several processes, with options.shared, write different chunks; of two that write to one, the later takes the
// elements of the other back.
//
// Nothing is copied: the array's blocks are read from the file, and written to it, with the budget,
// the read-ahead, the pins and the algorithms of any other array.  What differs from a file of a store:
//
//   - No checksums: what is read is what the file holds, and damage on the disk is not noticed.
//   - No undo log: a write that a crash cuts short leaves old bytes, new ones, or some of each.  No
//     byte outside the elements is ever written.  writeback() returns when the operating system has
//     the bytes, writeback(ooc::durable) after fdatasync().
//   - Algorithms that need room beside the array (ooc::sort, fft and sweeps beyond memory) take it in the folder of the
//     file, for a file without a name that goes with the call or the process.  The program must be allowed to make files
//     there.
//   - The size stays: resize() and options.max_extents are refused, and so are attributes.  An
//     algorithm in the middle (ooc::sort) leaves no mark on the file if its process dies.
//   - Openers are kept apart by an advisory lock of the whole file (fcntl, F_OFD_SETLK): one writer,
//     or any number of readers; with options.shared, writers and readers together.  It keeps out those
//     who ask for it, as oocarray does, and nobody else: a program that writes to the file meanwhile
//     is not noticed, and its bytes may be overwritten by a block's.  File systems without such locks
//     keep nobody apart.  In one process a file is open once for writing, or any
//     number of times for reading.
//   - A file that is cut off while it is open: writeback() throws io_error with both sizes; a touch of
//     an element that has to be read ends the process with the same message, as of any array.
//   - options.group is refused.  Ranks can open a file for reading each by itself, or for writing with
//     options.shared.
//
// The elements are in the byte order of this machine (`ooc import` turns others round on their way into a store) and
// begin at a multiple of their alignment.  Records, texts and times of a .npy file are struct<N> here.
// Memory is the image of the file: where elements begin within a page of the file, they begin within a
// page of memory, so that whole pages travel without a copy, past the page cache where the file system
// can do that (O_DIRECT).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/any_array.hpp"
#include "oocarray/file_chunks.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc {

/// In which order a file has its elements.
enum class index_order : std::uint8_t {
  row_major,     ///< the last index runs fastest, as in C and NumPy
  column_major,  ///< the first index runs fastest, as in Fortran, MATLAB and Julia
};

/// Whether a file says itself what it holds.
enum class file_format : std::uint8_t {
  by_name,  ///< npy where the name ends in ".npy", else raw
  raw,      ///< bytes; file_contents says what they are
  npy,      ///< type, extents, order and offset are those of the header
};

/// Which file it is, whatever its name: st_dev and st_ino of fstat().
struct file_identity {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const file_identity&) const = default;
};

/// The contents of a file, as far as it does not state them itself.
struct file_contents {
  file_format format = file_format::by_name;

  /// As whoever wrote the file has them; of a column-major file the array has them in reverse: its
  /// element a[k][j][i] is the writer's A(i, j, k).  Empty: those of the header; of a raw file, one
  /// dimension up to the file's end.
  std::vector<std::size_t> extents = {};

  /// Raw files: the byte at which the first element begins, a multiple of its alignment.
  std::uint64_t offset = 0;

  /// A .npy file in the other order than this is refused, so that no index changes its meaning unseen.
  index_order order = index_order::row_major;

  /// Raw files: not one piece at `offset`, but packed chunks.  Only chunks that are files of their own are written to.
  /// What is decoded of them takes up to half of the runtime's memory.
  std::optional<file_chunks> chunks = {};

  /// The file that the program has read all this from.  Another file that has taken its name since is refused (ESTALE),
  /// if the program keeps the first one open until then.
  std::optional<file_identity> read_from = {};
};

namespace detail {

/// The request of an array to a file in place.
struct place_request {
  std::string_view path;
  bool writable = false;
  bool grouped = false;      ///< options.group was given
  std::string element_type;  ///< empty: the header's
  std::uint32_t element_size = 0;
  std::uint32_t alignment = 0;  ///< of an element; 0: known from the type's name
  const file_contents& contents;
  std::uint64_t memory = 0;  ///< the runtime's budget
};

/// The file as a store with one file, which has its path: what open_file() opens.  Throws as
/// open_file() does.
store store_in_place(const place_request& r);

/// So many bytes, more than 0, in the folder of a file in place: a store with one file, which has no name and goes with
/// it; `told` is its path in messages.  Throws io_error.
store nameless_file_beside(const std::string& path, std::uint64_t bytes, const std::string& told);

/// The path without "file:".
std::string path_in_place(std::string_view path_or_url);

template <class T, std::size_t N, class Layout, class How>
ooc_array<T, N, Layout> open_in_place(runtime& rt, std::string_view path, How how, const file_contents& contents,
                                      const array_options<T>& options) {
  const store s = store_in_place({path, std::is_same_v<How, open_t>, options.group != nullptr,
                                  ooc::element_type<T>::name(), sizeof(T), alignof(T), contents, rt.memory()});
  return ooc_array<T, N, Layout>(rt, s, path_in_place(path), how, options);
}

// (In this namespace elementwise.hpp has a concept any_array.)
template <class How>
ooc::any_array open_any_in_place(runtime& rt, std::string_view path, How how, const element_format& type,
                                 const file_contents& contents, const ooc::any_array::options_type& options,
                                 memory_layout layout) {
  const store s = store_in_place(
      {path, std::is_same_v<How, open_t>, options.group != nullptr, type.name, type.size, 0, contents, rt.memory()});
  return ooc::any_array(rt, s, path_in_place(path), how, options, layout);
}

}  // namespace detail

/// Opens the file at a path, or at a URL "file:/path", as an array; see above.  Of `options` those
/// count that hold for the object alone (block, buffers, pattern, tile in memory, shared,
/// wait_for_writer).
///
/// Throws usage_error, naming the file: ENOENT, EACCES, EROFS, EISDIR; errc::type_mismatch for a .npy
/// file of other elements, another rank or order, of foreign byte order, and of types that are no plain
/// bytes (objects); errc::invalid_request for a file that is no .npy file although it should be, or
/// whose header is cut short, for one that is shorter than its extents need (with both sizes), an
/// offset beyond its end or between the places that elements can have, extents of 0 but the first, and
/// for options.group; errc::busy where the file is in use, see above; ESTALE where it is not contents.read_from.
template <class T, std::size_t N, class Layout = layout_right>
ooc_array<T, N, Layout> open_file(runtime& rt, std::string_view path, open_t how, const file_contents& contents = {},
                                  const array_options<T>& options = {}) {
  return detail::open_in_place<T, N, Layout>(rt, path, how, contents, options);
}
template <class T, std::size_t N, class Layout = layout_right>
ooc_array<T, N, Layout> open_file(runtime& rt, std::string_view path, open_read_only_t how,
                                  const file_contents& contents = {}, const array_options<T>& options = {}) {
  return detail::open_in_place<T, N, Layout>(rt, path, how, contents, options);
}

/// The same without a type: `type` is that of a raw file's elements, and may be empty for a .npy file.
inline any_array open_any_file(runtime& rt, std::string_view path, open_t how, const element_format& type = {},
                               const file_contents& contents = {}, const any_array::options_type& options = {},
                               detail::memory_layout layout = detail::memory_layout::right) {
  return detail::open_any_in_place(rt, path, how, type, contents, options, layout);
}
inline any_array open_any_file(runtime& rt, std::string_view path, open_read_only_t how,
                               const element_format& type = {}, const file_contents& contents = {},
                               const any_array::options_type& options = {},
                               detail::memory_layout layout = detail::memory_layout::right) {
  return detail::open_any_in_place(rt, path, how, type, contents, options, layout);
}

}  // namespace ooc
