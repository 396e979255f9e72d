// Files that belong to no store, opened as arrays where they lie; random programs on them are in
// array_model_test.cpp.

#include "oocarray/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>

#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/fft.hpp"
#include "oocarray/algorithm/sort.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "storage/layout/npy.hpp"
#include "support/other_user.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

using bytes = std::vector<char>;

void write_file(const std::filesystem::path& path, const bytes& content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// `offset` bytes that are no elements, the elements 0, 1, 2 ..., and 11 bytes behind them.
template <class T>
bytes raw(std::size_t offset, std::size_t elements) {
  bytes b(offset + elements * sizeof(T) + 11, 'x');
  for (std::size_t i = 0; i < elements; ++i) {
    const auto value = static_cast<T>(i);
    std::memcpy(b.data() + offset + i * sizeof(T), &value, sizeof value);
  }
  return b;
}

template <class T>
bytes npy(const std::string& type, const std::vector<std::uint64_t>& shape, bool fortran = false) {
  std::string header = storage::format_npy_header(type, shape);
  if (fortran) header.replace(header.find("False"), 5, "True ");
  bytes b(header.begin(), header.end());
  const std::size_t n = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  const bytes data = raw<T>(0, n);
  b.insert(b.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(n * sizeof(T)));
  return b;
}

/// A file in a folder that is gone with the test.
struct test_file {
  explicit test_file(const bytes& content, const std::string& name = "a.raw") : path((folder / name).string()) {
    write_file(path, content);
  }
  bytes now() const { return read_file(path); }

  temporary_folder folder;
  std::string path;
};

/// A lock of the whole file, as another process would have it.
class foreign_lock {
 public:
  foreign_lock(const std::string& path, short type) : fd_(::open(path.c_str(), O_RDWR)) {
    struct flock l {};
    l.l_type = type;
    REQUIRE(::fcntl(fd_, F_OFD_SETLK, &l) == 0);
  }
  ~foreign_lock() { ::close(fd_); }

 private:
  int fd_;
};

const array_options<double> small_blocks{.block = 4_KiB};

}  // namespace

TEST_CASE("a raw file is an array where it lies, whatever its elements' place in it") {
  const std::size_t offset = GENERATE(0, 8, 128, 4096 + 8);
  constexpr std::size_t n = 40000;  // 312 KiB, eight times the budget
  const test_file f(raw<double>(offset, n));
  bytes expected = f.now();
  {
    runtime rt(memory(10 * 4_KiB, 4));
    auto a = open_file<double, 2>(rt, f.path, ooc::open, {.extents = {200, 200}, .offset = offset}, small_blocks);
    REQUIRE(a.extents() == std::array<std::size_t, 2>{200, 200});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += a.data()[i] != static_cast<double>(i);
    CHECK(wrong == 0);
    for (std::size_t i = 0; i < n; i += 7) a[i / 200][i % 200] += 0.5;
    CHECK(a[1][1] == 201);
    CHECK(a(0, 7) == 7.5);
    a.writeback(durable);
    CHECK(a.dirty_blocks() == 0);
    CHECK(rt.stats().evictions > 40);
  }
  for (std::size_t i = 0; i < n; i += 7) {
    const double v = static_cast<double>(i) + 0.5;
    std::memcpy(expected.data() + offset + i * sizeof v, &v, sizeof v);
  }
  CHECK(f.now() == expected);
}

TEST_CASE("a raw file without extents is one dimension up to its end") {
  bytes content = raw<float>(512, 1000);
  content.resize(512 + 4000);
  const test_file f(content);
  runtime rt(memory(1_MiB));
  const auto a = open_file<float, 1>(rt, "file:" + f.path, open_read_only, {.offset = 512});
  CHECK(a.size() == 1000);
  CHECK(a[999] == 999.0F);
}

TEST_CASE("a .npy file says itself what it holds") {
  const test_file f(npy<float>("f4", {3, 100, 50}), "a.npy");
  runtime rt(memory(1_MiB));
  {
    auto a = open_file<float, 3>(rt, f.path, ooc::open);
    CHECK(a.extents() == std::array<std::size_t, 3>{3, 100, 50});
    CHECK(a[2][99][49] == 14999.0F);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 4096 == 128);
    a[2][99][49] = -1;
  }
  const any_array b = open_any_file(rt, f.path, open_read_only);
  CHECK(b.element_type() == "f4");
  CHECK(b.extents() == std::vector<std::size_t>{3, 100, 50});
  CHECK(reinterpret_cast<const float*>(b.data())[14999] == -1.0F);
  CHECK(f.now().size() == 128 + 60000);
}

TEST_CASE("a file in Fortran's order is opened with its indices in reverse, when that is said") {
  const test_file f(npy<double>("f8", {30, 70}, true), "a.npy");
  runtime rt(memory(1_MiB));
  CHECK_THROWS_WITH((open_file<double, 2>(rt, f.path, open_read_only)),
                    Contains(f.path) && Contains("Fortran") && Contains("column_major"));
  const auto a = open_file<double, 2>(rt, f.path, open_read_only, {.order = index_order::column_major});
  CHECK(a.extents() == std::array<std::size_t, 2>{70, 30});
  CHECK(a[69][2] == 69 * 30 + 2);
  const test_file c(npy<double>("f8", {30, 70}), "c.npy");
  CHECK_THROWS_WITH((open_file<double, 2>(rt, c.path, open_read_only, {.order = index_order::column_major})),
                    Contains("row-major"));
  const test_file r(raw<std::int32_t>(0, 6));
  const auto b =
      open_file<std::int32_t, 2>(rt, r.path, open_read_only, {.extents = {2, 3}, .order = index_order::column_major});
  CHECK(b.extents() == std::array<std::size_t, 2>{3, 2});
}

TEST_CASE("a file in place serves algorithms as any array does") {
  constexpr std::size_t n = 300;
  const std::size_t offset = GENERATE(0, 128);
  const test_file f(raw<double>(offset, n * n));
  runtime rt(memory(4_MiB));
  const test_store nodes(store_kind::in_memory);
  auto a = open_file<double, 2>(rt, f.path, ooc::open, {.extents = {n, n}, .offset = offset}, small_blocks);
  constexpr double all = static_cast<double>(n * n - 1) * static_cast<double>(n * n) / 2;
  CHECK(reduce(a, 0.0) == all);
  ooc_array<double, 2, layout_tiled> b{rt, nodes.handle(), "b", create, {n, n}};
  ooc::copy(a, b);
  CHECK(b[299][298] == a[299][298]);
  std::vector<std::size_t> where{77, 0, n * n - 1};
  std::vector<double> got(3);
  a.gather(where, got);
  CHECK(got == std::vector<double>{77, 0, n * n - 1});
  a.scatter(where, std::vector<double>{-77, -1, -2});
  transpose(a);
  CHECK(a[77][0] == -77);
  CHECK(a[298][299] == 299 * 300 + 298);
  sweep(a, 3, stencil({1, 1}, [](auto& out, const auto& in) {
          for (auto j = out.lower(1); j < out.upper(1); ++j) out[j] = in[0][j] * 2;
        }));
  CHECK(a[298][298] == 8 * (298 * 300 + 298));
  a.close();
  auto flat = open_file<double, 1>(rt, f.path, ooc::open, {.extents = {n * n}, .offset = offset});
  ooc::sort(flat);
  CHECK(std::is_sorted(flat.begin(), flat.end()));
  flat.writeback();
  flat.close();
  CHECK(f.now().size() == offset + n * n * 8 + 11);
  CHECK(f.now().back() == 'x');
}

TEST_CASE("a file in place larger than memory serves algorithms that need room beside it", "[megabytes]") {
  constexpr std::size_t n = 2000, planes = 10, rows = 400, columns = 1000;  // 32 MB
  const std::size_t offset = GENERATE(0, 16);
  const test_file f(raw<double>(offset, n * n));
  runtime rt(memory(4_MiB));
  {
    auto a = open_file<double, 2>(rt, f.path, ooc::open, {.extents = {n, n}, .offset = offset});
    transpose(a);
    CHECK(a[1999][3] == 3 * 2000 + 1999);
    transpose(a);
  }
  {
    auto a = open_file<double, 3>(rt, f.path, ooc::open, {.extents = {planes, rows, columns}, .offset = offset});
    const auto doubled = stencil({1, 1, 1}, [](auto& out, const auto& in) {
      for (auto j = out.lower(1); j < out.upper(1); ++j)
        for (auto k = out.lower(2); k < out.upper(2); ++k) out[j][k] = 2 * in[0][j][k];
    });
    CHECK(sweep(a, 2, doubled).parts > 1);
    const auto at_end = [](std::size_t i, std::size_t extent) { return i == 0 || i + 1 == extent; };
    const auto wrong = transform_reduce(a, std::size_t{0}, std::plus<>(),
                                        [&](double x, std::size_t i, std::size_t j, std::size_t k) -> std::size_t {
                                          const bool kept = at_end(i, planes) || at_end(j, rows) || at_end(k, columns);
                                          const auto was = static_cast<double>((i * rows + j) * columns + k);
                                          return x != (kept ? was : 4 * was);
                                        });
    CHECK(wrong.value == 0);
  }
  {
    auto a = open_file<double, 1>(rt, f.path, ooc::open, {.extents = {n * n}, .offset = offset});
    const double sum = reduce(a, 0.0);
    const auto sorted = ooc::sort(a);
    CHECK(sorted.temporary_bytes == n * n * sizeof(double));
    CHECK(is_sorted(a));
    CHECK(reduce(a, 0.0) == sum);  // of integers below 2^53
  }
  {
    auto a = open_file<std::complex<double>, 1>(rt, f.path, ooc::open, {.extents = {n * n / 2}, .offset = offset});
    const std::complex<double> was = a[777'777];
    CHECK(fft(a).passes == 2);
    ifft(a);
    CHECK(std::abs(a[777'777] - was) < 1e-9 * std::abs(was));
  }
  CHECK(f.now().size() == offset + n * n * 8 + 11);
  CHECK(f.now().back() == 'x');
  CHECK(std::distance(std::filesystem::directory_iterator(f.folder.path()), {}) == 1);
}

TEST_CASE("a folder in which no file can be made is an error of the sort, before anything is touched") {
  if (!can_be_others()) return;
  constexpr std::size_t n = 1'000'000;
  const test_file f(raw<double>(0, n));
  std::filesystem::permissions(f.folder.path(), std::filesystem::perms(0555));
  std::filesystem::permissions(f.path, std::filesystem::perms(0666));
  other_user user(stranger, stranger, {}, {[path = f.path]() -> std::string {
                    runtime rt(memory(2_MiB));
                    auto a = open_file<double, 1>(rt, path, ooc::open, {.extents = {n}});
                    try {
                      ooc::sort(a);
                      return "sorted";
                    } catch (const io_error& e) {
                      return e.what();
                    }
                  }});
  CHECK_THAT(user.run(0), Contains("a.raw.sort'") && Contains("Permission denied"));
  CHECK(f.now() == raw<double>(0, n));
}

TEST_CASE("a file in place is read where the file system has no direct transfers") {
  if (!std::filesystem::is_directory("/dev/shm")) return;
  const std::string path = "/dev/shm/oocarray-test-" + std::to_string(::getpid());
  write_file(path, raw<double>(8, 5000));
  {
    runtime rt(memory(10 * 4_KiB));
    auto a = open_file<double, 1>(rt, path, ooc::open, {.extents = {5000}, .offset = 8}, small_blocks);
    CHECK(std::accumulate(a.begin(), a.end(), 0.0) == 4999.0 * 5000 / 2);
    a[4999] = 1;
  }
  bytes expected = raw<double>(8, 5000);
  const double one = 1;
  std::memcpy(expected.data() + 8 + 4999 * 8, &one, 8);
  CHECK(read_file(path) == expected);
  std::filesystem::remove(path);
}

TEST_CASE("a file in place has one writer or several readers, as far as they ask for it") {
  const test_file f(raw<double>(0, 1000));
  runtime rt(memory(1_MiB));
  const file_contents hold{.extents = {1000}};
  const auto open_it = [&](auto how, bool shared = false) {
    return open_file<double, 1>(rt, f.path, how, hold, {.shared = shared});
  };
  {
    const foreign_lock reader(f.path, F_RDLCK);
    CHECK_THROWS_WITH(open_it(ooc::open), Contains(f.path) && Contains("another process"));
    CHECK(open_it(open_read_only)[999] == 999);
    auto together = open_it(ooc::open, true);
    together[5] = 50;
  }
  {
    const foreign_lock writer(f.path, F_WRLCK);
    CHECK_THROWS_WITH(open_it(open_read_only), Contains("open for writing in another process"));
    CHECK_THROWS_WITH(open_it(ooc::open, true), Contains("open for writing in another process"));
  }
  auto a = open_it(ooc::open);
  CHECK(a[5] == 50);
  CHECK_THROWS_WITH(open_it(open_read_only), Contains("already open in this process"));
  a.close();  // lets go of the lock
  {
    auto first = open_it(open_read_only), second = open_it(open_read_only);
    CHECK(first[5] == 50);
    first.close();
    CHECK(second[5] == 50);
    CHECK_THROWS_WITH(open_it(ooc::open), Contains("already open in this process"));
  }
  const foreign_lock writer(f.path, F_WRLCK);
}

TEST_CASE("a file that was cut off is an error that names it and both sizes, and is not made longer") {
  const test_file f(raw<double>(128, 10000));
  runtime rt(memory(1_MiB));
  auto a = open_file<double, 1>(rt, f.path, ooc::open, {.extents = {10000}, .offset = 128}, small_blocks);
  a[9999] = 1;
  REQUIRE(::truncate(f.path.c_str(), 5000) == 0);
  CHECK_THROWS_WITH(a.writeback(), Contains(f.path) && Contains("5000 bytes") && Contains("80128"));
  CHECK(std::filesystem::file_size(f.path) == 5000);
  CHECK(a.dirty_blocks() == 1);
  std::vector<double> got(1);
  const std::vector<std::size_t> where{4000};
  CHECK_THROWS_WITH(a.gather(where, got), Contains(f.path) && Contains("5000 bytes"));
  CHECK(a[100] == 100);  // what is left of it
  a.invalidate(discard);
}

TEST_CASE("a file in place keeps its size and has nothing beside it") {
  const test_file f(raw<double>(0, 1000));
  runtime rt(memory(1_MiB));
  auto a = open_file<double, 1>(rt, f.path, ooc::open, {.extents = {1000}});
  CHECK_THROWS_WITH(a.resize(900), Contains(f.path) && Contains("size"));
  CHECK_THROWS_WITH(a.resize(1100), Contains(f.path) && Contains("size"));
  CHECK(a.attributes().empty());
  CHECK_THROWS_WITH(a.set_attribute("unit", "K"), Contains(f.path) && Contains("attributes"));
  CHECK(a[999] == 999);
}

TEST_CASE("what a file cannot be opened as is refused with file, thing and sizes") {
  temporary_folder folder;
  runtime rt(memory(1_MiB));
  const auto file = [&](const bytes& content, const std::string& name = "a.raw") {
    write_file(folder / name, content);
    return (folder / name).string();
  };
  const auto raw_error = [&](const file_contents& c, const auto& matches) {
    const std::string path = file(raw<double>(0, 1000));  // 8011 bytes
    CHECK_THROWS_WITH((open_file<double, 2>(rt, path, ooc::open, c)), Contains(path) && matches);
  };
  raw_error({.extents = {10, 101}}, Contains("8080 bytes") && Contains("8011") && Contains("copy it again"));
  raw_error({.extents = {10, 100}, .offset = 16}, Contains("8016 in all") && Contains("8011"));
  raw_error({.extents = {10, 100}, .offset = 9000}, Contains("9000") && Contains("8011"));
  raw_error({.extents = {10, 10}, .offset = 4}, Contains("byte 4") && Contains("multiple of 8"));
  raw_error({.extents = {10, 0}}, Contains("{10, 0}"));
  raw_error({.extents = {std::size_t{1} << 40, std::size_t{1} << 40}}, Contains("2^63 - 1"));
  raw_error({.extents = {1000}}, Contains("rank"));
  raw_error({}, Contains("whole number of elements"));
  CHECK_THROWS_WITH(open_any_file(rt, file({}), open_read_only), Contains("type"));
  CHECK_THROWS_WITH((open_file<double, 1>(rt, (folder / "none").string(), ooc::open)),
                    Contains("none") && Contains("No such file"));
  CHECK_THROWS_WITH((open_file<double, 1>(rt, folder.path().string(), open_read_only)), Contains("is a folder"));
  CHECK_THROWS_WITH((open_file<double, 1>(rt, "/dev/null", open_read_only)), Contains("regular"));
  CHECK_THROWS_WITH((open_file<double, 1>(rt, "file://host/x", open_read_only)), Contains("this machine"));

  const auto npy_error = [&](const bytes& content, const auto& matches) {
    const std::string path = file(content, "b.npy");
    CHECK_THROWS_WITH((open_file<double, 2>(rt, path, open_read_only)), Contains(path) && matches);
  };
  const bytes good = npy<double>("f8", {10, 20});
  const auto altered = [&](const std::string& was, const std::string& is) {
    std::string s(good.begin(), good.end());
    s.replace(s.find(was), was.size(), is);
    return bytes(s.begin(), s.end());
  };
  npy_error(altered("NUMPY", "NUMPI"), Contains("mark") && Contains("raw file"));
  npy_error({good.begin(), good.begin() + 60}, Contains("cut short") && Contains("copy it again"));
  npy_error({good.begin(), good.end() - 1}, Contains("1728 in all") && Contains("1727"));
  npy_error(altered("<f8", ">f8"), Contains("byte order") && Contains("`ooc import` turns them round"));
  npy_error(altered("'<f8'", "'|O' "), Contains("objects"));
  npy_error(npy<float>("f4", {10, 20}), Contains("f4") && Contains("f8"));
  npy_error(npy<double>("f8", {200}), Contains("rank 1"));
  npy_error(npy<double>("f8", {3, 0}), Contains("no elements"));
  const std::string path = file(good, "b.npy");
  CHECK_THROWS_WITH((open_file<double, 2>(rt, path, open_read_only, {.offset = 8})), Contains("offset"));
  CHECK_THROWS_WITH((open_file<double, 2>(rt, path, open_read_only, {.extents = {20, 10}})),
                    Contains("{10, 20}") && Contains("{20, 10}"));
}

TEST_CASE("a file that may only be read is opened for reading, and says why not for writing") {
  if (!can_be_others()) return;
  const test_file f(raw<double>(0, 100));
  std::filesystem::permissions(f.folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(f.path, std::filesystem::perms(0444));
  const auto write_it = [path = f.path]() -> std::string {
    runtime rt(memory(1_MiB));
    try {
      open_file<double, 1>(rt, path, ooc::open, {.extents = {100}});
      return "opened";
    } catch (const usage_error& e) {
      return e.what();
    }
  };
  const auto read_it = [path = f.path] {
    runtime rt(memory(1_MiB));
    return std::to_string(open_file<double, 1>(rt, path, open_read_only, {.extents = {100}})[99]);
  };
  other_user reader(stranger, stranger, {}, {write_it, read_it});
  other_user mounted(other_user::on_read_only_mount{f.folder.path()}, {write_it, read_it});
  CHECK_THAT(reader.run(0), Contains(f.path) && Contains("Permission denied"));
  CHECK_THAT(mounted.run(0), Contains(f.path) && Contains("Read-only file system"));
  CHECK(reader.run(1).substr(0, 5) == "99.00");
  CHECK(mounted.run(1).substr(0, 5) == "99.00");
}
