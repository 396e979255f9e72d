// A contiguous dataset of HDF5 as a raw file in place, as open_file.hpp says.

#include <hdf5.h>

#include <catch2/catch.hpp>
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

/// Where the elements of a dataset of doubles begin; nothing where they do not lie in the file as they are.
std::optional<std::uint64_t> place_of_doubles(const char* path, const char* name) {
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t made = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
  const bool as_they_are = H5Pget_layout(made) == H5D_CONTIGUOUS && H5Pget_external_count(made) == 0 &&
                           H5Tequal(type, H5T_NATIVE_DOUBLE) > 0;
  H5D_space_status_t written = H5D_SPACE_STATUS_ERROR;
  H5Dget_space_status(dataset, &written);
  const haddr_t offset = H5Dget_offset(dataset);  // of nothing: a number, where the file has a user block
  H5Tclose(type);
  H5Pclose(made);
  H5Dclose(dataset);
  H5Fclose(file);
  if (!as_they_are || written != H5D_SPACE_STATUS_ALLOCATED) return {};
  return offset;
}

// ---

constexpr hsize_t rows = 300, columns = 400;

void write_dataset(hid_t file, const char* name, hid_t type, hid_t made, const std::vector<double>& values) {
  const hsize_t extents[] = {rows, columns};
  const hid_t space = H5Screate_simple(2, extents, nullptr);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, made, H5P_DEFAULT);
  REQUIRE(dataset >= 0);
  if (!values.empty())
    REQUIRE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  H5Dclose(dataset);
  H5Sclose(space);
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

  const auto offset = place_of_doubles(path.c_str(), "run");
  REQUIRE(offset);
  {
    runtime rt{{.memory = 512 << 10}};  // half of the dataset
    auto a = open_file<double, 2>(rt, path, open, {.extents = {rows, columns}, .offset = *offset});
    CHECK(std::equal(a.begin(), a.end(), values.begin()));
    a[299][399] = -1;
  }
  const hid_t again = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(again, "run", H5P_DEFAULT);
  std::vector<double> there(rows * columns);
  H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, there.data());
  values.back() = -1;
  CHECK(there == values);
  H5Dclose(dataset);
  H5Fclose(again);
}
