#include "formats/source_places.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "formats/hdf5_opening.hpp"
#include "oocarray/error.hpp"

namespace ooc::tool::hdf5 {

namespace {

namespace fs = std::filesystem;

/// The file that holds a dataset, as it was opened.
fs::path file_of(hid_t dataset) {
  std::string name(static_cast<std::size_t>(std::max<ssize_t>(0, H5Fget_name(dataset, nullptr, 0))), '\0');
  H5Fget_name(dataset, name.data(), name.size() + 1);
  return name;
}

fs::path folder_of(hid_t dataset) { return fs::absolute(file_of(dataset)).parent_path(); }

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// A prefix with what stands for the file's own folder.
std::string expanded(const std::string& prefix, hid_t dataset) {
  constexpr std::string_view own = "${ORIGIN}";
  return prefix.starts_with(own) ? folder_of(dataset).string() + prefix.substr(own.size()) : prefix;
}

/// As H5F_prefix_open_file() goes through them.
std::vector<fs::path> places_of(hid_t dataset, const std::string& given) {
  std::vector<fs::path> all;
  fs::path name = given;
  if (name.is_absolute()) {
    all.push_back(name);
    name = name.filename();
  }
  const std::string prefixes = variable("HDF5_VDS_PREFIX");
  for (std::size_t at = 0; at < prefixes.size();) {
    const std::size_t end = std::min(prefixes.find(':', at), prefixes.size());
    if (end > at) all.push_back(fs::path(prefixes.substr(at, end - at)) / name);
    at = end + 1;
  }
  if (!prefixes.empty() && prefixes != ".") all.push_back(fs::path(expanded(prefixes, dataset)) / name);
  all.push_back(folder_of(dataset) / name);
  all.push_back(name);
  std::error_code ec;
  if (fs::is_symlink(file_of(dataset), ec))
    if (const fs::path real = fs::canonical(file_of(dataset), ec); !ec) all.push_back(real.parent_path() / name);
  return all;
}

}  // namespace

handle open_source_file(hid_t dataset, const std::string& name, std::string& why) {
  const handle holder(H5Iget_file_id(dataset), H5Fclose);
  unsigned intent = 0;
  H5Fget_intent(holder, &intent);
  intent &= H5F_ACC_SWMR_READ;
  why = "there is no such file";
  for (const fs::path& place : places_of(dataset, name)) {
    handle f(H5Fopen(place.c_str(), H5F_ACC_RDONLY | intent, H5P_DEFAULT), H5Fclose);
    if (f) return f;
    std::error_code ec;
    if (!fs::exists(fs::symlink_status(place, ec))) continue;
    try {
      open_for_reading(place.string());
      why = "'" + place.string() + "' can be opened in SWMR mode only";
    } catch (const error& e) {
      why = e.what();
    }
  }
  return {};
}

std::string place_of_raw_file(hid_t dataset, const std::string& name) {
  const std::string prefix = expanded(variable("HDF5_EXTFILE_PREFIX"), dataset);
  if (prefix.empty() || prefix == "." || fs::path(name).is_absolute()) return name;
  return fs::path(prefix) / name;
}

std::string numbered(const std::string& name, std::uint64_t k) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool special = name[i] == '%' && i + 1 < name.size() && (name[i + 1] == 'b' || name[i + 1] == '%');
    if (!special)
      text += name[i];
    else
      text += name[++i] == 'b' ? std::to_string(k) : "%";
  }
  return text;
}

}  // namespace ooc::tool::hdf5
