// Arrays of Zarr (versions 3 and 2 of the format, in folders) where they lie, for programs that have nlohmann/json
// (Debian: nlohmann-json3-dev).
//
//     #include <oocarray/zarr.hpp>
//
//     auto t = ooc::open_zarr<float, 3>(rt, "era5.zarr/t2m", ooc::open_read_only);
//     auto x = ooc::open_zarr<double, 2>(rt, "run.zarr", ooc::open);   // for writing, too
//
// The JSON beside the chunks says where they lie and how they are packed; they are decoded by all processors, as they
// are touched, and encoded when they have been changed.  open_file.hpp says what an array in place lacks and what other
// programs see of it, file_chunks.hpp which codecs there are.
//
// The elements are of T as it lies in memory: numbers in this machine's byte order, std::complex<>, bool, struct<N> for
// records, texts and times.
//
// Throws usage_error, naming the file: ENOENT where there is no array; errc::type_mismatch for elements of another type
// or number of dimensions, and for what is not used in place, with the remedy: other codecs, grids and keys, shards
// within shards, zip files (the Python package takes these); errc::invalid_request for what is no JSON; what
// open_file() throws.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "oocarray/detail/zarr_texts.hpp"
#include "oocarray/error.hpp"
#include "oocarray/open_file.hpp"

namespace ooc {

/// What Zarr says of an array.
struct zarr_description {
  std::string path;          ///< of the file that says it
  std::string element_type;  ///< as element_type.hpp names it, whatever the byte order
  std::size_t element_size = 0;
  bool big_endian = false;
  std::string numpy_type;  ///< of texts, times and bytes, without a byte order: "M8[ns]"; empty for others
  file_contents contents;
  std::map<std::string, std::string> attributes;  ///< texts as they are, other values as JSON
};

namespace detail::zarr {

using json = nlohmann::json;

/// Files that describe an array in their folder, the newer version first.
inline constexpr std::array descriptions = {"zarr.json", ".zarray"};

struct type {
  std::string name;
  std::size_t size = 0;
  std::string numpy = {};
};

/// One description, as it is read.
class reader {
 public:
  explicit reader(const std::string& path) : folder_(folder_of(path)) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    for (const char* const name : descriptions) {
      found.path = folder_ + "/" + name;
      if (!fs::exists(found.path, ignored)) continue;
      read();
      return;
    }
    throw usage_error({ENOENT, std::generic_category()},
                      "'" + folder_ + "' has no array of Zarr (zarr.json or .zarray)");
  }

  zarr_description found;

 private:
  static std::string folder_of(const std::string& path) {
    // ".." stays: behind a symbolic link it leads elsewhere than the text says.
    std::filesystem::path folder;
    for (const std::filesystem::path& part : std::filesystem::absolute(path))
      if (!part.empty() && part != ".") folder /= part;
    return folder.string();
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw usage_error(errc::type_mismatch, "'" + found.path + "': " + why +
                                               ", so it cannot be used in place: copy it by oocarray.from_zarr()");
  }

  void read() {
    std::ifstream file(found.path);
    if (!file) {
      const std::error_code why(errno, std::generic_category());
      throw usage_error(why, "'" + found.path + "' cannot be read: " + why.message());
    }
    json said;
    try {
      said = json::parse(json_text(file));
    } catch (const json::exception& why) {
      throw usage_error(errc::invalid_request, "'" + found.path + "' is no JSON: " + why.what());
    }
    try {
      found.path.ends_with("zarr.json") ? read_version_3(said) : read_version_2(said);
    } catch (const json::exception& why) {
      refuse(std::string("its description cannot be understood (") + why.what() + ")");
    } catch (const std::logic_error& why) {  // of numbers in texts
      refuse(std::string("its description cannot be understood (") + why.what() + ")");
    }
    std::vector<std::size_t>& extents = found.contents.extents;
    if (extents.empty() || std::ranges::find(extents, 0U) != extents.end())
      refuse("it has no dimensions, or no elements");
    if (chunks_.extents.size() != extents.size() || std::ranges::find(chunks_.extents, 0U) != chunks_.extents.end())
      refuse("its chunks do not go with its shape");
    for (const chunk_filter f : chunks_.filters)
      if (!can_undo(f)) refuse("its chunks are packed by a codec that this build of the library does not undo");
    std::error_code ignored;
    chunks_.dataset = std::filesystem::weakly_canonical(folder_, ignored).filename().string();
    found.contents.format = file_format::raw;
    found.contents.chunks = std::move(chunks_);
  }

  std::vector<std::size_t> counts(const json& said) const {
    for (const json& n : said)
      if (!n.is_number_unsigned())
        refuse("it says '" + n.dump() + "' where a number of elements or dimensions should be");
    return said.get<std::vector<std::size_t>>();
  }

  // --- version 3

  static std::string name_of(const json& part) {
    return (part.is_string() ? part : part.at("name")).get<std::string>();
  }
  static json configuration_of(const json& part) {
    return part.is_object() ? part.value("configuration", json::object()) : json::object();
  }

  void read_version_3(const json& said) {
    if (said.value("node_type", "") != "array")
      throw usage_error({ENOENT, std::generic_category()},
                        "'" + found.path + "' describes no array: name one below it");
    static constexpr std::array known = {"zarr_format",     "node_type",
                                         "shape",           "data_type",
                                         "chunk_grid",      "chunk_key_encoding",
                                         "fill_value",      "codecs",
                                         "attributes",      "storage_transformers",
                                         "dimension_names", "consolidated_metadata"};
    for (const auto& [key, value] : said.items())
      if (std::ranges::find(known, key) == known.end() &&
          !(value.is_object() && value.value("must_understand", true) == false))
        refuse("it says '" + key + "', which is not known");
    if (said.contains("storage_transformers") && !said["storage_transformers"].empty())
      refuse("it has storage transformers");
    if (name_of(said.at("chunk_grid")) != "regular") refuse("its chunks lie in a grid of another kind than 'regular'");
    found.contents.extents = counts(said.at("shape"));
    chunks_.extents = counts(configuration_of(said["chunk_grid"]).at("chunk_shape"));

    const json& keys = said.at("chunk_key_encoding");
    const std::string encoding = name_of(keys);
    if (encoding != "default" && encoding != "v2") refuse("the keys of its chunks are encoded as '" + encoding + "'");
    chunk_files files;
    const std::string separator = configuration_of(keys).value("separator", encoding == "default" ? "/" : ".");
    files.separator = separator.at(0);
    files.names = folder_ + "/" + (encoding == "default" ? "c" + separator : "");

    set_type(type_of_version_3(said.at("data_type")));
    json codecs = said.at("codecs");
    if (codecs.size() == 1 && name_of(codecs[0]) == "sharding_indexed") codecs = read_shards(codecs[0], files);
    for (const json& codec : codecs) add_codec(codec);
    chunks_.files = std::move(files);
    set_fill(said.at("fill_value"));
    read_attributes(said.value("attributes", json::object()));
  }

  /// Returns the codecs of the chunks in them.
  json read_shards(const json& codec, chunk_files& files) {
    const json says = configuration_of(codec);
    const std::vector<std::size_t> shard = std::exchange(chunks_.extents, counts(says.at("chunk_shape")));
    if (shard.size() != chunks_.extents.size()) refuse("its shards have other dimensions than their chunks");
    for (std::size_t d = 0; d < shard.size(); ++d) {
      if (chunks_.extents[d] == 0 || shard[d] % chunks_.extents[d] != 0) refuse("its shards are not made up of chunks");
      files.chunks.push_back(shard[d] / chunks_.extents[d]);
    }
    const json index = says.at("index_codecs");
    const bool summed = index.size() == 2 && name_of(index[1]) == "crc32c";
    if (index.empty() || index.size() > 2 || (index.size() == 2 && !summed) || name_of(index[0]) != "bytes" ||
        configuration_of(index[0]).value("endian", "") != "little")
      refuse("the index of its shards has other codecs than 'bytes', little-endian, and 'crc32c'");
    files.index_summed = summed;
    files.index_first = says.value("index_location", "end") == "start";
    return says.at("codecs");
  }

  type type_of_version_3(const json& said) const {
    const std::string name = name_of(said);
    const json says = configuration_of(said);
    static const std::map<std::string, type> plain = {
        {"bool", {"b1", 1}},      {"int8", {"i1", 1}},        {"int16", {"i2", 2}},   {"int32", {"i4", 4}},
        {"int64", {"i8", 8}},     {"uint8", {"u1", 1}},       {"uint16", {"u2", 2}},  {"uint32", {"u4", 4}},
        {"uint64", {"u8", 8}},    {"float16", {"f2", 2}},     {"float32", {"f4", 4}}, {"float64", {"f8", 8}},
        {"complex64", {"c8", 8}}, {"complex128", {"c16", 16}}};
    if (const auto one = plain.find(name); one != plain.end()) return one->second;
    if (name == "structured") {
      std::size_t bytes = 0;
      for (const json& field : says.at("fields")) bytes += type_of_version_3(field.at(1)).size;
      return structure(bytes);
    }
    const std::size_t bytes = says.value("length_bytes", std::size_t{0});
    if (name == "null_terminated_bytes") return structure(bytes, "S" + std::to_string(bytes));
    if (name == "raw_bytes") return structure(bytes, "V" + std::to_string(bytes));
    if (name == "fixed_length_utf32") return structure(bytes, "U" + std::to_string(bytes / 4));
    if (name == "numpy.datetime64" || name == "numpy.timedelta64") {
      const std::string unit = says.at("unit"), letter = name == "numpy.datetime64" ? "M8" : "m8";
      const std::int64_t factor = says.value("scale_factor", std::int64_t{1});
      return structure(
          8, unit == "generic" ? letter : letter + "[" + (factor == 1 ? "" : std::to_string(factor)) + unit + "]");
    }
    refuse("elements of type '" + name + "' are not known");
  }

  void add_codec(const json& codec) {
    const std::string name = name_of(codec);
    const json says = configuration_of(codec);
    chunk_packing how;
    if (name == "transpose" && says.at("order").is_array()) {
      std::vector<std::size_t> before = std::move(chunks_.stored_order);
      if (before.empty()) {
        before.resize(found.contents.extents.size());
        std::iota(before.begin(), before.end(), std::size_t{0});
      }
      chunks_.stored_order.clear();
      for (const std::size_t i : counts(says["order"])) {
        if (i >= before.size()) refuse("its chunks are transposed in dimensions that it has not");
        chunks_.stored_order.push_back(before[i]);
      }
    } else if (name == "bytes") {
      found.big_endian = says.value("endian", "little") == "big";
    } else if (name == "gzip" || name == "zstd" || name == "crc32c") {
      how.level = says.value("level", 1);
      how.checksum = says.value("checksum", false);
      add_filter(name, how);
    } else if (name == "blosc") {
      static constexpr std::array ways = {"noshuffle", "shuffle", "bitshuffle"};
      how = blosc_packing(says);
      const std::string shuffle = says.value("shuffle", "noshuffle");
      const auto way = std::ranges::find(ways, shuffle);
      if (way == ways.end()) refuse("its chunks are shuffled as '" + shuffle + "', which is not known");
      how.blosc_shuffle = static_cast<chunk_packing::shuffling>(way - ways.begin());
      if (says.contains("typesize") && says["typesize"].is_number()) how.blosc_element = says["typesize"];
      add_filter(name, how);
    } else if (name.starts_with("numcodecs.") && name != "numcodecs.crc32c") {
      add_codec_of_version_2(name.substr(name.find('.') + 1), says);
    } else {
      refuse("its chunks have the codec '" + name + "', which is not undone in place");
    }
  }

  void add_filter(const std::string& name, chunk_packing how) {
    static const std::map<std::string, chunk_filter> filters = {
        {"zlib", chunk_filter::deflate},          {"gzip", chunk_filter::gzip},     {"zstd", chunk_filter::zstd},
        {"blosc", chunk_filter::blosc},           {"lz4", chunk_filter::lz4},       {"bz2", chunk_filter::bzip2},
        {"fletcher32", chunk_filter::fletcher32}, {"crc32c", chunk_filter::crc32c}, {"shuffle", chunk_filter::shuffle}};
    const auto f = filters.find(name);
    if (f == filters.end()) refuse("its chunks have the codec '" + name + "', which is not undone in place");
    chunks_.filters.push_back(f->second);
    chunks_.packing.push_back(std::move(how));
  }

  static chunk_packing blosc_packing(const json& says) {
    chunk_packing how;
    how.level = says.value("clevel", 5);
    how.blosc_codec = says.value("cname", "lz4");
    how.blosc_block = says.value("blocksize", 0U);
    return how;
  }

  // --- version 2

  void read_version_2(const json& said) {
    if (said.value("zarr_format", 0) != 2)
      refuse("version " + said.value("zarr_format", json()).dump() + " is not known");
    found.contents.extents = counts(said.at("shape"));
    chunks_.extents = counts(said.at("chunks"));
    set_type(type_of_version_2(said.at("dtype")));
    for (const char* const key : {"filters", "compressor"}) {
      const json codecs = said.value(key, json());
      for (const json& codec : codecs.is_object() ? json::array({codecs}) : codecs.is_null() ? json::array() : codecs)
        add_codec_of_version_2(codec.at("id"), codec);
    }
    if (said.value("order", "C") == "F" && chunks_.extents.size() > 1)
      for (std::size_t d = chunks_.extents.size(); d-- > 0;) chunks_.stored_order.push_back(d);
    chunk_files files;
    files.names = folder_ + "/";
    const json separator = said.value("dimension_separator", json("."));
    files.separator = separator.is_string() && !separator.empty() ? separator.get<std::string>().at(0) : '.';
    chunks_.files = std::move(files);
    set_fill(said.value("fill_value", json()));
    std::ifstream beside(folder_ + "/.zattrs");
    // The elements can be read whatever is there.
    if (const json attributes = json::parse(json_text(beside), nullptr, false); attributes.is_object())
      read_attributes(attributes);
  }

  type type_of_version_2(const json& said) {
    if (said.is_array()) {
      std::size_t bytes = 0;
      bool any_big = false;
      for (const json& field : said) {
        std::size_t size = type_of_version_2(field.at(1)).size;
        any_big |= found.big_endian;
        if (field.size() > 2)
          for (const std::size_t n : counts(field[2])) size *= n;
        bytes += size;
      }
      found.big_endian = any_big;
      return structure(bytes);
    }
    const std::string name = said.get<std::string>();
    const std::string known = "biufcSUVmM";
    if (name.size() < 3 || known.find(name[1]) == known.npos) refuse("elements of type '" + name + "' are not known");
    found.big_endian = name[0] == '>';
    const std::size_t size = std::stoul("0" + name.substr(2, name.find('[') - 2));
    if (std::string("SUVmM").find(name[1]) != std::string::npos)
      return structure(name[1] == 'U' ? 4 * size : size, name.substr(1));
    return {name.substr(1), size};
  }

  void add_codec_of_version_2(const std::string& name, const json& says) {
    chunk_packing how;
    if (name == "blosc") {
      how = blosc_packing(says);
      const int shuffle = says.value("shuffle", 1);
      how.blosc_shuffle =
          shuffle < 0 ? (found.element_size == 1 ? chunk_packing::shuffling::bits : chunk_packing::shuffling::bytes)
                      : static_cast<chunk_packing::shuffling>(std::min(shuffle, 2));
    } else {
      how.level = says.value("level", says.value("acceleration", 1));
      how.checksum = says.value("checksum", false);
    }
    if (name == "shuffle" && says.value("elementsize", std::size_t{0}) != found.element_size)
      refuse("its chunks are shuffled by elements of another size than its own");
    if (name == "crc32c") refuse("its chunks have the codec 'crc32c' of numcodecs, which is not undone in place");
    add_filter(name, how);
  }

  // --- both

  static type structure(std::size_t bytes, std::string numpy = "") {
    return {"struct" + std::to_string(bytes), bytes, std::move(numpy)};
  }
  void set_type(const type& t) {
    if (t.size == 0) refuse("its elements have no bytes");
    found.element_type = t.name;
    found.element_size = t.size;
    found.numpy_type = t.numpy;
  }

  void read_attributes(const json& said) {
    for (const auto& [key, value] : said.items())
      found.attributes[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }

  void set_fill(const json& value) {
    const char kind = found.element_type[0];
    chunks_.fill_is_undefined = value.is_null();
    if (value.is_null() && !is_time()) return;
    std::vector<std::byte>& fill = chunks_.fill;
    fill.assign(found.element_size, std::byte{});
    if (kind == 's') {
      fill_structure(value, fill);
    } else if (kind == 'c') {
      const std::size_t half = found.element_size / 2;
      if (value.is_array()) {
        put_number(value.at(0), 'f', std::span(fill).first(half));
        put_number(value.at(1), 'f', std::span(fill).last(half));
      } else {
        put_number(value, 'f', std::span(fill).first(half));
      }
    } else {
      put_number(value, kind, fill);
    }
    if (std::ranges::all_of(fill, [](std::byte b) { return b == std::byte{}; })) fill.clear();
  }

  void fill_structure(const json& value, std::span<std::byte> to) const {
    if (value.is_number()) {
      const std::int64_t number = value.get<std::int64_t>();
      if (number != 0 && to.size() != sizeof number) refuse("its fill value is a number, and its elements are none");
      if (number != 0) put(std::bit_cast<std::uint64_t>(number), to);
    } else if (found.numpy_type.starts_with('U') && value.is_string()) {
      fill_text(value.get<std::string>(), to);
    } else if (value.is_null() || (value == "NaT" && is_time())) {
      put(std::uint64_t{1} << 63, to);
    } else {
      const auto bytes = from_base64(value.get<std::string>());
      if (!bytes) refuse("its fill value is not in base 64");
      if (bytes->size() > to.size()) refuse("its fill value is longer than its elements");
      std::ranges::copy(*bytes, to.begin());
    }
  }

  bool is_time() const { return found.numpy_type.starts_with("M8") || found.numpy_type.starts_with("m8"); }

  /// A text in UTF-8 as 4 bytes a character.
  void fill_text(const std::string& text, std::span<std::byte> to) const {
    std::size_t written = 0;
    for (std::size_t at = 0; at < text.size(); written += 4) {
      const auto lead = static_cast<unsigned char>(text[at]);
      const unsigned more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
      std::uint32_t character = more == 0 ? lead : lead & (0x3fu >> more);
      if (written + 4 > to.size()) refuse("its fill value is longer than its elements");
      if (at + more >= text.size()) refuse("its fill value is no text in UTF-8");
      for (unsigned k = 1; k <= more; ++k)
        character = character << 6 | (static_cast<unsigned char>(text[at + k]) & 0x3fu);
      put(character, to.subspan(written, 4));
      at += 1 + more;
    }
  }

  void put_number(const json& value, char kind, std::span<std::byte> to) const {
    if (value.is_string() && value.get<std::string>().starts_with("0x")) {
      put(std::stoull(value.get<std::string>().substr(2), nullptr, 16), to);
    } else if (kind == 'f') {
      const std::string text = value.is_string() ? value.get<std::string>() : "";
      const double number = text == "NaN"         ? std::numeric_limits<double>::quiet_NaN()
                            : text == "Infinity"  ? std::numeric_limits<double>::infinity()
                            : text == "-Infinity" ? -std::numeric_limits<double>::infinity()
                                                  : value.get<double>();
      if (to.size() == 8)
        put(std::bit_cast<std::uint64_t>(number), to);
      else if (to.size() == 4)
        put(std::bit_cast<std::uint32_t>(static_cast<float>(number)), to);
#ifdef OOCARRAY_FLOAT16
      else if (to.size() == 2)
        put(std::bit_cast<std::uint16_t>(static_cast<_Float16>(number)), to);
#endif
      else if (number != 0)
        refuse("its fill value is a number of a size that this compiler does not know");
    } else if (kind == 'b') {
      put(value.is_boolean() ? value.get<bool>() : value.get<int>() != 0, to);
    } else {
      put(value.is_number_unsigned() ? value.get<std::uint64_t>()
                                     : std::bit_cast<std::uint64_t>(value.get<std::int64_t>()),
          to);
    }
  }
  /// The low bytes of a number, in the array's byte order.
  void put(std::uint64_t bits, std::span<std::byte> to) const {
    for (std::size_t k = 0; k < to.size(); ++k)
      to[found.big_endian ? to.size() - 1 - k : k] =
          k < 8 ? static_cast<std::byte>(bits >> (8 * k) & 0xff) : std::byte{};
  }

  const std::string folder_;
  file_chunks chunks_;
};

template <class T, std::size_t N, class Layout, class How>
ooc_array<T, N, Layout> open_array(runtime& rt, const std::string& path, How how, const array_options<T>& options) {
  const zarr_description d = reader(path).found;
  if (d.element_type != ooc::element_type<T>::name() &&
      !(d.element_type == "u1" && ooc::element_type<T>::name() == "b1"))
    throw usage_error(errc::type_mismatch, "'" + d.path + "' has elements of type " + d.element_type + ", and not " +
                                               ooc::element_type<T>::name());
  if (d.big_endian && d.element_size > 1)
    throw usage_error(errc::type_mismatch, "'" + d.path +
                                               "' has big-endian elements: the Python package takes them, and copies "
                                               "them by oocarray.from_zarr()");
  return open_file<T, N, Layout>(rt, d.path, how, d.contents, options);
}

}  // namespace detail::zarr

/// What the description in a folder says.  Throws as above.
inline zarr_description describe_zarr(const std::string& folder) { return detail::zarr::reader(folder).found; }

/// Opens the array in a folder for reading and writing.  See above.
template <class T, std::size_t N, class Layout = layout_right>
ooc_array<T, N, Layout> open_zarr(runtime& rt, const std::string& folder, open_t how,
                                  const array_options<T>& options = {}) {
  return detail::zarr::open_array<T, N, Layout>(rt, folder, how, options);
}
/// The same for reading.
template <class T, std::size_t N, class Layout = layout_right>
ooc_array<T, N, Layout> open_zarr(runtime& rt, const std::string& folder, open_read_only_t how,
                                  const array_options<T>& options = {}) {
  return detail::zarr::open_array<T, N, Layout>(rt, folder, how, options);
}

}  // namespace ooc
