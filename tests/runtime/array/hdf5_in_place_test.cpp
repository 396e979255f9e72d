// Datasets of HDF5 in place are what libhdf5 reads of them.

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <complex>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "oocarray/hdf5.hpp"
#include "support/random_seed.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

constexpr hsize_t rows = 300, columns = 400;

struct pointer_sized {
  unsigned char bytes[sizeof(char*)];
};

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
  {
    runtime rt{{.memory = 512 << 10}};  // half of the dataset
    const auto used = [&](const char* name) { return open_hdf5<double, 2>(rt, path, name, open); };
    CHECK_THROWS_WITH(used("chunks"), Catch::Contains("'chunks': is stored in chunks, which are only read in place"));
    CHECK_THROWS_WITH(used("swapped"), Catch::Contains("not of the type f8") && Catch::Contains("import it"));
    CHECK_THROWS_WITH(used("empty"), Catch::Contains("nothing was written to it"));
    CHECK_THROWS_WITH(used("none"), Catch::Contains("has no dataset 'none'"));
    CHECK_THROWS_WITH((open_hdf5<float, 2>(rt, path, "run", open)), Catch::Contains("not of the type f4"));
    CHECK_THROWS_WITH((open_hdf5<double, 3>(rt, path, "run", open)), Catch::Contains("2"));
    CHECK_THROWS_WITH((open_hdf5<double, 2>(rt, path + "x", "run", open)), Catch::Contains("c.h5x"));
    auto a = used("run");
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
  runtime rt{{.memory = 512 << 10}};
  {
    auto a = open_hdf5<double, 2>(rt, name("e.h5"), "far", open);
    CHECK(std::filesystem::equivalent(a.path(), name("g.h5")));
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
  std::mt19937_64 g(random_seed("chunks of HDF5"));
  std::vector<double> values(rows * columns);
  for (double& v : values) v = static_cast<double>(between(g, 0, 1000));
  struct way {
    const char* name;
    herr_t (*set)(hid_t);
  };
  const way ways[] = {
      {"plain", [](hid_t) -> herr_t { return 0; }},
      {"deflate", [](hid_t p) { return H5Pset_deflate(p, 4); }},
      {"all",
       [](hid_t p) {
         return std::min({H5Pset_shuffle(p), H5Pset_deflate(p, 1), H5Pset_fletcher32(p)});
       }},
      {"n-bit", [](hid_t p) { return std::min(H5Pset_nbit(p), H5Pset_deflate(p, 1)); }},
      {"scale-offset", [](hid_t p) { return H5Pset_scaleoffset(p, H5Z_SO_FLOAT_DSCALE, 2); }},
      {"partial",
       [](hid_t p) {
         return std::min(H5Pset_deflate(p, 1), H5Pset_chunk_opts(p, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS));
       }},
      {"half", [](hid_t p) { return H5Pset_deflate(p, 1); }},
      {"foreign", [](hid_t p) { return H5Pset_filter(p, 300, H5Z_FLAG_OPTIONAL, 0, nullptr); }},
  };
  const hsize_t user_block = between(g, 0, 1) * 1024, chunk[] = {between(g, 1, 60), between(g, 1, 90)};
  CAPTURE(user_block, chunk[0], chunk[1]);
  const hid_t made = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(made, user_block);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, made, H5P_DEFAULT);
  const double missing = -4;
  for (const way& w : ways) {
    const hid_t packed = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(packed, 2, chunk);
    H5Pset_fill_value(packed, H5T_NATIVE_DOUBLE, &missing);
    REQUIRE(w.set(packed) >= 0);
    const bool half = std::string(w.name) == "half";  // only its first column is written
    write_dataset(file, w.name, H5T_IEEE_F64LE, packed, half ? std::vector<double>() : values);
    if (half) {
      const hid_t dataset = H5Dopen2(file, w.name, H5P_DEFAULT), space = H5Dget_space(dataset);
      const hsize_t first[] = {0, 0}, column[] = {rows, 1};
      H5Sselect_hyperslab(space, H5S_SELECT_SET, first, nullptr, column, nullptr);
      const hid_t memory = H5Screate_simple(2, column, nullptr);
      REQUIRE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values.data()) >= 0);
      H5Sclose(memory);
      H5Sclose(space);
      H5Dclose(dataset);
    }
    H5Pclose(packed);
  }
  H5Fclose(file);
  H5Pclose(made);
  runtime rt{{.memory = 480 << 10}};
  for (const way& w : ways) {
    INFO(w.name);
    if (std::string(w.name) == "foreign") {
      CHECK_THROWS_WITH((open_hdf5<double, 2>(rt, path, w.name, open_read_only)),
                        Catch::Contains("the filter '300'") && Catch::Contains("import it"));
      continue;
    }
    const std::vector<double> there = read_dataset(path, w.name);
    auto a = open_hdf5<double, 2>(rt, path, w.name, open_read_only);
    CHECK(std::equal(a.begin(), a.end(), there.begin()));
  }
}

TEST_CASE("a contiguous dataset that begins where memory cannot map it is read, and not written") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "m.h5").string();
  std::vector<double> values(rows * columns);
  std::iota(values.begin(), values.end(), 0.5);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<std::string> misaligned;
  for (int i = 0; i < 8; ++i) {  // what lies between them is of all lengths
    const hsize_t n = 3;
    const std::string name = "v" + std::to_string(i);
    const hid_t space = H5Screate_simple(1, &n, nullptr);
    const hid_t bytes =
        H5Dcreate2(file, ("b" + name).c_str(), H5T_NATIVE_UINT8, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const std::uint8_t three[3] = {};
    REQUIRE(H5Dwrite(bytes, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, three) >= 0);
    H5Dclose(bytes);
    H5Sclose(space);
    write_dataset(file, name.c_str(), H5T_IEEE_F64LE, H5P_DEFAULT, values);
    const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
    if (H5Dget_offset(dataset) % sizeof(double) != 0) misaligned.push_back(name);
    H5Dclose(dataset);
  }
  H5Fclose(file);
  REQUIRE_FALSE(misaligned.empty());
  runtime rt{{.memory = 8 << 20}};
  for (const std::string& name : misaligned) {
    const auto a = open_hdf5<double, 2>(rt, path, name, open_read_only);
    CHECK(std::equal(a.begin(), a.end(), values.begin()));
  }
  CHECK_THROWS_WITH((open_hdf5<double, 2>(rt, path, misaligned[0], open)), Catch::Contains("no multiple of 8"));
}

TEST_CASE("what begins where memory cannot map it is read with a small budget, whatever divides its extents") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "m.h5").string();
  constexpr std::size_t n = 1'048'583;  // a prime number
  std::vector<std::complex<double>> values(3 * n);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = {static_cast<double>(i), -1};
  const hid_t complex = H5Tcreate(H5T_COMPOUND, 16);
  H5Tinsert(complex, "r", 0, H5T_NATIVE_DOUBLE);
  H5Tinsert(complex, "i", 8, H5T_NATIVE_DOUBLE);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const auto write = [&](const std::string& name, hid_t type, const std::vector<hsize_t>& extents, const void* from) {
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t dataset = H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    REQUIRE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, from) >= 0);
    const hsize_t begin = H5Dget_offset(dataset);
    H5Dclose(dataset);
    H5Sclose(space);
    return begin;
  };
  const std::uint8_t some[8] = {};
  std::string unaligned, half_aligned, rows_of_it;
  for (hsize_t k = 0; k < 4; ++k) {
    write("b" + std::to_string(k), H5T_NATIVE_UINT8, {k < 2 ? 8U : 3U}, some);
    const std::string name = "v" + std::to_string(k);
    const hsize_t begin = write(name, complex, {n}, values.data());
    if (begin % 8 != 0 && unaligned.empty()) {
      unaligned = name;
      write("odd", H5T_NATIVE_UINT8, {3}, some);
      if (write("rows", complex, {3, n}, values.data()) % 8 != 0) rows_of_it = "rows";
    }
    if (begin % 16 == 8) half_aligned = name;
  }
  H5Tclose(complex);
  H5Fclose(file);
  REQUIRE_FALSE(unaligned.empty());
  REQUIRE_FALSE(rows_of_it.empty());
  REQUIRE_FALSE(half_aligned.empty());
  runtime rt(memory(28_MiB));
  {
    const auto a = open_hdf5<std::complex<double>, 1>(rt, path, unaligned, open_read_only);
    CHECK(std::equal(a.begin(), a.end(), values.begin()));
  }
  {
    const auto a = open_hdf5<std::complex<double>, 2>(rt, path, rows_of_it, open_read_only);
    CHECK((a[0][n - 1] == values[n - 1] && a[1][0] == values[n] && a[2][n - 1] == values[3 * n - 1]));
  }
  const auto a = open_hdf5<std::complex<double>, 1>(rt, path, half_aligned, open);  // enough for numbers of 8 bytes
  CHECK(a[n - 1] == values[n - 1]);
}

TEST_CASE("elements of a dataset are those of the type that the program says, or it is refused") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "t.h5").string();
  struct record {
    double x;
    std::int32_t n;
    char text[4];
  };
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const auto write = [&](const char* name, hid_t type, const void* values) {
    const hsize_t n = 3;
    const hid_t space = H5Screate_simple(1, &n, nullptr);
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    REQUIRE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
  };
  const std::complex<double> numbers[] = {{1, 2}, {3, 4}, {5, 6}};
  const hid_t complex = H5Tcreate(H5T_COMPOUND, 16);
  H5Tinsert(complex, "r", 0, H5T_NATIVE_DOUBLE);
  H5Tinsert(complex, "i", 8, H5T_NATIVE_DOUBLE);
  write("complex", complex, numbers);
  const record records[] = {{1.5, 1, "a"}, {2.5, 2, "b"}, {3.5, 3, "c"}};
  const hid_t compound = H5Tcreate(H5T_COMPOUND, sizeof(record)), text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 4);
  H5Tinsert(compound, "x", HOFFSET(record, x), H5T_NATIVE_DOUBLE);
  H5Tinsert(compound, "n", HOFFSET(record, n), H5T_NATIVE_INT32);
  H5Tinsert(compound, "text", HOFFSET(record, text), text);
  write("records", compound, records);
  const hid_t in_file = H5Tcreate(H5T_COMPOUND, sizeof(record));
  H5Tinsert(in_file, "x", HOFFSET(record, x), H5T_NATIVE_DOUBLE);
  H5Tinsert(in_file, "n", HOFFSET(record, n), H5T_STD_I32BE);
  H5Tinsert(in_file, "text", HOFFSET(record, text), text);
  write("swapped", in_file, records);
  const std::int8_t truths[] = {0, 1, 1};
  const hid_t truth = H5Tenum_create(H5T_NATIVE_INT8);
  for (std::int8_t v : {0, 1}) H5Tenum_insert(truth, v == 0 ? "FALSE" : "TRUE", &v);
  write("truths", truth, truths);
  const hid_t answer = H5Tenum_create(H5T_NATIVE_INT8);
  for (std::int8_t v : {0, 1, 2}) H5Tenum_insert(answer, std::to_string(v).c_str(), &v);
  write("answers", answer, truths);
  write("numbers", H5T_NATIVE_INT8, truths);
  const char* const texts[] = {"a", "bc", ""};
  const hid_t variable = H5Tcopy(H5T_C_S1);
  H5Tset_size(variable, H5T_VARIABLE);
  write("texts", variable, texts);
  for (const hid_t t : {complex, in_file, compound, text, truth, answer, variable}) H5Tclose(t);
  H5Fclose(file);

  runtime rt{{.memory = 512 << 10}};
  const auto first = open_hdf5<std::complex<double>, 1>(rt, path, "complex", open_read_only);
  CHECK(std::equal(first.begin(), first.end(), std::begin(numbers)));
  const auto second = open_hdf5<bool, 1>(rt, path, "truths", open_read_only);
  CHECK((!second[0] && second[1] && second[2]));
  for (const char* other : {"answers", "numbers"})
    CHECK_THROWS_WITH((open_hdf5<bool, 1>(rt, path, other, open_read_only)), Catch::Contains("not of the type b1"));
  const auto third = open_hdf5<record, 1>(rt, path, "records", open_read_only);
  CHECK((third[2].x == 3.5 && third[2].n == 3 && third[2].text[0] == 'c'));
  CHECK_THROWS_WITH((open_hdf5<record, 1>(rt, path, "swapped", open_read_only)),
                    Catch::Contains("'swapped'") && Catch::Contains("not of the type struct16"));
  CHECK_THROWS_WITH((open_hdf5<double, 1>(rt, path, "complex", open_read_only)), Catch::Contains("not of the type f8"));
  CHECK_THROWS_WITH((open_hdf5<std::complex<float>, 1>(rt, path, "records", open_read_only)),
                    Catch::Contains("not of the type c8"));
  CHECK_THROWS_WITH((open_hdf5<pointer_sized, 1>(rt, path, "texts", open_read_only)),
                    Catch::Contains("'texts'") && Catch::Contains("not of the type"));
}
