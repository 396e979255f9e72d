// Datasets of HDF5 and NetCDF-4 as arrays where they lie, for programs that link libhdf5 (1.10.5 or newer).
//
//     #include <oocarray/hdf5.hpp>
//
//     auto t = ooc::open_hdf5<float, 3>(rt, "era5.nc", "t2m", ooc::open_read_only);
//     auto x = ooc::open_hdf5<double, 2>(rt, "run.h5", "x", ooc::open);   // in one piece: also for writing
//
// libhdf5 says where the elements lie, and nothing else: they are read by the library, chunks past libhdf5's filters
// and its lock, by all processors, as they are touched.  open_file.hpp says what an array in place lacks,
// file_chunks.hpp which filters can be undone.  The file is closed for libhdf5 when the call returns; close it
// everywhere else in the program, too, before the array is written to.
//
// The elements are of T as it lies in memory: numbers in this machine's byte order, std::complex<> as h5py has it (two
// numbers 'r' and 'i'), bool as an enumeration, struct<N> for records, texts and opaque types of a fixed size.
//
// Throws usage_error, naming file and dataset: ENOENT where there is none; errc::type_mismatch for elements of another
// type or shape, and for what is not used in place, with the remedy (`ooc import`): compact, virtual and external
// datasets, of which the Python package takes most, other filters, what libhdf5 has not written yet; what open_file()
// throws.
//
// Threads: as those of libhdf5; one call at a time, unless that was built for threads.
#pragma once

#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/open_file.hpp"

namespace ooc {
namespace detail::hdf5 {

/// Closes what libhdf5 has opened.
class handle {
 public:
  handle() = default;
  handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  handle(handle&& o) noexcept : id_(std::exchange(o.id_, -1)), close_(o.close_) {}
  handle& operator=(handle&& o) noexcept {
    std::swap(id_, o.id_);
    std::swap(close_, o.close_);
    return *this;
  }
  ~handle() { reset(); }
  herr_t reset() { return id_ >= 0 ? close_(std::exchange(id_, -1)) : 0; }
  operator hid_t() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// As long as it lives, libhdf5 keeps its messages to itself; they come out of last_error().
class quiet {
 public:
  quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  quiet(const quiet&) = delete;
  quiet& operator=(const quiet&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// The last error of libhdf5, in the words of its innermost function.
inline std::string last_error() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* e, void* to) -> herr_t {
        auto& said = *static_cast<std::string*>(to);
        if (said.empty() && e->desc != nullptr) said = e->desc;
        return 0;
      },
      &text);
  return text.empty() ? "libhdf5 does not say why" : text;
}

/// By what errno says.
[[noreturn]] inline void cannot_be_read(const std::string& path) {
  const std::error_code why(errno, std::generic_category());
  throw usage_error(why, "'" + path + "' cannot be read: " + why.message());
}

/// A dataset, and where it lies.
class dataset_place {
 public:
  /// `file` and `name` are those that it was asked for by; `alignment` is that of an element in memory.
  dataset_place(hid_t dataset, std::string file, std::string name, bool writable, std::size_t alignment)
      : dataset_(dataset),
        made_(H5Dget_create_plist(dataset), H5Pclose),
        type_(H5Dget_type(dataset), H5Tclose),
        path_(std::move(file)),
        name_(std::move(name)),
        element_(H5Tget_size(type_)) {
    find_file();
    const handle space(H5Dget_space(dataset), H5Sclose);
    const int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) refuse("has no elements and no shape");
    extents_.resize(static_cast<std::size_t>(rank));
    H5Sget_simple_extent_dims(space, extents_.data(), nullptr);
    contents.format = file_format::raw;
    contents.extents.assign(extents_.begin(), extents_.end());
    if (rank == 0) contents.extents = {1};
    if (std::find(extents_.begin(), extents_.end(), 0U) != extents_.end()) return;  // it lies nowhere
    find_elements(writable, alignment);
  }

  std::string path;  ///< of the file that has its elements: a link leads to another one than it was asked for in
  file_contents contents;

  /// Throws where its elements are not those of a type of this name and size.
  void require(const std::string& type, std::size_t size) const {
    if (!is(type, size))
      refuse("has elements of " + std::to_string(element_) + " bytes that are not of the type " + type);
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw usage_error(errc::type_mismatch, "'" + path_ + "', dataset '" + name_ + "': " + why +
                                               ", so it cannot be used in place: import it");
  }

 private:
  void find_file() {
    const handle holder(H5Iget_file_id(dataset_), H5Fclose), access(H5Fget_access_plist(holder), H5Pclose);
    void* vfd = nullptr;
    if (H5Pget_driver(access) != H5FD_SEC2 || H5Fget_vfd_handle(holder, H5P_DEFAULT, &vfd) < 0)
      refuse("lies in a file that libhdf5 reads by another driver than sec2");
    descriptor_ = *static_cast<int*>(vfd);
    struct ::stat file = {}, asked = {};
    if (::fstat(descriptor_, &file) != 0) cannot_be_read(path_);
    const bool same = ::stat(path_.c_str(), &asked) == 0 && asked.st_dev == file.st_dev && asked.st_ino == file.st_ino;
    path.resize(static_cast<std::size_t>(H5Fget_name(dataset_, nullptr, 0)));
    H5Fget_name(dataset_, path.data(), path.size() + 1);
    if (same) path = path_;
    contents.read_from = file_identity{file.st_dev, file.st_ino};
    const handle plist(H5Fget_create_plist(holder), H5Pclose);
    H5Pget_userblock(plist, &user_block_);
  }

  void find_elements(bool writable, std::size_t alignment) {
    switch (H5Pget_layout(made_)) {
      case H5D_CONTIGUOUS: {
        H5D_space_status_t written = H5D_SPACE_STATUS_ERROR;
        H5Dget_space_status(dataset_, &written);
        if (H5Pget_external_count(made_) > 0) refuse("is stored in other files");
        if (written != H5D_SPACE_STATUS_ALLOCATED) refuse("has no space in the file yet, as nothing was written to it");
        contents.offset = H5Dget_offset(dataset_);
        // What memory cannot map is copied.
        if (!writable && contents.offset % alignment != 0) find_pieces();
        return;
      }
      case H5D_CHUNKED:
        if (writable) refuse("is stored in chunks, which are only read in place");
        find_chunks();
        return;
      case H5D_COMPACT: refuse("is stored in the header of its file");
      default: refuse("is made up of other datasets");
    }
  }

  // --- element types

  bool is(const std::string& type, std::size_t size) const {
    if (element_ != size) return false;
    const H5T_class_t kind = H5Tget_class(type_);
    if (type == "c8" || type == "c16") {
      if (kind != H5T_COMPOUND || H5Tget_nmembers(type_) != 2) return false;
      const handle first(H5Tget_member_type(type_, 0), H5Tclose), second(H5Tget_member_type(type_, 1), H5Tclose);
      const hid_t part = type == "c8" ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
      return H5Tequal(first, part) > 0 && H5Tequal(second, part) > 0 && H5Tget_member_offset(type_, 1) == size / 2;
    }
    if (type == "b1")
      return size == 1 && (kind == H5T_BITFIELD || H5Tequal(type_, H5T_NATIVE_UINT8) > 0 || is_false_and_true());
    if (const hid_t number = native(type); number >= 0) return H5Tequal(type_, number) > 0;
    if (!type.starts_with("struct")) return false;  // no types of HDF5 are f2 or f16 for all compilers
    return H5Tdetect_class(type_, H5T_VLEN) <= 0 && H5Tis_variable_str(type_) <= 0 &&
           H5Tdetect_class(type_, H5T_REFERENCE) <= 0 && (kind != H5T_COMPOUND || is_in_native_order());
  }
  /// Of all numbers in a record.
  bool is_in_native_order() const {
    const H5T_order_t order = H5Tget_order(type_);
    return order == H5T_ORDER_NONE || order == H5Tget_order(H5T_NATIVE_INT);
  }
  bool is_false_and_true() const {
    std::array<unsigned char, 2> v{};
    return H5Tget_class(type_) == H5T_ENUM && H5Tget_nmembers(type_) == 2 &&
           H5Tget_member_value(type_, 0, &v[0]) >= 0 && H5Tget_member_value(type_, 1, &v[1]) >= 0 && v[0] + v[1] == 1;
  }
  static hid_t native(const std::string& type) {
    if (type == "f4") return H5T_NATIVE_FLOAT;
    if (type == "f8") return H5T_NATIVE_DOUBLE;
    if (type == "i1") return H5T_NATIVE_INT8;
    if (type == "i2") return H5T_NATIVE_INT16;
    if (type == "i4") return H5T_NATIVE_INT32;
    if (type == "i8") return H5T_NATIVE_INT64;
    if (type == "u1") return H5T_NATIVE_UINT8;
    if (type == "u2") return H5T_NATIVE_UINT16;
    if (type == "u4") return H5T_NATIVE_UINT32;
    if (type == "u8") return H5T_NATIVE_UINT64;
    return -1;
  }

  /// Pieces that follow each other in row-major order, as chunks without filters; the last ones are shorter.
  void find_pieces() {
    constexpr std::size_t wanted = 4 << 20;  // bytes
    file_chunks& c = contents.chunks.emplace();
    c.dataset = name_;
    c.extents = contents.extents;
    const std::size_t all = std::accumulate(c.extents.begin(), c.extents.end(), element_, std::multiplies<>());
    std::size_t row = all, line = all, piece = all;  // bytes: of an index of a dimension, and of all of them
    for (std::size_t& n : c.extents) {
      line = row;
      row /= n;
      n = std::min(n, std::max<std::size_t>(1, wanted / row));
      piece = n * row;
      if (n > 1 || row <= wanted) break;
    }
    if (piece > UINT32_MAX) refuse("begins at a byte where memory cannot map its elements");
    for (std::size_t begin = 0; begin < all; begin += line)
      for (std::size_t at = 0; at < line; at += piece)
        c.table.push_back({contents.offset + begin + at, static_cast<std::uint32_t>(std::min(piece, line - at)), 0});
    contents.offset = 0;
  }

  // --- chunks

  struct applied_filter {
    int place;  ///< among the filters of the dataset
    chunk_filter filter;
    std::vector<std::uint32_t> parameters;  ///< that unpacking needs
  };

  void find_chunks() {
    const std::vector<applied_filter> applied = filters();
    std::vector<hsize_t> shape(extents_.size());
    H5Pget_chunk(made_, static_cast<int>(shape.size()), shape.data());
    file_chunks& c = contents.chunks.emplace();
    c.dataset = name_;
    c.extents.assign(shape.begin(), shape.end());
    for (const applied_filter& f : applied) {
      c.filters.push_back(f.filter);
      c.parameters.push_back(f.parameters);
    }
    H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
    if (H5Pfill_value_defined(made_, &defined) >= 0 && defined != H5D_FILL_VALUE_UNDEFINED) {
      c.fill.resize(element_);
      H5Pget_fill_value(made_, type_, c.fill.data());
    }
    std::size_t whole = element_;
    for (const hsize_t n : shape) whole *= n;
    bool some_unpacked = !applied.empty();  // as long as no chunk at the end has shown that all there are packed
    std::vector<hsize_t> origin(shape.size(), 0);
    do {
      unsigned mask = 0;
      haddr_t at = 0;
      hsize_t bytes = 0;
      if (H5Dget_chunk_info_by_coord(dataset_, origin.data(), &mask, &at, &bytes) < 0)
        refuse("does not say where its chunks are (" + last_error() + ")");
      file_chunk& chunk = c.table.emplace_back();
      if (bytes == 0) continue;
      if (bytes > UINT32_MAX) refuse("has chunks of 4 GiB or more");
      look(origin, at, bytes);
      bool at_end = false;
      for (std::size_t d = 0; d < shape.size(); ++d) at_end = at_end || origin[d] + shape[d] > extents_[d];
      if (some_unpacked && at_end && bytes == whole && mask == 0) {
        some_unpacked = is_unpacked(origin, shape, bytes);
        mask = some_unpacked ? ~0U : 0;
      }
      chunk.offset = at;
      chunk.bytes = static_cast<std::uint32_t>(bytes);
      for (std::size_t i = 0; i < applied.size(); ++i) chunk.filter_mask |= (mask >> applied[i].place & 1U) << i;
    } while (advance(origin, shape));
    for (file_chunk& chunk : c.table)
      if (chunk.bytes != 0) chunk.offset += begins_.empty() ? 0 : begins_.front();
  }

  bool advance(std::vector<hsize_t>& origin, const std::vector<hsize_t>& shape) const {
    for (std::size_t d = shape.size(); d-- > 0;) {
      origin[d] += shape[d];
      if (origin[d] < extents_[d]) return true;
      origin[d] = 0;
    }
    return false;
  }

  std::vector<applied_filter> filters() const {
    std::vector<applied_filter> found;
    for (int i = 0; i < H5Pget_nfilters(made_); ++i) {
      unsigned flags = 0, config = 0, values[32] = {};
      std::size_t count = std::size(values);
      char name[64] = "";
      const H5Z_filter_t code =
          H5Pget_filter2(made_, static_cast<unsigned>(i), &flags, &count, values, sizeof name, name, &config);
      count = std::min(count, std::size(values));
      if (code == H5Z_FILTER_NBIT && count > 1 && values[1] == 1) continue;  // numbers that have all their bits stay
      chunk_filter filter{};
      if (!known(code, values, filter) || !can_undo(filter))
        refuse("is packed by the filter '" + (*name != '\0' ? std::string(name) : std::to_string(code)) +
               "', which is not undone in place");
      std::vector<std::uint32_t> parameters;
      if (filter == chunk_filter::szip || filter == chunk_filter::scale_offset)
        parameters.assign(values, values + count);
      // The fill value follows eight numbers; what is behind it was not written by anybody.
      const std::size_t used = 8 + (element_ + 3) / 4;
      if (filter == chunk_filter::scale_offset && used < parameters.size())
        std::fill(parameters.begin() + static_cast<std::ptrdiff_t>(used), parameters.end(), 0U);
      found.push_back({i, filter, std::move(parameters)});
    }
    return found;
  }
  bool known(H5Z_filter_t code, const unsigned (&values)[32], chunk_filter& filter) const {
    constexpr std::pair<int, chunk_filter> all[] = {
        {H5Z_FILTER_DEFLATE, chunk_filter::deflate},
        {H5Z_FILTER_SHUFFLE, chunk_filter::shuffle},
        {H5Z_FILTER_FLETCHER32, chunk_filter::fletcher32},
        {H5Z_FILTER_SZIP, chunk_filter::szip},
        {H5Z_FILTER_SCALEOFFSET, chunk_filter::scale_offset},
        {307, chunk_filter::bzip2},
        {32000, chunk_filter::lzf},
        {32001, chunk_filter::blosc},
        {32004, chunk_filter::hdf5_lz4},
        {32015, chunk_filter::zstd},
    };
    for (const auto& [number, name] : all)
      if (code == number) return filter = name, true;
    constexpr int bitshuffle = 32008;
    const unsigned size = values[2], block = values[3], packed_by = values[4];
    if (code != bitshuffle || size != element_ || (block != 0 && packed_by == 0)) return false;
    if (packed_by != 0 && packed_by != 2 && packed_by != 3) return false;
    filter = packed_by == 0   ? chunk_filter::bitshuffle
             : packed_by == 2 ? chunk_filter::bitshuffle_lz4
                              : chunk_filter::bitshuffle_zstd;
    return true;
  }

  /// Some versions of libhdf5 count a user block in, and some do not: the bytes of a chunk are compared with those that
  /// libhdf5 reads of it, of one, and where both could be right still, of each.
  void look(const std::vector<hsize_t>& origin, haddr_t at, hsize_t bytes) {
    if (seen_ && begins_.size() == 1) return;
    if (!seen_) begins_ = user_block_ == 0 ? std::vector<hsize_t>{0} : std::vector<hsize_t>{0, user_block_};
    seen_ = true;
    const std::vector<std::byte> there = raw_chunk(origin, bytes);
    std::erase_if(begins_, [&](hsize_t b) {
      std::vector<std::byte> found(bytes);
      return ::pread(descriptor_, found.data(), bytes, static_cast<::off_t>(b + at)) != static_cast<::ssize_t>(bytes) ||
             found != there;
    });
    if (begins_.empty()) refuse("has chunks that are not where its file says, or that are being written");
  }
  std::vector<std::byte> raw_chunk(const std::vector<hsize_t>& origin, hsize_t bytes) const {
    std::vector<std::byte> stored(bytes);
    std::uint32_t mask = 0;
    if (H5Dread_chunk(dataset_, H5P_DEFAULT, origin.data(), &mask, stored.data()) < 0)
      refuse("has a chunk that libhdf5 cannot read (" + last_error() + ")");
    return stored;
  }
  /// Whether a chunk at the end, as long as if it were not packed, is not (H5Pset_chunk_opts): its bytes are what
  /// libhdf5 reads of it.
  bool is_unpacked(const std::vector<hsize_t>& origin, const std::vector<hsize_t>& shape, hsize_t bytes) const {
    const std::vector<std::byte> stored = raw_chunk(origin, bytes);
    std::vector<hsize_t> part(shape.size());
    const std::vector<hsize_t> nothing(shape.size(), 0);
    for (std::size_t d = 0; d < shape.size(); ++d) part[d] = std::min(shape[d], extents_[d] - origin[d]);
    const handle in_file(H5Dget_space(dataset_), H5Sclose);
    const handle in_memory(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose);
    H5Sselect_hyperslab(in_file, H5S_SELECT_SET, origin.data(), nullptr, part.data(), nullptr);
    H5Sselect_hyperslab(in_memory, H5S_SELECT_SET, nothing.data(), nullptr, part.data(), nullptr);
    std::vector<std::byte> read = stored;  // what lies outside the dataset is equal
    return H5Dread(dataset_, type_, in_memory, in_file, H5P_DEFAULT, read.data()) >= 0 && read == stored;
  }

  const hid_t dataset_;
  const handle made_, type_;
  const std::string path_, name_;
  const std::size_t element_;  ///< bytes
  int descriptor_ = -1;
  hsize_t user_block_ = 0;
  std::vector<hsize_t> extents_;
  bool seen_ = false;
  std::vector<hsize_t> begins_;  ///< what must be added to the places of chunks: one of these
};

/// A dataset, opened for reading, in a file that stays open as long.
struct opened_dataset {
  handle file, dataset;

  opened_dataset(const std::string& path, const std::string& name) {
    const handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fapl_sec2(access);  // whatever HDF5_DRIVER says
    file = handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
    if (!file) {
      if (::access(path.c_str(), R_OK) != 0) cannot_be_read(path);
      throw usage_error(errc::invalid_request, "'" + path + "' cannot be opened as HDF5: " + last_error());
    }
    dataset = handle(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset)
      throw usage_error({ENOENT, std::generic_category()},
                        "'" + path + "' has no dataset '" + name + "': " + last_error());
  }
};

template <class T, std::size_t N, class Layout, class How>
ooc_array<T, N, Layout> open_dataset(runtime& rt, const std::string& path, const std::string& dataset, How how,
                                     const array_options<T>& options) {
  const quiet no_messages;
  const opened_dataset opened(path, dataset);
  const dataset_place at(opened.dataset, path, dataset, std::is_same_v<How, open_t>, alignof(T));
  at.require(ooc::element_type<T>::name(), sizeof(T));
  return open_file<T, N, Layout>(rt, at.path, how, at.contents, options);
}

}  // namespace detail::hdf5

/// Opens a dataset for reading and writing; it lies in one piece.  See above.
template <class T, std::size_t N, class Layout = layout_right>
ooc_array<T, N, Layout> open_hdf5(runtime& rt, const std::string& path, const std::string& dataset, open_t how,
                                  const array_options<T>& options = {}) {
  return detail::hdf5::open_dataset<T, N, Layout>(rt, path, dataset, how, options);
}
/// The same for reading, also of datasets in chunks.
template <class T, std::size_t N, class Layout = layout_right>
ooc_array<T, N, Layout> open_hdf5(runtime& rt, const std::string& path, const std::string& dataset,
                                  open_read_only_t how, const array_options<T>& options = {}) {
  return detail::hdf5::open_dataset<T, N, Layout>(rt, path, dataset, how, options);
}

}  // namespace ooc
