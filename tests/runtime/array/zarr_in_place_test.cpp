// Arrays of Zarr in place: as their JSON says.

#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "oocarray/zarr.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

json version_3(const char* type, std::vector<std::size_t> shape, std::vector<std::size_t> chunk, json fill = 0) {
  return {{"zarr_format", 3},
          {"node_type", "array"},
          {"shape", shape},
          {"data_type", type},
          {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", chunk}}}}},
          {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
          {"fill_value", fill},
          {"codecs", json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}})},
          {"attributes", {{"units", "K"}, {"levels", std::vector{1, 2}}}}};
}

std::string described(const fs::path& folder, const json& meta, const char* name = "zarr.json") {
  fs::create_directories(folder);
  std::ofstream(folder / name) << meta.dump(2);
  return folder.string();
}

template <class T>
void write_file(const fs::path& file, const std::vector<T>& values) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

template <class T>
std::vector<T> read_file(const fs::path& file) {
  std::vector<T> values(fs::file_size(file) / sizeof(T));
  std::ifstream(file, std::ios::binary)
      .read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

json codec(const char* name, json configuration) {
  return {{"name", name}, {"configuration", std::move(configuration)}};
}

}  // namespace

TEST_CASE("chunks of Zarr are read as version 3 says, and what was never written is the fill value") {
  const temporary_folder folder;
  const std::string path = described(folder.path() / "a", version_3("float64", {5, 7}, {4, 4}, "NaN"));
  std::vector<double> chunk(16);
  for (std::size_t k = 0; k < 16; ++k) chunk[k] = static_cast<double>(k);
  write_file(folder.path() / "a/c/0/1", chunk);
  const zarr_description d = describe_zarr(path + "/");
  CHECK(d.attributes == std::map<std::string, std::string>{{"units", "K"}, {"levels", "[1,2]"}});
  CHECK(d.path == path + "/zarr.json");
  runtime rt(memory(1_MiB));
  const auto a = open_zarr<double, 2>(rt, path, open_read_only);
  REQUIRE(a.extent(0) == 5);
  CHECK((a[0][4] == 0 && a[3][6] == 14));
  CHECK((std::isnan(a[0][0]) && std::isnan(a[4][6])));
}

TEST_CASE("chunks of Zarr are read as version 2 says, in Fortran's order too") {
  const temporary_folder folder;
  const json meta = {{"zarr_format", 2},
                     {"shape", std::vector{3, 4}},
                     {"chunks", std::vector{2, 4}},
                     {"dtype", "<i4"},
                     {"order", "F"},
                     {"filters", nullptr},
                     {"compressor", nullptr},
                     {"fill_value", -7},
                     {"dimension_separator", "."}};
  const std::string path = described(folder.path() / "a", meta, ".zarray");
  described(folder.path() / "a", {{"long_name", "a"}}, ".zattrs");
  write_file<std::int32_t>(folder.path() / "a/0.0", {0, 10, 1, 11, 2, 12, 3, 13});
  CHECK(describe_zarr(path).attributes.at("long_name") == "a");
  runtime rt(memory(1_MiB));
  const auto a = open_zarr<std::int32_t, 2>(rt, path, open_read_only);
  for (std::size_t j = 0; j < 4; ++j) {
    CHECK(a[0][j] == static_cast<int>(j));
    CHECK(a[1][j] == static_cast<int>(10 + j));
    CHECK(a[2][j] == -7);
  }
}

TEST_CASE(
    "numbers that Python writes into attributes, and attributes that are no JSON, keep nobody from the elements") {
  const temporary_folder folder;
  const auto put = [](const std::string& path, const std::string& text) { std::ofstream(path) << text; };
  const json plain = {{"zarr_format", 2},   {"shape", std::vector{3}}, {"chunks", std::vector{2}}, {"dtype", "<f8"},
                      {"filters", nullptr}, {"compressor", nullptr},   {"fill_value", 4}};
  runtime rt(memory(1_MiB));
  const std::string two = described(folder.path() / "two", plain, ".zarray");
  put(two + "/.zattrs", R"({"a": NaN, "b": [-Infinity, "NaN \" NaN", Infinity], "NaN": "NaN"})");
  CHECK(describe_zarr(two).attributes ==
        std::map<std::string, std::string>{
            {"a", "NaN"}, {"b", R"(["-Infinity","NaN \" NaN","Infinity"])"}, {"NaN", "NaN"}});
  for (const char* const text : {"{\"a\": nonsense}", "", "{\"a\": \"\\", "3"}) {
    put(two + "/.zattrs", text);
    CHECK(describe_zarr(two).attributes.empty());
    CHECK(open_zarr<double, 1>(rt, two, open_read_only)[2] == 4);
  }
  json newer = version_3("float64", {3}, {2});
  newer["attributes"] = {{"a", "HERE"}, {"b", "\\HERE\""}};
  newer["fill_value"] = "HERE";
  std::string text = newer.dump();
  for (std::size_t at = 0; (at = text.find("\"HERE\"", at)) != text.npos;) text.replace(at, 6, "NaN");
  const std::string three = described(folder.path() / "three", json::object());
  put(three + "/zarr.json", text);
  CHECK(describe_zarr(three).attributes == std::map<std::string, std::string>{{"a", "NaN"}, {"b", "\\HERE\""}});
  CHECK(std::isnan(open_zarr<double, 1>(rt, three, open_read_only)[2]));
}

TEST_CASE("a path leads where the system says, also above what a symbolic link leads to") {
  const temporary_folder folder;
  fs::create_directories(folder.path() / "data/x");
  fs::create_directory_symlink("data/x", folder.path() / "link");
  described(folder.path() / "data/a", version_3("float64", {3}, {3}, 1));
  described(folder.path() / "a", version_3("float64", {3}, {3}, 2));
  write_file<double>(folder.path() / "data/a/c/0", {5, 6, 7});
  runtime rt(memory(1_MiB));
  for (const char* const above : {"link/../a", "link/.././a//"}) {
    const auto a = open_zarr<double, 1>(rt, (folder.path() / above).string(), open_read_only);
    CHECK((a[0] == 5 && a[2] == 7));
  }
}

TEST_CASE("where Zarr says no fill value, what is written is stored, also zeros") {
  const temporary_folder folder;
  for (const bool undefined : {true, false}) {
    const json meta = {{"zarr_format", 2},
                       {"shape", std::vector{6}},
                       {"chunks", std::vector{2}},
                       {"dtype", "<f8"},
                       {"filters", nullptr},
                       {"compressor", nullptr},
                       {"fill_value", undefined ? json() : json(0)}};
    const std::string path = described(folder.path() / (undefined ? "a" : "b"), meta, ".zarray");
    runtime rt(memory(1_MiB));
    auto a = open_zarr<double, 1>(rt, path, ooc::open);
    CHECK(a[5] == 0);
    a[0] = 0;
    a[1] = 0;
    a[4] = 0;
    a.writeback();
    CHECK(fs::exists(path + "/0") == undefined);
    CHECK_FALSE(fs::exists(path + "/7"));
    CHECK(a[1] == 0);
  }
}

TEST_CASE("what is written to Zarr is packed as its description says, and read again") {
  const temporary_folder folder;
  std::vector<json> packed = {json::array(), json::array({codec("gzip", {{"level", 1}})})};
  if (can_apply(chunk_filter::zstd))
    packed.push_back(json::array({codec("zstd", {{"level", 1}}), codec("crc32c", json::object())}));
  if (can_apply(chunk_filter::blosc))
    packed.push_back(
        json::array({codec("blosc", {{"cname", "lz4"}, {"clevel", 5}, {"shuffle", "bitshuffle"}, {"typesize", 8}})}));
  for (std::size_t k = 0; k < packed.size(); ++k)
    for (const bool turned : {false, true})
      for (const bool sharded : {false, true}) {
        CAPTURE(k, turned, sharded);
        json meta = version_3("complex64", {50, 61}, {8, 10}, json::array({1, "-Infinity"})), inner = json::array();
        if (turned) inner.push_back(codec("transpose", {{"order", std::vector{1, 0}}}));
        inner.push_back(meta["codecs"][0]);
        for (const json& c : packed[k]) inner.push_back(c);
        meta["codecs"] = inner;
        if (sharded) {
          meta["chunk_grid"]["configuration"]["chunk_shape"] = std::vector{16, 30};
          meta["codecs"] = json::array(
              {codec("sharding_indexed", {{"chunk_shape", std::vector{8, 10}},
                                          {"codecs", inner},
                                          {"index_codecs", json::array({codec("bytes", {{"endian", "little"}}),
                                                                        codec("crc32c", json::object())})}})});
        }
        fs::remove_all(folder.path() / "a");
        const std::string path = described(folder.path() / "a", meta);
        using element = std::complex<float>;
        const auto value = [](std::size_t i, std::size_t j) {
          return element(static_cast<float>(i), static_cast<float>(j));
        };
        runtime rt(memory(2_MiB));
        {
          auto a = open_zarr<element, 2>(rt, path, ooc::open);
          for (std::size_t i = 5; i < 40; ++i)
            for (std::size_t j = 0; j < 61; ++j) a[i][j] = value(i, j);
          a.writeback();
        }
        const auto a = open_zarr<element, 2>(rt, path, open_read_only);
        CHECK(a[0][60] == element(1, -std::numeric_limits<float>::infinity()));
        bool same = true;
        for (std::size_t i = 5; i < 40; ++i)
          for (std::size_t j = 0; j < 61; ++j) same = same && a[i][j] == value(i, j);
        CHECK(same);
        if (k == 0 && !sharded) {
          const auto chunk = read_file<element>(folder.path() / "a/c/1/2");
          REQUIRE(chunk.size() == 80);
          CHECK(chunk[turned ? 8 + 2 : 20 + 1] == value(turned ? 10 : 10, 21));
        }
      }
}

TEST_CASE("what Zarr says that is not used in place is refused by name") {
  const temporary_folder folder;
  runtime rt(memory(1_MiB));
  const auto refused = [&](const json& meta, const std::string& why, const char* name = "zarr.json") {
    fs::remove_all(folder.path() / "a");
    const std::string path = described(folder.path() / "a", meta, name);
    CHECK_THROWS_WITH((open_zarr<double, 1>(rt, path, open_read_only)), Catch::Contains(why) && Catch::Contains(name));
  };
  const json good = version_3("float64", {10}, {4});
  const auto with = [&](const char* key, json value) {
    json meta = good;
    meta[key] = std::move(value);
    return meta;
  };
  refused(with("data_type", "float32"), "elements of type f4, and not f8");
  refused(with("data_type", "string"), "'string'");
  refused(with("codecs", json::array({codec("bytes", {{"endian", "big"}})})), "big-endian");
  refused(with("codecs", json::array({codec("vlen-utf8", json::object())})), "vlen-utf8");
  refused(with("chunk_grid", {{"name", "rectangular"}}), "grid");
  refused(with("chunk_key_encoding", {{"name", "hashed"}}), "hashed");
  refused(with("codecs", json::array({good["codecs"][0], codec("blosc", {{"shuffle", "sideways"}})})), "'sideways'");
  refused(with("something", 1), "something");
  refused(with("shape", std::vector{10, 10}), "do not go with its shape");
  refused(with("shape", std::vector{0}), "no elements");
  refused(with("shape", "long"), "where a number");
  refused(with("shape", std::vector{-3}), "'-3'");
  refused(with("chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", ""}}}}),
          "cannot be understood");
  refused(
      {{"zarr_format", 2}, {"shape", std::vector{10}}, {"chunks", std::vector{4}}, {"dtype", "<f99999999999999999999"}},
      "cannot be understood", ".zarray");
  refused(with("fill_value", json::array()), "cannot be understood");
  refused(with("node_type", "group"), "describes no array");
  const json inner =
      codec("sharding_indexed",
            {{"chunk_shape", std::vector{2}}, {"codecs", good["codecs"]}, {"index_codecs", good["codecs"]}});
  refused(with("codecs", json::array({codec("sharding_indexed", {{"chunk_shape", std::vector{2}},
                                                                 {"codecs", json::array({inner})},
                                                                 {"index_codecs", good["codecs"]}})})),
          "sharding_indexed");
  refused({{"zarr_format", 2}, {"shape", std::vector{10}}, {"chunks", std::vector{4}}, {"dtype", "|O"}}, "'|O'",
          ".zarray");
  refused({{"zarr_format", 2},
           {"shape", std::vector{10}},
           {"chunks", std::vector{4}},
           {"dtype", "<f8"},
           {"compressor", {{"id", "vlen"}}}},
          "vlen", ".zarray");
  std::ofstream(folder.path() / "a/.zarray") << "{ no";
  CHECK_THROWS_WITH(describe_zarr((folder.path() / "a").string()), Catch::Contains("is no JSON"));
  CHECK_THROWS_WITH(describe_zarr(folder.path().string()), Catch::Contains("has no array of Zarr"));
}

TEST_CASE("elements of other kinds are named by their bytes, with NumPy's name for them") {
  const temporary_folder folder;
  const auto of = [&](const json& type, const json& fill) {
    json meta = version_3("", {4}, {2}, fill);
    meta["data_type"] = type;
    return describe_zarr(described(folder.path() / "a", meta));
  };
  const zarr_description time =
      of({{"name", "numpy.datetime64"}, {"configuration", {{"unit", "s"}, {"scale_factor", 10}}}}, "NaT");
  CHECK((time.element_type == "struct8" && time.numpy_type == "M8[10s]"));
  CHECK(time.contents.chunks->fill.back() == std::byte{0x80});
  const zarr_description text =
      of({{"name", "fixed_length_utf32"}, {"configuration", {{"length_bytes", 12}}}}, "A\u00e9");
  CHECK((text.element_size == 12 && text.numpy_type == "U3"));
  const std::vector<std::byte>& fill = text.contents.chunks->fill;
  CHECK((fill.size() == 12 && fill[0] == std::byte{'A'} && fill[4] == std::byte{0xe9} && fill[5] == std::byte{}));
  CHECK_THROWS_WITH(of({{"name", "fixed_length_utf32"}, {"configuration", {{"length_bytes", 4}}}}, "NaT"),
                    Catch::Contains("longer than its elements"));
#ifdef OOCARRAY_FLOAT16
  const zarr_description half = of("float16", 1.5);
  CHECK(half.element_type == "f2");
  CHECK(half.contents.chunks->fill == std::vector{std::byte{0x00}, std::byte{0x3e}});
  CHECK(of("float16", "-Infinity").contents.chunks->fill == std::vector{std::byte{0x00}, std::byte{0xfc}});
#endif
  const json fields = json::array({json::array({"a", "int32"}), json::array({"b", "float64"})});
  CHECK(of({{"name", "structured"}, {"configuration", {{"fields", fields}}}}, "").element_type == "struct12");
}
