#include "formats/hdf5_attributes.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/named_path.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/hdf5_types.hpp"
#include "oocarray/error.hpp"

namespace ooc::tool::hdf5 {

namespace {

using nlohmann::json;

constexpr const char* types_key = "hdf5.types";
constexpr const char* dimensions_key = "dimensions";

/// True for attributes that the machinery of dimension scales and NetCDF-4 keeps for itself.
bool is_internal(const std::string& name, bool is_scale) {
  static const std::set<std::string> always{"DIMENSION_LIST", "REFERENCE_LIST",      "DIMENSION_LABELS",
                                            "_Netcdf4Dimid",  "_Netcdf4Coordinates", "_nc3_strict",
                                            "_NCProperties"};
  return always.contains(name) || (is_scale && (name == "CLASS" || name == "NAME"));
}

template <class T>
std::string number_text(T value) {
  std::array<char, 64> text{};
  const auto r = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), r.ptr};
}

/// Numbers as they lie in memory, with commas between.
template <class T>
std::string numbers_text(const std::vector<std::byte>& bytes) {
  std::string all;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    all += (at == 0 ? "" : ",") + number_text(value);
  }
  return all;
}

template <class T>
std::vector<std::byte> numbers_of(const std::string& text) {
  std::vector<std::byte> bytes;
  for (const char *p = text.data(), *const end = p + text.size(); p < end;) {
    T value{};
    const auto r = std::from_chars(p, end, value);
    if (r.ec != std::errc() || (r.ptr != end && *r.ptr != ',')) return {};
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
    p = r.ptr == end ? end : r.ptr + 1;
  }
  return bytes;
}

/// Calls f with a value of the C++ type of this name; false: it is none of a number.
template <class F>
bool with_number(const std::string& type, const F& f) {
  if (type == "i1" || type == "b1") return f(std::int8_t{}), true;
  if (type == "i2") return f(std::int16_t{}), true;
  if (type == "i4") return f(std::int32_t{}), true;
  if (type == "i8") return f(std::int64_t{}), true;
  if (type == "u1") return f(std::uint8_t{}), true;
  if (type == "u2") return f(std::uint16_t{}), true;
  if (type == "u4") return f(std::uint32_t{}), true;
  if (type == "u8") return f(std::uint64_t{}), true;
  if (type == "f4") return f(float{}), true;
  if (type == "f8") return f(double{}), true;
  return false;
}

std::string shape_suffix(const std::vector<hsize_t>& shape) {
  std::string s;
  for (const hsize_t n : shape) s += (s.empty() ? "[" : ",") + std::to_string(n);
  return s.empty() ? s : s + "]";
}

std::vector<std::string> read_strings(hid_t attribute, hid_t type, std::size_t count, hid_t space) {
  std::vector<std::string> all;
  const handle memory(H5Tcopy(type), H5Tclose);
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> p(count, nullptr);
    if (H5Aread(attribute, memory, p.data()) < 0) return all;
    for (const char* s : p) all.emplace_back(s ? s : "");
    H5Dvlen_reclaim(memory, space, H5P_DEFAULT, p.data());
    return all;
  }
  const std::size_t n = H5Tget_size(type);
  std::vector<char> bytes(n * count);
  if (H5Aread(attribute, memory, bytes.data()) < 0) return all;
  for (std::size_t i = 0; i < count; ++i) {
    std::string s(bytes.data() + i * n, n);
    if (H5Tget_strpad(type) == H5T_STR_SPACEPAD)
      s.erase(s.find_last_not_of(' ') + 1);
    else
      s.resize(std::strlen(s.c_str()));
    all.push_back(std::move(s));
  }
  return all;
}

struct attribute_text {
  std::string type, text;  ///< type empty: a text
};

/// Throws usage_error for what no text stands for.
attribute_text read_one(hid_t dataset, const std::string& name) {
  const std::string what = "attribute '" + name + "'";
  const handle attribute(H5Aopen(dataset, name.c_str(), H5P_DEFAULT), H5Aclose);
  const handle type(attribute ? H5Aget_type(attribute) : -1, H5Tclose);
  const handle space(attribute ? H5Aget_space(attribute) : -1, H5Sclose);
  if (!type || !space) throw usage_error(errc::invalid_request, what + " cannot be read: " + last_error());
  std::vector<hsize_t> shape(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space))));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space));
  if (H5Tget_class(type) == H5T_STRING) {
    const auto all = read_strings(attribute, type, count, space);
    if (all.size() != count) throw usage_error(errc::invalid_request, what + " cannot be read: " + last_error());
    if (shape.empty() && count == 1) return {"", all[0]};
    return {"str" + shape_suffix(shape), json(all).dump(-1, ' ', false, json::error_handler_t::replace)};
  }
  if (count == 0) throw usage_error(errc::type_mismatch, what + " is empty");
  const element_type element = element_of(type, what);
  std::vector<std::byte> bytes(count * element.size);
  if (H5Aread(attribute, element.type, bytes.data()) < 0)
    throw usage_error(errc::invalid_request, what + " cannot be read: " + last_error());
  attribute_text out{element.name + shape_suffix(shape), ""};
  const bool known = with_number(element.name, [&](auto zero) { out.text = numbers_text<decltype(zero)>(bytes); });
  if (!known) throw usage_error(errc::type_mismatch, what + " has elements of the type " + element.name);
  if (!shape.empty()) out.text = "[" + out.text + "]";
  return out;
}

std::vector<std::string> dimension_names(hid_t dataset, const std::string& name) {
  const handle space(H5Dget_space(dataset), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<std::string> names;
  bool any = false;
  for (int d = 0; d < rank; ++d) {
    std::array<char, 256> label{};
    const auto at = static_cast<unsigned>(d);
    std::string found;
    if (H5DSget_label(dataset, at, label.data(), label.size()) > 0) found = label.data();
    if (found.empty() && H5DSget_num_scales(dataset, at) > 0)
      H5DSiterate_scales(
          dataset, at, nullptr,
          [](hid_t, unsigned, hid_t scale, void* out) -> herr_t {
            std::array<char, 1024> path{};
            H5Iget_name(scale, path.data(), path.size());
            *static_cast<std::string*>(out) = last_name(path.data());
            return 1;
          },
          &found);
    if (found.empty() && rank == 1 && H5DSis_scale(dataset) > 0) found = last_name(name);
    any = any || !found.empty();
    names.push_back(found.empty() ? "dim_" + std::to_string(d) : found);
  }
  return any ? names : std::vector<std::string>();
}

void write_one(hid_t dataset, const std::string& name, const std::string& text, const std::string& type,
               const std::string& what) {
  const auto bracket = type.find('[');
  const std::string element = type.substr(0, bracket);
  std::vector<hsize_t> shape;
  if (bracket != type.npos)
    for (const auto& n : json::parse(type.substr(bracket), nullptr, false))
      shape.push_back(n.is_number_unsigned() ? n.get<hsize_t>() : 0);
  hsize_t count = 1;
  for (const hsize_t n : shape) count *= n;
  const handle space(
      shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
      H5Sclose);
  const auto write = [&](hid_t of_type, const void* bytes) {
    const handle a(H5Acreate2(dataset, name.c_str(), of_type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!a || H5Awrite(a, of_type, bytes) < 0)
      throw io_error::in_full({EIO, std::generic_category()},
                              what + ": attribute '" + name + "' cannot be written: " + last_error());
  };
  bool done = false;
  if (!element.empty() && element != "str")
    with_number(element, [&](auto zero) {
      if (!shape.empty() && text.size() < 2) return;  // it has been set to another text since
      const auto bytes = numbers_of<decltype(zero)>(shape.empty() ? text : text.substr(1, text.size() - 2));
      if (bytes.size() != count * sizeof zero) return;  // this one, too
      write(element_named(element, sizeof zero, what).type, bytes.data());
      done = true;
    });
  const handle string(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(string, H5T_VARIABLE);
  H5Tset_cset(string, H5T_CSET_UTF8);
  if (!done && element == "str") {
    const json list = json::parse(text, nullptr, false);
    if (list.is_array() && list.size() == count &&
        std::all_of(list.begin(), list.end(), [](const json& s) { return s.is_string(); })) {
      const auto all = list.get<std::vector<std::string>>();
      std::vector<const char*> p;
      for (const std::string& s : all) p.push_back(s.c_str());
      write(string, p.data());
      done = true;
    }
  }
  if (done) return;
  if (text.find('\0') != text.npos)
    throw usage_error(errc::invalid_request,
                      what + ": attribute '" + name + "' holds a zero byte, and no text of HDF5 can");
  const handle scalar(H5Screate(H5S_SCALAR), H5Sclose);
  const handle a(H5Acreate2(dataset, name.c_str(), string, scalar, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const char* p = text.c_str();
  if (!a || H5Awrite(a, string, &p) < 0)
    throw io_error::in_full({EIO, std::generic_category()},
                            what + ": attribute '" + name + "' cannot be written: " + last_error());
}

/// A dimension as NetCDF-4 has one that no variable belongs to.  False: the name is taken by
/// something else.
bool attach_scale(hid_t file, hid_t dataset, unsigned d, const std::string& path, hsize_t extent) {
  const std::string name = last_name(path);
  if (name.empty() || name == ".") return false;
  handle scale;
  if (H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0) {
    scale = handle(H5Dopen2(file, path.c_str(), H5P_DEFAULT), H5Dclose);
    const handle space(scale ? H5Dget_space(scale) : -1, H5Sclose);
    hsize_t has = 0;
    if (!space || H5DSis_scale(scale) <= 0 || H5Sget_simple_extent_dims(space, &has, nullptr) != 1 || has != extent)
      return false;
  } else {
    const handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
    scale =
        handle(H5Dcreate2(file, path.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
    std::array<char, 80> note{};
    std::snprintf(note.data(), note.size(), "This is a netCDF dimension but not a netCDF variable.%10llu",
                  static_cast<unsigned long long>(extent));
    if (!scale || H5DSset_scale(scale, note.data()) < 0) return false;
  }
  return H5DSattach_scale(dataset, scale, d) >= 0;
}

}  // namespace

texts read_plain_attributes(hid_t object, std::vector<std::string>& left_out) {
  std::vector<std::string> names;
  H5Aiterate2(
      object, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* n, const H5A_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->emplace_back(n);
        return 0;
      },
      &names);
  texts all;
  json types = json::object();
  const bool is_scale = H5Iget_type(object) == H5I_DATASET && H5DSis_scale(object) > 0;
  for (const std::string& n : names) {
    if (is_internal(n, is_scale)) continue;
    try {
      attribute_text a = read_one(object, n);
      all[n] = std::move(a.text);
      if (!a.type.empty()) types[n] = a.type;
    } catch (const usage_error& e) {
      left_out.push_back(e.what());
    }
  }
  if (!types.empty()) all[types_key] = types.dump(-1, ' ', false, json::error_handler_t::replace);
  return all;
}

texts read_attributes(hid_t dataset, const std::string& name, std::vector<std::string>& left_out) {
  texts all = read_plain_attributes(dataset, left_out);
  const handle space(H5Dget_space(dataset), H5Sclose);
  const auto dimensions = dimension_names(dataset, name);
  if (!dimensions.empty() || H5Sget_simple_extent_type(space) == H5S_SCALAR)
    all[dimensions_key] = json(dimensions).dump(-1, ' ', false, json::error_handler_t::replace);
  return all;
}

bool is_scalar(const texts& attributes, const std::vector<std::uint64_t>& extents) {
  const auto dimensions = attributes.find(dimensions_key);
  return dimensions != attributes.end() && dimensions->second == "[]" && extents == std::vector<std::uint64_t>{1};
}

void write_plain_attributes(hid_t object, const texts& attributes, const std::string& what) {
  json types;
  if (const auto t = attributes.find(types_key); t != attributes.end()) types = json::parse(t->second, nullptr, false);
  for (const auto& [key, text] : attributes) {
    if (key == types_key) continue;
    const auto type = types.is_object() ? types.find(key) : types.end();
    const bool typed = types.is_object() && type != types.end() && type->is_string();
    write_one(object, key, text, typed ? type->get<std::string>() : "", what);
  }
}

void write_attributes(hid_t file, hid_t dataset, const std::string& name, const texts& attributes,
                      const std::vector<std::uint64_t>& extents, const std::string& what) {
  json dimensions;
  if (const auto d = attributes.find(dimensions_key); d != attributes.end())
    dimensions = json::parse(d->second, nullptr, false);
  const bool named = dimensions.is_array() && dimensions.size() == extents.size() &&
                     std::all_of(dimensions.begin(), dimensions.end(), [](const json& s) { return s.is_string(); });
  texts others = attributes;
  if (named || is_scalar(attributes, extents)) others.erase(dimensions_key);
  write_plain_attributes(dataset, others, what);
  if (!named) return;
  const auto slash = name.find_last_of('/');
  const std::string folder = slash == name.npos ? "" : name.substr(0, slash + 1);
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const auto label = dimensions[d].get<std::string>();
    const bool is_own = extents.size() == 1 && folder + label == name;  // a coordinate
    if (is_own ? H5DSset_scale(dataset, label.c_str()) >= 0
               : label.find('/') == label.npos &&
                     attach_scale(file, dataset, static_cast<unsigned>(d), folder + label, extents[d]))
      continue;
    if (H5DSset_label(dataset, static_cast<unsigned>(d), label.c_str()) < 0)
      throw io_error::in_full({EIO, std::generic_category()}, what + ": dimension " + std::to_string(d) +
                                                                  " cannot be named '" + label + "': " + last_error());
  }
}

}  // namespace ooc::tool::hdf5

namespace ooc::tool {

hdf5::texts added_attributes(const hdf5::texts& there, hdf5::texts more) {
  const auto known = there.find(hdf5::types_key);
  if (known == there.end()) return more;
  auto types = nlohmann::json::parse(known->second, nullptr, false);
  if (!types.is_object()) return more;
  for (const auto& [key, text] : more) types.erase(key);
  if (const auto t = more.find(hdf5::types_key); t != more.end()) types.update(nlohmann::json::parse(t->second));
  more[hdf5::types_key] = types.dump();
  return more;
}

}  // namespace ooc::tool
