#include "copying/array_to_read.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/named_path.hpp"
#include "formats/file_format.hpp"
#include "formats/hdf5_file.hpp"
#include "oocarray/detail/chunk_memory.hpp"
#include "oocarray/error.hpp"
#include "oocarray/zarr.hpp"
#include "storage/layout/element_description.hpp"

namespace ooc::tool {

namespace {

/// "run.h5/g/x" is the dataset "g/x" of "run.h5".
std::pair<std::string, std::string> file_and_dataset(const std::string& path) {
  namespace fs = std::filesystem;
  std::string dataset;
  for (fs::path at = path; !at.empty() && at != at.root_path(); at = at.parent_path()) {
    std::error_code ignored;
    if (fs::is_regular_file(at, ignored)) return {at.string(), dataset};
    dataset = at.filename().string() + (dataset.empty() ? "" : "/" + dataset);
  }
  throw usage_error({ENOENT, std::generic_category()}, "'" + path + "' does not exist");
}

array_to_read opened(const std::string& file, std::string name, const std::string& type, std::uint32_t element_size,
                     file_contents contents) {
  const auto s = detail::store_in_place(
      {file, false, false, type, element_size, 0, contents, detail::available_memory().bytes / 2});
  array_to_read a{s, s.core()->open(detail::path_in_place(file), storage::open_mode::read), std::move(contents), file};
  a.file.meta.path = std::move(name);
  return a;
}

bool is_zarr(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  return std::ranges::any_of(detail::zarr::descriptions,
                             [&](const char* name) { return fs::exists(fs::path(folder) / name, ignored); });
}

array_to_read opened_zarr(const std::string& folder) {
  zarr_description d = describe_zarr(folder);
  std::string numpy = d.numpy_type;
  if (d.big_endian && d.element_size > 1 && numpy.empty()) {
    numpy = std::exchange(d.element_type, "struct" + std::to_string(d.element_size));
    if (numpy.starts_with("struct")) numpy.clear();  // records, whose fields are not known here
  }
  array_to_read a = opened(d.path, folder, d.element_type, static_cast<std::uint32_t>(d.element_size), d.contents);
  a.file.meta.attributes = std::move(d.attributes);
  if (!numpy.empty())
    a.file.meta.attributes[storage::dtype_attribute] = std::string("'") + (d.big_endian ? '>' : '<') + numpy + "'";
  a.file.meta.fill = d.contents.chunks->fill;
  return a;
}

}  // namespace

array_to_read open_to_read(const command_line& line, const std::string& argument) {
  if (const auto path = plain_path(argument)) return open_in_place(*path);
  const located l = line.locate(argument);
  return {l.store, l.store.core()->open(l.path, storage::open_mode::read), {}, {}};
}

bool is_within_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return is_zarr(path);
  if (fs::exists(fs::symlink_status(path, ignored))) return false;
  for (fs::path at = fs::path(path).parent_path(); !at.empty() && at != at.root_path(); at = at.parent_path())
    if (fs::is_regular_file(at, ignored)) return has_hdf5_signature(at);
  return false;
}

array_to_read open_in_place(const std::string& path) {
  if (is_zarr(path)) return opened_zarr(path);
  const auto [file, dataset] = file_and_dataset(path);
  if (has_hdf5_signature(file)) {
    const hdf5_input in(file, dataset);
    hdf5_place place = hdf5_in_place(file, in);
    array_to_read a = opened(place.path, file + "/" + in.dataset(), in.array().element_type, in.array().element_size,
                             std::move(place.contents));
    a.file.meta.attributes = in.attributes();
    if (!in.description().empty()) a.file.meta.attributes[storage::dtype_attribute] = in.description();
    a.file.meta.fill = in.fill();
    return a;
  }
  if (!dataset.empty())
    throw usage_error({ENOTDIR, std::generic_category()}, "'" + path + "': '" + file + "' is no file of HDF5");
  if (!file.ends_with(".npy"))
    throw usage_error(errc::invalid_request,
                      "'" + file +
                          "' does not say what its bytes are, as .npy files and those of HDF5 do; "
                          "`ooc import` takes raw files with --type and --shape, and .npz files");
  return opened(file, file, "", 0, {});
}

}  // namespace ooc::tool
