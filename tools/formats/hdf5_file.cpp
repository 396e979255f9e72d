#include "formats/hdf5_file.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <array>

#include "base/entry_text.hpp"
#include "base/named_path.hpp"
#include "formats/hdf5_attributes.hpp"
#include "formats/hdf5_descriptions.hpp"
#include "formats/hdf5_opening.hpp"
#include "formats/hdf5_sources.hpp"
#include "formats/hdf5_types.hpp"
#include "oocarray/error.hpp"
#include "oocarray/units.hpp"
#include "storage/layout/element_type.hpp"
#include "storage/layout/fill_pattern.hpp"
#include "storage/layout/placement.hpp"

namespace ooc::tool {

using namespace hdf5;

namespace {

constexpr std::size_t listed = 20;

std::string quoted(const std::string& file, const std::string& dataset) {
  return "'" + file + "': dataset '" + dataset + "'";
}

std::string first_of(const std::vector<std::string>& reasons) {
  return reasons[0] + (reasons.size() > 1 ? ", and " + std::to_string(reasons.size() - 1) + " more" : "");
}

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

std::vector<std::string> object_names(hid_t file, H5O_type_t type) {
  struct found {
    H5O_type_t type;
    std::vector<std::string> names;
  } all{type, {}};
  H5Ovisit2(
      file, H5_INDEX_NAME, H5_ITER_INC,
      [](hid_t, const char* name, const auto* info, void* out) -> herr_t {
        auto* const kept = static_cast<found*>(out);
        if (info->type == kept->type) kept->names.emplace_back(name);
        return 0;
      },
      &all, H5O_INFO_BASIC);
  return all.names;
}

std::vector<std::string> dataset_names(hid_t file) { return object_names(file, H5O_TYPE_DATASET); }

/// Links to other files that lead to datasets, or, where `any`, to wherever they lead.
std::vector<std::string> linked_names(hid_t file, bool any) {
  std::vector<std::string> names;
  H5Lvisit(
      file, H5_INDEX_NAME, H5_ITER_INC,
      [](hid_t, const char* name, const H5L_info_t* info, void* out) -> herr_t {
        if (info->type == H5L_TYPE_EXTERNAL) static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &names);
  if (!any)
    std::erase_if(names,
                  [&](const std::string& n) { return !handle(H5Dopen2(file, n.c_str(), H5P_DEFAULT), H5Dclose); });
  return names;
}

storage::index extents_of(hid_t dataset, const std::string& what) {
  storage::index n = extents_of_dataset(dataset);
  if (n.empty()) throw usage_error(errc::invalid_request, what + " has no shape (H5S_NULL), which every array has");
  return n;
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

/// Without the bare dimensions; where there are no others, links to other files that lead to some.
std::vector<std::string> value_names(hid_t file) {
  auto all = dataset_names(file);
  std::erase_if(all, [&](const std::string& n) {
    const handle d(H5Dopen2(file, n.c_str(), H5P_DEFAULT), H5Dclose);
    return d && is_bare_dimension(d);
  });
  return all.empty() ? linked_names(file, false) : all;
}

std::string chosen(hid_t file, const std::string& name, const std::string& wanted) {
  // Links to other files are in no list, and can be opened.
  std::string why;
  if (!wanted.empty()) {
    if (handle(H5Dopen2(file, wanted.c_str(), H5P_DEFAULT), H5Dclose)) return trimmed(wanted);
    why = last_error();
  }
  auto all = wanted.empty() ? value_names(file) : dataset_names(file);
  if (all.empty()) all = linked_names(file, false);
  const auto links = linked_names(file, true);
  if (std::find(links.begin(), links.end(), trimmed(wanted)) != links.end())
    throw usage_error({ENOENT, std::generic_category()},
                      "'" + name + "': '" + wanted + "' is a link to another file, and cannot be followed: " + why);
  if (all.empty())
    throw usage_error(
        errc::invalid_request,
        "'" + name + "' holds no dataset, only " +
            (links.empty() ? "folders, if anything" : "links to other files that lead nowhere: " + links[0]));
  if (wanted.empty()) {
    if (all.size() == 1) return all[0];
    throw usage_error(errc::invalid_request,
                      "'" + name + "' holds several datasets; say which one with --dataset: " + list_of(file, all));
  }
  throw usage_error({ENOENT, std::generic_category()},
                    "'" + name + "' has no dataset '" + wanted + "'; it has " + list_of(file, all));
}

void check_filters(hid_t creation, const std::string& what) {
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    std::array<char, 64> name{};
    const H5Z_filter_t id =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, name.size(), name.data(), &config);
    if (H5Zfilter_avail(id) > 0) continue;
    throw usage_error(errc::invalid_request,
                      what + " is compressed by filter " + std::to_string(id) + " ('" + name.data() +
                          "'), which libhdf5 does not find here; install its plugin and name its folder in "
                          "HDF5_PLUGIN_PATH, or rewrite the file with `h5repack -f NONE`");
  }
}

/// Selects the box in the dataset; a handle to as many elements in memory.
std::pair<handle, handle> selected(hid_t dataset, const storage::index& lower, const storage::index& upper) {
  std::vector<hsize_t> start(lower.begin(), lower.end()), count;
  for (std::size_t d = 0; d < lower.size(); ++d) count.push_back(upper[d] - lower[d]);
  handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
  handle file(H5Dget_space(dataset), H5Sclose);
  if (H5Sget_simple_extent_ndims(file) > 0)
    H5Sselect_hyperslab(file, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  return {std::move(file), std::move(memory)};
}

}  // namespace

std::vector<std::string> hdf5_dataset_names(const std::string& file) {
  const handle opened = open_for_reading(file);
  auto names = value_names(opened);
  if (names.empty()) (void)chosen(opened, file, "");  // says so
  return names;
}

std::vector<hdf5_group> hdf5_groups(const std::string& file) {
  const handle opened = open_for_reading(file);
  std::vector<hdf5_group> groups;
  for (const std::string& path : object_names(opened, H5O_TYPE_GROUP)) {
    const handle group(H5Gopen2(opened, path.c_str(), H5P_DEFAULT), H5Gclose);
    hdf5_group g;
    if (group) g.attributes = read_plain_attributes(group, g.left_out);
    if (path != ".") g.path = path;
    std::erase_if(g.attributes, [&g](const auto& a) {
      if (storage::is_of_store(a.first))
        g.left_out.push_back("attribute '" + a.first + "' says how the store that it comes from keeps its files");
      return storage::is_of_store(a.first);
    });
    if (!g.attributes.empty() || !g.left_out.empty()) groups.push_back(std::move(g));
  }
  return groups;
}

struct hdf5_input::impl {
  std::string what;
  handle file, data;
  std::string dataset;
  element_type element;
  storage::array_description array;
  storage::index chunk;
  std::uint64_t chunk_bytes = 0;  ///< of one that is packed
  lost_elements lost;
  bool looked = false;  ///< for what is lost
  std::vector<std::byte> fill;
  bool leaves_missing = false;  ///< a read may leave the memory of elements that were never written as it was
  texts attributes;
  std::vector<std::string> left_out;
};

hdf5_input::hdf5_input(const std::string& file, const std::string& dataset) : impl_(std::make_unique<impl>()) {
  impl& m = *impl_;
  m.file = open_for_reading(file);
  m.dataset = chosen(m.file, file, dataset);
  m.what = quoted(file, m.dataset);
  const handle access = access_to_sources();
  m.data = handle(H5Dopen2(m.file, m.dataset.c_str(), access), H5Dclose);
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
  if (const std::string source = first_source(creation);
      !source.empty() && std::find(m.array.extents.begin(), m.array.extents.end(), 0u) != m.array.extents.end())
    throw usage_error(errc::invalid_request, m.what + " has no elements: " + source + "is not there, or has none");
  check_filters(creation, m.what);
  if (H5Pget_layout(creation) == H5D_CHUNKED) {
    std::array<hsize_t, H5S_MAX_RANK> n{};
    const int rank = H5Pget_chunk(creation, H5S_MAX_RANK, n.data());
    m.chunk.assign(n.begin(), n.begin() + rank);
    if (H5Pget_nfilters(creation) > 0) {
      m.chunk_bytes = std::max<std::uint64_t>(m.element.size, H5Tget_size(type));
      for (const std::uint64_t k : m.chunk) m.chunk_bytes *= k;
      // Room for one chunk, so that one that is read in parts is unpacked once.  What is not packed is read without it.
      H5Pset_chunk_cache(access, 1, std::max<std::uint64_t>(m.chunk_bytes, 1_MiB), 1.0);
      m.data = handle(H5Dopen2(m.file, m.dataset.c_str(), access), H5Dclose);
    }
  }
  H5D_fill_value_t has_fill = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(creation, &has_fill) >= 0 && has_fill == H5D_FILL_VALUE_USER_DEFINED) {
    m.fill.resize(m.element.size);
    if (H5Pget_fill_value(creation, m.element.type, m.fill.data()) < 0)
      throw usage_error(errc::invalid_request, m.what + ": its fill value cannot be read: " + last_error());
    if (std::all_of(m.fill.begin(), m.fill.end(), [](std::byte b) { return b == std::byte{}; })) m.fill.clear();
  }
  H5D_fill_time_t when = H5D_FILL_TIME_IFSET;
  m.leaves_missing = H5Pget_fill_time(creation, &when) < 0 || when == H5D_FILL_TIME_NEVER ||
                     has_fill == H5D_FILL_VALUE_UNDEFINED || H5Pget_layout(creation) == H5D_VIRTUAL;
  m.attributes = read_attributes(m.data, m.dataset, m.left_out);
}

hdf5_input::~hdf5_input() = default;

const std::string& hdf5_input::dataset() const { return impl_->dataset; }
const storage::array_description& hdf5_input::array() const { return impl_->array; }
const std::string& hdf5_input::description() const { return impl_->element.description; }
bool hdf5_input::is_stored_as_described() const {
  return is_stored_as(handle(H5Dget_type(impl_->data), H5Tclose), impl_->element.type);
}
const storage::index& hdf5_input::chunk() const { return impl_->chunk; }
const std::vector<std::byte>& hdf5_input::fill() const { return impl_->fill; }
const texts& hdf5_input::attributes() const { return impl_->attributes; }
const std::vector<std::string>& hdf5_input::left_out() const { return impl_->left_out; }

void hdf5_input::check_memory(const detail::memory_limit& limit) const {
  // Packed and unpacked, or before and after a filter, at the same time.
  detail::check_chunk_memory({.what = impl_->what,
                              .extents = shape_text(impl_->chunk),
                              .bytes = impl_->chunk_bytes,
                              .needed = 2 * impl_->chunk_bytes,
                              .remedy = "rewrite it in smaller ones where there is more (`h5repack -l CHUNK=...`)"},
                             limit);
}

void hdf5_input::check_sources(const storage::index& lower, const storage::index& upper, bool fill) {
  impl& m = *impl_;
  lost_elements now = find_lost(m.data, lower, upper);
  if (now.count != 0 && !fill)
    throw usage_error(errc::invalid_request,
                      m.what + " takes " + std::to_string(now.count) +
                          " elements from where they are not: " + first_of(now.reasons) +
                          "; put it there, or give --missing-as-fill to have the fill value instead");
  if (m.looked && now.count != m.lost.count)
    throw usage_error(errc::invalid_request, m.what + ": its sources have changed while it was read; import it again");
  m.looked = true;
  m.lost = std::move(now);
}

std::string hdf5_input::filled() const {
  const impl& m = *impl_;
  if (m.lost.count == 0) return {};
  return m.what + ": " + std::to_string(m.lost.count) +
         " elements have the fill value, as they are missing: " + first_of(m.lost.reasons);
}

void hdf5_input::read(const storage::index& lower, const storage::index& upper, std::span<std::byte> out) {
  be_quiet();
  const impl& m = *impl_;
  const auto read = [&](const storage::index& first, const storage::index& last, hid_t in_memory) {
    const auto [in_file, packed] = selected(m.data, first, last);
    if (H5Dread(m.data, m.element.type, in_memory < 0 ? static_cast<hid_t>(packed) : in_memory, in_file, H5P_DEFAULT,
                out.data()) < 0)
      throw io_error::in_full(
          {EIO, std::generic_category()},
          m.what + " cannot be read: " + last_error() + "; where it is damaged, take the file from its source again");
  };
  if (m.lost.count == 0 && !m.leaves_missing) return read(lower, upper, -1);
  storage::fill_with(m.fill, 0, out);
  if (m.lost.count == 0) return read(lower, upper, -1);
  for (const slab& b : blocks_without(m.lost, lower, upper)) {
    std::vector<hsize_t> extents, first;
    storage::index last;
    for (std::size_t d = 0; d < lower.size(); ++d) {
      extents.push_back(upper[d] - lower[d]);
      first.push_back(b.start[d] - lower[d]);
      last.push_back(b.start[d] + b.block[d]);
    }
    const handle memory(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
    H5Sselect_hyperslab(memory, H5S_SELECT_SET, first.data(), nullptr, b.block.data(), nullptr);
    read({b.start.begin(), b.start.end()}, last, memory);
  }
}

hdf5_place hdf5_in_place(const std::string& file, const hdf5_input& in) {
  const detail::hdf5::opened_dataset opened(file, in.dataset());
  const storage::array_description& is = in.array();
  const std::size_t alignment = storage::element_alignment(is.element_type, is.element_size);
  detail::hdf5::dataset_place at(opened.dataset, file, in.dataset(), false, alignment);
  if (!in.description().empty() && !in.is_stored_as_described())
    at.refuse("has records or texts that are converted as they are read, such as big-endian numbers");
  at.require(is.element_type, is.element_size);
  return {std::move(at.path), std::move(at.contents)};
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
    if (!good) throw io_error::in_full({EIO, std::generic_category()}, m.what + " cannot be made: " + last_error());
  };
  if (d.description.empty())
    m.element = element_named(d.array.element_type, d.array.element_size, m.what);
  else
    m.element.type = type_described(storage::description_of(d.description), m.what);
  const handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18,
                       H5F_LIBVER_LATEST);  // attributes of more than 64 KiB
  m.file = handle(H5Fcreate(part.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose);
  check(static_cast<bool>(m.file));
  const handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (!d.chunk.empty()) {
    const std::vector<hsize_t> chunk(d.chunk.begin(), d.chunk.end());
    check(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()) >= 0);
    if (d.deflate != 0) check(H5Pset_shuffle(creation) >= 0 && H5Pset_deflate(creation, d.deflate) >= 0);
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
  m.data = handle(H5Dcreate2(m.file, d.name.c_str(), m.element.type, space, links, creation, H5P_DEFAULT), H5Dclose);
  check(static_cast<bool>(m.data));
  write_attributes(m.file, m.data, d.name, d.attributes, d.array.extents, m.what);
  const std::string folder = folder_of(d.name);
  const handle group(H5Gopen2(m.file, folder.empty() ? "/" : folder.c_str(), H5P_DEFAULT), H5Gclose);
  check(static_cast<bool>(group));
  write_plain_attributes(group, d.of_group, m.what);
}

hdf5_output::~hdf5_output() = default;

void hdf5_output::write(const storage::index& lower, const storage::index& upper, std::span<const std::byte> in) {
  be_quiet();
  const auto [in_file, in_memory] = selected(impl_->data, lower, upper);
  if (H5Dwrite(impl_->data, impl_->element.type, in_memory, in_file, H5P_DEFAULT, in.data()) < 0)
    throw io_error::in_full({EIO, std::generic_category()}, impl_->what + " cannot be written: " + last_error());
}

void hdf5_output::finish() {
  be_quiet();
  const bool written = impl_->data.reset() >= 0 && H5Fflush(impl_->file, H5F_SCOPE_GLOBAL) >= 0;
  if (!written || impl_->file.reset() < 0)
    throw io_error::in_full({EIO, std::generic_category()}, impl_->what + " cannot be written: " + last_error());
}

}  // namespace ooc::tool
