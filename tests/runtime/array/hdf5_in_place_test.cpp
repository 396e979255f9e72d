// A contiguous dataset of HDF5 as a raw file in place, as open_file.hpp says.

#include <hdf5.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "oocarray/open_file.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

// --- what open_file.hpp refers to

struct place {
  std::string path;
  std::uint64_t offset;
  file_identity which;
};

/// Where the elements of a dataset of doubles begin; nothing where they do not lie in a file as they are.
std::optional<place> place_of_doubles(const char* path, const char* name) {
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t holder = H5Iget_file_id(dataset), access = H5Fget_access_plist(holder);
  const hid_t made = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
  const bool as_they_are = H5Pget_driver(access) == H5FD_SEC2 && H5Pget_layout(made) == H5D_CONTIGUOUS &&
                           H5Pget_external_count(made) == 0 && H5Tequal(type, H5T_NATIVE_DOUBLE) > 0;
  H5D_space_status_t written = H5D_SPACE_STATUS_ERROR;
  H5Dget_space_status(dataset, &written);
  place p{.path = std::string(static_cast<std::size_t>(H5Fget_name(dataset, nullptr, 0)), '\0'),
          .offset = H5Dget_offset(dataset),  // of nothing: a number, where the file has a user block
          .which = {}};
  H5Fget_name(dataset, p.path.data(), p.path.size() + 1);
  void* descriptor = nullptr;
  struct stat is {};
  if (H5Fget_vfd_handle(holder, H5P_DEFAULT, &descriptor) >= 0 && ::fstat(*static_cast<int*>(descriptor), &is) == 0)
    p.which = {is.st_dev, is.st_ino};
  H5Tclose(type);
  H5Pclose(made);
  H5Pclose(access);
  H5Fclose(holder);
  H5Dclose(dataset);
  H5Fclose(file);
  if (!as_they_are || written != H5D_SPACE_STATUS_ALLOCATED) return {};
  return p;
}

/// Where the chunks of a two-dimensional dataset of doubles lie; nothing where they are not stored so, or packed by
/// other filters.  The user block, if any, is to be added to the places that libhdf5 before 1.14 gives.
std::optional<file_chunks> chunks_of_doubles(hid_t dataset, const char* name) {
  const hid_t made = H5Dget_create_plist(dataset), type = H5Dget_type(dataset), space = H5Dget_space(dataset);
  file_chunks c{.dataset = name, .extents = {}, .filters = {}, .table = {}, .fill = {}};
  bool known = H5Pget_layout(made) == H5D_CHUNKED && H5Tequal(type, H5T_NATIVE_DOUBLE) > 0;
  for (int i = 0; i < H5Pget_nfilters(made); ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t f =
        H5Pget_filter2(made, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config);
    known &= f == H5Z_FILTER_DEFLATE || f == H5Z_FILTER_SHUFFLE || f == H5Z_FILTER_FLETCHER32;
    c.filters.push_back(f == H5Z_FILTER_DEFLATE   ? chunk_filter::deflate
                        : f == H5Z_FILTER_SHUFFLE ? chunk_filter::shuffle
                                                  : chunk_filter::fletcher32);
  }
  hsize_t extents[2] = {}, chunk[2] = {1, 1};
  H5Sget_simple_extent_dims(space, extents, nullptr);
  if (known) H5Pget_chunk(made, 2, chunk);
  c.extents = {chunk[0], chunk[1]};
  for (hsize_t i = 0; known && i < extents[0]; i += chunk[0])
    for (hsize_t j = 0; j < extents[1]; j += chunk[1]) {
      const hsize_t first[] = {i, j};
      unsigned mask = 0;
      haddr_t at = 0;
      hsize_t bytes = 0;
      H5Dget_chunk_info_by_coord(dataset, first, &mask, &at, &bytes);
      c.table.push_back(bytes == 0 ? file_chunk{} : file_chunk{at, static_cast<std::uint32_t>(bytes), mask});
    }
  c.fill.resize(sizeof(double));
  H5Pget_fill_value(made, type, c.fill.data());
  H5Sclose(space);
  H5Tclose(type);
  H5Pclose(made);
  return known ? std::optional(c) : std::nullopt;
}

// ---

constexpr hsize_t rows = 300, columns = 400;

void write_dataset(hid_t file, const char* name, hid_t type, hid_t made, const std::vector<double>& values) {
  const hsize_t extents[] = {rows, columns};
  const hid_t space = H5Screate_simple(2, extents, nullptr);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, made, H5P_DEFAULT);
  REQUIRE(dataset >= 0);
  if (!values.empty()) REQUIRE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  H5Dclose(dataset);
  H5Sclose(space);
}

std::vector<double> read_dataset(const std::string& path, const char* name) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), dataset = H5Dopen2(file, name, H5P_DEFAULT);
  std::vector<double> there(rows * columns);
  REQUIRE(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, there.data()) >= 0);
  H5Dclose(dataset);
  H5Fclose(file);
  return there;
}

}  // namespace

TEST_CASE("a contiguous dataset of HDF5 is read and written in place, behind a user block too") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "c.h5").string();
  std::vector<double> values(rows * columns);
  std::iota(values.begin(), values.end(), 0.5);
  const hid_t made = H5Pcreate(H5P_FILE_CREATE), chunked = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_userblock(made, 512);
  const hsize_t chunk[] = {100, 100};
  H5Pset_chunk(chunked, 2, chunk);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, made, H5P_DEFAULT);
  write_dataset(file, "run", H5T_IEEE_F64LE, H5P_DEFAULT, values);
  write_dataset(file, "chunks", H5T_IEEE_F64LE, chunked, values);
  write_dataset(file, "swapped", H5T_IEEE_F64BE, H5P_DEFAULT, values);
  write_dataset(file, "empty", H5T_IEEE_F64LE, H5P_DEFAULT, {});
  H5Fclose(file);
  H5Pclose(chunked);
  H5Pclose(made);
  for (const char* other : {"chunks", "swapped", "empty"}) {
    INFO(other);
    CHECK_FALSE(place_of_doubles(path.c_str(), other));
  }

  const auto run = place_of_doubles(path.c_str(), "run");
  REQUIRE(run);
  {
    runtime rt{{.memory = 512 << 10}};  // half of the dataset
    auto a = open_file<double, 2>(rt, run->path, open,
                                  {.extents = {rows, columns}, .offset = run->offset, .read_from = run->which});
    CHECK(std::equal(a.begin(), a.end(), values.begin()));
    a[299][399] = -1;
  }
  values.back() = -1;
  CHECK(read_dataset(path, "run") == values);
}

TEST_CASE("a dataset that a link leads to is used in the file that holds it") {
  const temporary_folder folder;
  const auto name = [&](const char* n) { return (folder.path() / n).string(); };
  const std::vector<double> there(rows * columns, 1.0), other(rows * columns, -7.0);
  for (const auto& [path, values] : {std::pair(name("g.h5"), there), std::pair(name("e.h5"), other)}) {
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    write_dataset(file, "run", H5T_IEEE_F64LE, H5P_DEFAULT, values);
    if (path == name("e.h5")) REQUIRE(H5Lcreate_external("g.h5", "/run", file, "far", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
  }
  const auto far = place_of_doubles(name("e.h5").c_str(), "far");
  REQUIRE(far);
  CHECK(std::filesystem::equivalent(far->path, name("g.h5")));
  runtime rt{{.memory = 512 << 10}};
  {
    auto a = open_file<double, 2>(rt, far->path, open,
                                  {.extents = {rows, columns}, .offset = far->offset, .read_from = far->which});
    CHECK(a[0][0] == 1.0);
    a[0][0] = 2.0;
  }
  CHECK(read_dataset(name("g.h5"), "run")[0] == 2.0);
  CHECK(read_dataset(name("e.h5"), "run") == other);
}

TEST_CASE("a file that has taken the place of the one that was read is refused") {
  const temporary_folder folder;
  const auto name = [&](const char* n) { return (folder.path() / n).string(); };
  for (const char* n : {"a.raw", "b.raw"}) std::ofstream(name(n)) << std::string(800, 'x');
  struct stat is {};
  REQUIRE(::stat(name("a.raw").c_str(), &is) == 0);
  const file_contents contents{.extents = {100}, .read_from = file_identity{is.st_dev, is.st_ino}};
  runtime rt{{.memory = 512 << 10}};
  { auto a = open_file<double, 1>(rt, name("a.raw"), open_read_only, contents); }
  std::filesystem::rename(name("a.raw"), name("kept.raw"));  // so that its inode is not used again
  std::filesystem::rename(name("b.raw"), name("a.raw"));
  CHECK_THROWS_WITH((open_file<double, 1>(rt, name("a.raw"), open, contents)),
                    Catch::Contains("a.raw") && Catch::Contains("another file has taken its place"));
}

TEST_CASE("a dataset in packed chunks is read in place, in half of its memory, and only read") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "p.h5").string();
  std::vector<double> values(rows * columns);
  std::iota(values.begin(), values.end(), 0.5);
  const hid_t packed = H5Pcreate(H5P_DATASET_CREATE), foreign = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk[] = {32, 90};
  for (const hid_t p : {packed, foreign}) H5Pset_chunk(p, 2, chunk);
  H5Pset_shuffle(packed);
  H5Pset_deflate(packed, 4);
  H5Pset_fletcher32(packed);
  H5Pset_nbit(foreign);
  hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write_dataset(file, "packed", H5T_IEEE_F64LE, packed, values);
  write_dataset(file, "foreign", H5T_IEEE_F64LE, foreign, values);
  H5Fclose(file);
  H5Pclose(packed);
  H5Pclose(foreign);
  file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  std::optional<file_chunks> chunks[2];
  for (int i = 0; i < 2; ++i) {
    const char* const name = i == 0 ? "packed" : "foreign";
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    chunks[i] = chunks_of_doubles(dataset, name);
    H5Dclose(dataset);
  }
  H5Fclose(file);
  REQUIRE(chunks[0]);
  CHECK_FALSE(chunks[1]);

  runtime rt{{.memory = 480 << 10}};
  const file_contents contents{.extents = {rows, columns}, .chunks = chunks[0]};
  {
    auto a = open_file<double, 2>(rt, path, open_read_only, contents);
    CHECK(std::equal(a.begin(), a.end(), values.begin()));
  }
  CHECK_THROWS_WITH((open_file<double, 2>(rt, path, open, contents)),
                    Catch::Contains("dataset 'packed'") && Catch::Contains("not written to"));
  file_contents beyond = contents;
  beyond.chunks->table.back().offset = std::filesystem::file_size(path) - 1;
  CHECK_THROWS_WITH((open_file<double, 2>(rt, path, open_read_only, beyond)), Catch::Contains("dataset 'packed'") &&
                                                                                  Catch::Contains("chunk [288, 360]") &&
                                                                                  Catch::Contains("cut short"));
  file_contents other = contents;
  other.extents = {rows, columns + 90};
  CHECK_THROWS_WITH((open_file<double, 2>(rt, path, open_read_only, other)), Catch::Contains("60 chunks"));
}
