// Opening a file that belongs to no store: what it holds, whether that can be, and a store_core
// with this one file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/open_file.hpp"
#include "storage/base/page.hpp"
#include "storage/base/refuse.hpp"
#include "storage/base/whole_transfer.hpp"
#include "storage/chunked/chunked_node.hpp"
#include "storage/layout/element_order.hpp"
#include "storage/layout/element_type.hpp"
#include "storage/layout/npy.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/single_file.hpp"

namespace ooc::storage {
namespace {

using detail::place_request;

constexpr std::uint64_t greatest_chunk = ~std::uint32_t{0};  // as in HDF5
constexpr std::uint64_t longest_header = (1 << 20) + 12;     // of a .npy file

std::string extents_text(const std::vector<std::uint64_t>& extents) {
  std::string s = "{";
  for (const std::uint64_t e : extents) s += (s.size() > 1 ? ", " : "") + std::to_string(e);
  return s + "}";
}

plain_file opened_in_place(const std::string& path, bool writable) {
  plain_file f;
  f.path = path;
  f.writable = writable;
  const int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY;
  f.file = file_descriptor(::open(path.c_str(), flags | O_NONBLOCK));  // a pipe is not waited for
  if (!f.file) {
    const std::error_code why(errno, std::generic_category());
    const bool read_only = why == std::errc::read_only_file_system || why == std::errc::permission_denied ||
                           why == std::errc::operation_not_permitted;
    refuse(why, path,
           std::string("cannot be opened") + (writable ? " for writing" : "") + ": " + why.message() +
               (writable && read_only ? "; open it for reading only, with ooc::open_read_only" : ""));
  }
  struct stat s {
  }, again{};
  if (::fstat(f.file.get(), &s) != 0)
    throw io_error({errno, std::generic_category()}, "'" + path + "' cannot be looked at");
  if (S_ISDIR(s.st_mode)) refuse(std::make_error_code(std::errc::is_a_directory), path, "is a folder");
  if (!S_ISREG(s.st_mode)) refuse(errc::invalid_request, path, "is no regular file, which alone can be used in place");
  static_cast<void>(::fcntl(f.file.get(), F_SETFL, 0));
  f.direct = file_descriptor(::open(path.c_str(), flags | O_DIRECT));
  if (f.direct && (::fstat(f.direct.get(), &again) != 0 || again.st_ino != s.st_ino || again.st_dev != s.st_dev))
    f.direct = file_descriptor();  // somebody has put another file there
  // Only single elements and the ends of blocks go through the page cache.
  static_cast<void>(::posix_fadvise(f.file.get(), 0, 0, POSIX_FADV_RANDOM));
  return f;
}

npy_header npy_header_of(const plain_file& f, std::uint64_t size) {
  std::string text(std::min(size, longest_header), '\0');
  if (const int e = read_whole(f.file.get(), text.data(), text.size(), 0))
    throw io_error({e, std::generic_category()}, "'" + f.path + "' cannot be read");
  std::istringstream in(std::move(text));
  return read_npy_header(in, f.path);
}

struct place_contents {
  array_description array;
  std::uint64_t offset = 0;
  bool column_major = false;
  std::uint32_t alignment = 1;
};

place_contents contents_of_npy(const place_request& r, const plain_file& f, std::uint64_t size) {
  const file_contents& asked = r.contents;
  if (asked.offset != 0)
    refuse(errc::invalid_request, f.path,
           "an offset is for raw files; the header of a .npy file says where its data begin");
  npy_header h = npy_header_of(f, size);
  if (h.swap_unit != 0)
    refuse(errc::type_mismatch, f.path,
           "its elements have the other byte order: `ooc import` turns them round on their way into a store");
  place_contents c;
  c.array.element_type = h.element_type;
  c.array.element_size = h.element_size;
  c.offset = h.data_offset;
  c.alignment = r.alignment ? r.alignment : element_alignment(h.element_type, h.element_size);
  if (h.shape.empty())
    refuse(errc::invalid_request, f.path, "holds a single number without dimensions, which is no array");
  if (!asked.extents.empty() && !std::equal(asked.extents.begin(), asked.extents.end(), h.shape.begin(), h.shape.end()))
    refuse(errc::type_mismatch, f.path,
           "holds an array of extents " + extents_text(h.shape) + "; asked for were " +
               extents_text({asked.extents.begin(), asked.extents.end()}));
  c.column_major = asked.order == index_order::column_major;
  if (h.shape.size() > 1 && h.fortran_order != c.column_major)
    refuse(errc::type_mismatch, f.path,
           h.fortran_order ? "its elements are in Fortran's order: open it with .order = "
                             "ooc::index_order::column_major, and take the extents, and all indices, in reverse"
                           : "its elements are in row-major order; open it with .order = "
                             "ooc::index_order::row_major");
  c.array.extents = std::move(h.shape);
  return c;
}

place_contents contents_of_raw(const place_request& r, const plain_file& f, std::uint64_t size) {
  const file_contents& asked = r.contents;
  if (r.element_type.empty() || r.element_size == 0)
    refuse(errc::invalid_request, f.path, "say the type of its elements; a raw file does not tell it");
  place_contents c;
  c.array.element_type = r.element_type;
  c.array.element_size = r.element_size;
  c.offset = asked.offset;
  c.column_major = asked.order == index_order::column_major;
  c.alignment = r.alignment ? r.alignment : element_alignment(r.element_type, r.element_size);
  if (asked.offset > size)
    refuse(errc::invalid_request, f.path,
           "the offset " + std::to_string(asked.offset) + " is beyond its end, at byte " + std::to_string(size));
  c.array.extents.assign(asked.extents.begin(), asked.extents.end());
  if (c.array.extents.empty()) {
    const std::uint64_t left = size - asked.offset;
    if (left % r.element_size != 0)
      refuse(errc::invalid_request, f.path,
             "its " + std::to_string(left) + " bytes from byte " + std::to_string(asked.offset) +
                 " on are no whole number of elements of " + std::to_string(r.element_size) +
                 " bytes; say the extents");
    c.array.extents = {left / r.element_size};
  }
  return c;
}

/// Checks what is asked of a dataset in chunks, beside its table.
void check_chunked(const place_request& r, const place_contents& c, const std::string& path) {
  const file_contents& asked = r.contents;
  const std::string what = path + "', dataset '" + asked.chunks->dataset;
  if (asked.extents.empty() || asked.offset != 0 || c.column_major)
    refuse(errc::invalid_request, what, "a dataset in chunks has extents, and neither an offset nor another order");
  if (std::ranges::find(asked.extents, 0U) != asked.extents.end())
    refuse(errc::invalid_request, what, "it has no elements, and so no chunks");
  const auto bytes = bytes_of({asked.chunks->extents.begin(), asked.chunks->extents.end()}, r.element_size);
  if (!bytes_of(c.array.extents, r.element_size)) refuse(errc::invalid_request, what, "it passes 2^63 - 1 bytes");
  if (!bytes || *bytes > greatest_chunk)
    refuse(errc::invalid_request, what,
           "its chunks have 4 GiB or more, and smaller ones only are used in place: `ooc import` it");
}

/// Checks that the file has what is said of it.
void check_contents(const place_contents& c, const plain_file& f, std::uint64_t size) {
  const std::vector<std::uint64_t>& extents = c.array.extents;
  const auto extents_of_array = c.column_major ? std::vector(extents.rbegin(), extents.rend()) : extents;
  if (std::find(extents_of_array.begin() + 1, extents_of_array.end(), 0u) != extents_of_array.end())
    refuse(errc::invalid_request, f.path,
           "holds no elements: of an array of extents " + extents_text(extents_of_array) + " only the first may be 0");
  if (c.offset % c.alignment != 0)
    refuse(errc::invalid_request, f.path,
           "its elements begin at byte " + std::to_string(c.offset) + ", which is no multiple of " +
               std::to_string(c.alignment) + ", the alignment of " + c.array.element_type +
               "; copy it to an array of a store (ooc import)");
  const std::optional<std::uint64_t> bytes = bytes_of(extents, c.array.element_size);
  if (!bytes)
    refuse(errc::invalid_request, f.path,
           "extents " + extents_text(extents) + " of elements of " + std::to_string(c.array.element_size) +
               " bytes pass 2^63 - 1 bytes");
  if (*bytes > size || c.offset > size - *bytes)
    refuse(errc::invalid_request, f.path,
           "extents " + extents_text(extents) + " of elements of " + std::to_string(c.array.element_size) +
               " bytes need " + std::to_string(*bytes) + " bytes from byte " + std::to_string(c.offset) + " on, " +
               std::to_string(c.offset + *bytes) + " in all, and the file has " + std::to_string(size) +
               "; give the extents of what is there, or copy it again where it was cut short");
}

entry entry_of(const struct stat& s, const std::string& path, place_contents c) {
  entry e = entry_in_place(s, path, *bytes_of(c.array.extents, c.array.element_size));
  if (c.column_major) std::ranges::reverse(c.array.extents);
  e.array = std::move(c.array);
  e.lead = c.offset % page_bytes;
  return e;
}

}  // namespace
}  // namespace ooc::storage

namespace ooc::detail {

std::string path_in_place(std::string_view path) {
  if (path.starts_with("file:")) {
    path.remove_prefix(5);
    for (const std::string_view here : {"//localhost/", "///"})
      if (path.starts_with(here)) path.remove_prefix(here.size() - 1);
    if (!path.starts_with('/') || path.starts_with("//"))
      throw usage_error(
          errc::invalid_request,
          "'file:" + std::string(path) + "' names no file of this machine: write file:/path, or the path alone");
  }
  return std::string(path);
}

store store_in_place(const place_request& r) {
  using namespace storage;
  const std::string path = path_in_place(r.path);
  if (path.empty()) refuse(errc::invalid_request, path, "say the path of a file");
  if (r.grouped)
    refuse(errc::invalid_request, path,
           "options.group is for files of a store: let each rank open the file for itself, for "
           "reading only or with options.shared = true");
  plain_file f = opened_in_place(path, r.writable);
  struct stat s {};
  if (::fstat(f.file.get(), &s) != 0)
    throw io_error({errno, std::generic_category()}, "'" + path + "' cannot be looked at");
  if (r.contents.read_from && *r.contents.read_from != file_identity{s.st_dev, s.st_ino})
    refuse({ESTALE, std::generic_category()}, path,
           "another file has taken its place since its header was read; open it again");
  const auto size = static_cast<std::uint64_t>(s.st_size);
  const file_format format = r.contents.chunks ? file_format::raw : r.contents.format;
  const bool npy = format == file_format::npy || (format == file_format::by_name && path.ends_with(".npy"));
  place_contents c = npy ? contents_of_npy(r, f, size) : contents_of_raw(r, f, size);
  const auto& chunks = r.contents.chunks;
  if (chunks)
    check_chunked(r, c, path);
  else
    check_contents(c, f, size);
  f.begin = c.offset;
  const auto file = std::make_shared<const plain_file>(std::move(f));
  const auto node = chunks ? make_chunked_node(file, c.array, *chunks, r.memory) : make_plain_file_node(file);
  // The identity of the file, whatever path leads to it: it is open once in a process.
  const std::string identity = "file on device " + std::to_string(s.st_dev);
  return store(std::make_shared<store_core>("file:" + path, identity,
                                            std::make_shared<single_file>(entry_of(s, path, std::move(c)), file),
                                            striped_file::nodes{node}));
}

}  // namespace ooc::detail
