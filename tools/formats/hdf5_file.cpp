#include "formats/hdf5_file.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/entry_text.hpp"
#include "base/named_path.hpp"
#include "formats/hdf5_attributes.hpp"
#include "formats/hdf5_types.hpp"
#include "oocarray/error.hpp"
#include "oocarray/units.hpp"

namespace ooc::tool {

using namespace hdf5;

namespace {

constexpr std::size_t listed = 20;

std::string quoted(const std::string& file, const std::string& dataset) {
  return "'" + file + "': dataset '" + dataset + "'";
}

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

handle open_file(const std::string& file) {
  be_quiet();
  std::error_code ec;
  const auto status = std::filesystem::status(file, ec);
  if (!std::filesystem::exists(status))
    throw io_error({ENOENT, std::generic_category()}, "'" + file + "' cannot be read");
  if (std::filesystem::is_directory(status))
    throw io_error({EISDIR, std::generic_category()}, "'" + file + "' cannot be read");
  const htri_t is = H5Fis_hdf5(file.c_str());
  if (is == 0)
    throw usage_error(errc::invalid_request,
                      "'" + file +
                          "' is no HDF5 file: its signature is missing; NetCDF files of the "
                          "classic format become "
                          "one with `nccopy -k nc4`, and --format says what else it is");
  handle f(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!f)
    throw usage_error(
        errc::invalid_request,
        "'" + file + "' cannot be opened as HDF5: " + last_error() +
            "; where it was cut short, copy it again (`h5check`, `h5clear` look into it)");
  return f;
}

std::vector<std::string> dataset_names(hid_t file) {
  std::vector<std::string> names;
  H5Ovisit2(
      file, H5_INDEX_NAME, H5_ITER_INC,
      [](hid_t, const char* name, const auto* info, void* out) -> herr_t {
        if (info->type == H5O_TYPE_DATASET)
          static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &names, H5O_INFO_BASIC);
  return names;
}

storage::index extents_of(hid_t dataset, const std::string& what) {
  const handle space(H5Dget_space(dataset), H5Sclose);
  const H5S_class_t kind = space ? H5Sget_simple_extent_type(space) : H5S_NO_CLASS;
  if (kind == H5S_NULL || kind == H5S_NO_CLASS)
    throw usage_error(errc::invalid_request,
                      what + " has no elements, and every array has at least one");
  std::array<hsize_t, H5S_MAX_RANK> n{};
  const int rank = H5Sget_simple_extent_dims(space, n.data(), nullptr);
  if (rank == 0) return {1};
  return {n.begin(), n.begin() + rank};
}

/// A dimension of NetCDF-4 that has no values.
bool is_bare_dimension(hid_t dataset) {
  std::array<char, 64> name{};
  return H5DSis_scale(dataset) > 0 && H5DSget_scale_name(dataset, name.data(), name.size()) > 0 &&
         std::string(name.data()).starts_with("This is a netCDF dimension but not");
}

/// "plate/a (f8 100x100)", and so on.
std::string list_of(hid_t file, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(listed, names.size()); ++i) {
    const handle d(H5Dopen2(file, names[i].c_str(), H5P_DEFAULT), H5Dclose);
    const handle type(d ? H5Dget_type(d) : -1, H5Tclose);
    std::string is;
    try {
      if (type) is = element_of(type, "it").name + " " + shape_text(extents_of(d, "it"));
    } catch (const usage_error&) {
      is = "no array can be it";
    }
    text += (i == 0 ? "" : ", ") + names[i] + " (" + is + ")";
  }
  if (names.size() > listed) text += " and " + std::to_string(names.size() - listed) + " more";
  return text;
}

std::string chosen(hid_t file, const std::string& name, const std::string& wanted) {
  auto all = dataset_names(file);
  if (wanted.empty())
    std::erase_if(all, [&](const std::string& n) {
      const handle d(H5Dopen2(file, n.c_str(), H5P_DEFAULT), H5Dclose);
      return d && is_bare_dimension(d);
    });
  if (all.empty())
    throw usage_error(errc::invalid_request,
                      "'" + name + "' holds no dataset, only folders, if anything");
  if (wanted.empty()) {
    if (all.size() == 1) return all[0];
    throw usage_error(errc::invalid_request,
                      "'" + name + "' holds several datasets; say which one with --dataset: " +
                          list_of(file, all));
  }
  // Links to other files and the like are not in the list, and can be opened.
  const handle d(H5Dopen2(file, wanted.c_str(), H5P_DEFAULT), H5Dclose);
  if (d) return trimmed(wanted);
  throw usage_error({ENOENT, std::generic_category()},
                    "'" + name + "' has no dataset '" + wanted + "'; it has " + list_of(file, all));
}

void check_filters(hid_t creation, const std::string& what) {
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    std::array<char, 64> name{};
    const H5Z_filter_t id = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values,
                                           nullptr, name.size(), name.data(), &config);
    if (H5Zfilter_avail(id) > 0) continue;
    throw usage_error(
        errc::invalid_request,
        what + " is compressed by filter " + std::to_string(id) + " ('" + name.data() +
            "'), which libhdf5 does not find here; install its plugin and name its folder in "
            "HDF5_PLUGIN_PATH, or rewrite the file with `h5repack -f NONE`");
  }
}

/// Selects the box in the dataset; a handle to as many elements in memory.
std::pair<handle, handle> selected(hid_t dataset, const storage::index& lower,
                                   const storage::index& upper) {
  std::vector<hsize_t> start(lower.begin(), lower.end()), count;
  for (std::size_t d = 0; d < lower.size(); ++d) count.push_back(upper[d] - lower[d]);
  handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
  handle file(H5Dget_space(dataset), H5Sclose);
  if (H5Sget_simple_extent_ndims(file) > 0)
    H5Sselect_hyperslab(file, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  return {std::move(file), std::move(memory)};
}

}  // namespace

struct hdf5_input::impl {
  std::string what;
  handle file, data;
  std::string dataset;
  element_type element;
  storage::array_description array;
  storage::index chunk;
  std::vector<std::byte> fill;
  texts attributes;
  std::vector<std::string> left_out;
};

hdf5_input::hdf5_input(const std::string& file, const std::string& dataset)
    : impl_(std::make_unique<impl>()) {
  impl& m = *impl_;
  m.file = open_file(file);
  m.dataset = chosen(m.file, file, dataset);
  m.what = quoted(file, m.dataset);
  m.data = handle(H5Dopen2(m.file, m.dataset.c_str(), H5P_DEFAULT), H5Dclose);
  const handle type(m.data ? H5Dget_type(m.data) : -1, H5Tclose);
  handle creation(m.data ? H5Dget_create_plist(m.data) : -1, H5Pclose);
  if (!type || !creation)
    throw usage_error(
        errc::invalid_request,
        m.what + " cannot be opened: " + last_error() + "; if a newer HDF5 than the " + library_version() +
            " here has written the file, rewrite it there for older ones (`h5repack --low=0 --high=2`, in h5py "
            "libver=('earliest', 'v110')), else copy it again");
  m.element = element_of(type, m.what);
  m.array.element_type = m.element.name;
  m.array.element_size = m.element.size;
  m.array.extents = extents_of(m.data, m.what);
  check_filters(creation, m.what);
  if (H5Pget_layout(creation) == H5D_CHUNKED) {
    std::array<hsize_t, H5S_MAX_RANK> n{};
    const int rank = H5Pget_chunk(creation, H5S_MAX_RANK, n.data());
    m.chunk.assign(n.begin(), n.begin() + rank);
    // Room for one chunk, so that one that is read in parts is unpacked once.
    std::uint64_t bytes = m.element.size;
    for (const std::uint64_t k : m.chunk) bytes *= k;
    const handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    H5Pset_chunk_cache(access, 1, std::max<std::uint64_t>(bytes, 1_MiB), 1.0);
    m.data = handle(H5Dopen2(m.file, m.dataset.c_str(), access), H5Dclose);
  }
  H5D_fill_value_t has_fill = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(creation, &has_fill) >= 0 && has_fill == H5D_FILL_VALUE_USER_DEFINED) {
    m.fill.resize(m.element.size);
    if (H5Pget_fill_value(creation, m.element.type, m.fill.data()) < 0)
      throw usage_error(errc::invalid_request,
                        m.what + ": its fill value cannot be read: " + last_error());
    if (std::all_of(m.fill.begin(), m.fill.end(), [](std::byte b) { return b == std::byte{}; }))
      m.fill.clear();
  }
  m.attributes = read_attributes(m.data, m.dataset, m.left_out);
}

hdf5_input::~hdf5_input() = default;

const std::string& hdf5_input::dataset() const {
  return impl_->dataset;
}
const storage::array_description& hdf5_input::array() const {
  return impl_->array;
}
const storage::index& hdf5_input::chunk() const {
  return impl_->chunk;
}
const std::vector<std::byte>& hdf5_input::fill() const {
  return impl_->fill;
}
const texts& hdf5_input::attributes() const {
  return impl_->attributes;
}
const std::vector<std::string>& hdf5_input::left_out() const {
  return impl_->left_out;
}

void hdf5_input::read(const storage::index& lower, const storage::index& upper,
                      std::span<std::byte> out) {
  be_quiet();
  const auto [in_file, in_memory] = selected(impl_->data, lower, upper);
  if (H5Dread(impl_->data, impl_->element.type, in_memory, in_file, H5P_DEFAULT, out.data()) < 0)
    throw io_error({EIO, std::generic_category()},
                   impl_->what + " cannot be read: " + last_error() +
                       "; where it is damaged, take the file from its source again");
}

struct hdf5_output::impl {
  std::string what;
  handle file, data;
  element_type element;
};

hdf5_output::hdf5_output(const std::string& part, const std::string& file, const hdf5_dataset& d)
    : impl_(std::make_unique<impl>()) {
  impl& m = *impl_;
  be_quiet();
  m.what = quoted(file, d.name);
  const auto check = [&](bool good) {
    if (!good)
      throw io_error({EIO, std::generic_category()}, m.what + " cannot be made: " + last_error());
  };
  m.element = element_named(d.array.element_type, d.array.element_size, m.what);
  const handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18,
                       H5F_LIBVER_LATEST);  // attributes of more than 64 KiB
  m.file = handle(H5Fcreate(part.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose);
  check(static_cast<bool>(m.file));
  const handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (!d.chunk.empty()) {
    const std::vector<hsize_t> chunk(d.chunk.begin(), d.chunk.end());
    check(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()) >= 0);
    if (d.deflate != 0)
      check(H5Pset_shuffle(creation) >= 0 && H5Pset_deflate(creation, d.deflate) >= 0);
  } else {
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);  // every element is written
  }
  if (!d.fill.empty()) check(H5Pset_fill_value(creation, m.element.type, d.fill.data()) >= 0);
  const handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  const std::vector<hsize_t> extents(d.array.extents.begin(), d.array.extents.end());
  const handle space(d.chunk.empty() && is_scalar(d.attributes, d.array.extents)
                         ? H5Screate(H5S_SCALAR)
                         : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                     H5Sclose);
  m.data = handle(
      H5Dcreate2(m.file, d.name.c_str(), m.element.type, space, links, creation, H5P_DEFAULT),
      H5Dclose);
  check(static_cast<bool>(m.data));
  write_attributes(m.file, m.data, d.name, d.attributes, d.array.extents, m.what);
}

hdf5_output::~hdf5_output() = default;

void hdf5_output::write(const storage::index& lower, const storage::index& upper,
                        std::span<const std::byte> in) {
  be_quiet();
  const auto [in_file, in_memory] = selected(impl_->data, lower, upper);
  if (H5Dwrite(impl_->data, impl_->element.type, in_memory, in_file, H5P_DEFAULT, in.data()) < 0)
    throw io_error({EIO, std::generic_category()},
                   impl_->what + " cannot be written: " + last_error());
}

void hdf5_output::finish() {
  be_quiet();
  const bool written = impl_->data.reset() >= 0 && H5Fflush(impl_->file, H5F_SCOPE_GLOBAL) >= 0;
  if (!written || impl_->file.reset() < 0)
    throw io_error({EIO, std::generic_category()},
                   impl_->what + " cannot be written: " + last_error());
}

}  // namespace ooc::tool
