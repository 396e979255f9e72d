// write_all() to a store one of whose nodes is on a full disk.
//
// on_small_disk.sh names a folder with 4 MiB in OOC_TEST_SMALL_DISK.  Where it could not mount one,
// files of the ranks that write to that node may not grow beyond 4 MiB (EFBIG in place of ENOSPC).
#include <signal.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "mpi/ranks.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using Catch::Contains;
using testing::all_ranks;
using group_ptr = std::shared_ptr<process_group>;
using matrix = ooc_array<double, 2>;

namespace {

constexpr std::size_t columns = 512;  // a row is 4 KiB
constexpr std::size_t half = 2048;    // rows on each node: 8 MiB
constexpr std::size_t kept = 128;     // rows that are there before

/// Two nodes, of which the second has little space.
class store_on_small_disk {
 public:
  explicit store_on_small_disk(process_group& g) : group_(g) {
    if (const char* given = std::getenv("OOC_TEST_SMALL_DISK")) {
      folder_ = given;
    } else {
      FAIL("OOC_TEST_SMALL_DISK is not set: see on_small_disk.sh");
    }
    const std::string url = "local:" + (folder_ / "large").string() + "," + node();
    const store_options o{.workers = 1, .staging = 64_KiB};
    if (g.rank() == 0) open(url, o);
    g.barrier("the store is made");
    if (g.rank() != 0) open(url, o);
  }
  ~store_on_small_disk() {
    if (std::uncaught_exceptions() == 0) group_.barrier("the store is not used any more");
    store_.reset();
    if (group_.rank() == 0)
      for (const char* name : {"large", "small/node"}) std::filesystem::remove_all(folder_ / name);
  }

  const ooc::store& handle() const { return *store_; }
  std::string node() const { return (folder_ / "small" / "node").string(); }

 private:
  void open(const std::string& url, const store_options& o) { store_.emplace(store::open(url, o)); }

  process_group& group_;
  std::filesystem::path folder_;
  std::optional<ooc::store> store_;
};

/// Where no small disk could be mounted.
class small_files {
 public:
  small_files() {
    if (std::getenv("OOC_TEST_SMALL_DISK_MOUNTED")) return;
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{4 << 20, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    limited_ = true;
  }
  ~small_files() {
    if (limited_) ::setrlimit(RLIMIT_FSIZE, &before_);
  }

 private:
  rlimit before_{};
  bool limited_ = false;
};

double value(std::size_t i, std::size_t j, double salt) { return salt + static_cast<double>(i * columns + j); }

std::vector<double> values(const box<2>& b, double salt) {
  std::vector<double> v;
  for (std::size_t i = b.lower[0]; i < b.upper[0]; ++i)
    for (std::size_t j = b.lower[1]; j < b.upper[1]; ++j) v.push_back(value(i, j, salt));
  return v;
}

/// A sparse array whose first half is on the first node, and its second on the second; the first
/// rows of both halves are written and acknowledged.
matrix half_and_half(runtime& rt, const store& s, const group_ptr& g) {
  matrix a(rt, s, "plate", create, {2 * half, columns},
           {.block = 4096,
            .stripes = {.sn = 0, .nn = 2, .sf = half * columns * sizeof(double)},
            .sparse = true,
            .replace = true,
            .group = g});
  if (g->rank() == 0)
    for (const std::size_t begin : {std::size_t{0}, half})
      for (std::size_t i = begin; i < begin + kept; ++i)
        for (std::size_t j = 0; j < columns; ++j) a[i][j] = value(i, j, 0.25);
  a.sync();
  return a;
}

/// The state that every rank must find after a write_all() of `boxes` with salt 0.5 has failed.
void check_contents(const matrix& a, std::span<const box<2>> boxes) {
  std::size_t lost = 0, torn = 0;
  for (const std::size_t begin : {std::size_t{0}, half})
    for (std::size_t i = begin; i < begin + kept; ++i)
      for (std::size_t j = 0; j < columns; ++j) lost += a[i][j] != value(i, j, 0.25);
  for (const box<2>& b : boxes)
    for (std::size_t i = b.lower[0]; i < b.upper[0]; ++i)
      for (std::size_t j = b.lower[1]; j < b.upper[1]; ++j) torn += a[i][j] != 0 && a[i][j] != value(i, j, 0.5);
  CHECK(lost == 0);
  CHECK(torn == 0);
}

/// The text of the error that write_all() ends with on this rank.
std::string error_of(matrix& a, const box<2>& mine, bool limited) {
  std::optional<small_files> limit;
  if (limited) limit.emplace();
  try {
    a.write_all(mine, values(mine, 0.5));
  } catch (const io_error& e) {
    CHECK((e.code() == std::errc::no_space_on_device || e.code() == std::errc::file_too_large));
    return e.what();
  }
  FAIL("the disk was not full");
  return {};
}

}  // namespace

TEST_CASE("a full disk that one rank meets is the same error on all, and nothing else is lost") {
  const group_ptr g = all_ranks();
  const store_on_small_disk s(*g);
  runtime rt(testing::memory(s.handle().core()->staging_bytes() + 64 * 4096));
  matrix a = half_and_half(rt, s.handle(), g);
  // The last rank writes to the second node, the others share the first one.
  const auto last = static_cast<std::size_t>(g->size() - 1);
  std::vector<box<2>> boxes;
  for (std::size_t r = 0; r < last; ++r)
    boxes.push_back({{kept + (half - kept) * r / last, 0}, {kept + (half - kept) * (r + 1) / last, columns}});
  boxes.push_back({{half + kept, 0}, {2 * half, columns}});
  const auto me = static_cast<std::size_t>(g->rank());
  const std::string text = error_of(a, boxes[me], me == last);
  CHECK_THAT(text, Contains(s.node()) && Contains("plate"));
  if (last > 0) CHECK_THAT(text, Contains("rank " + std::to_string(last) + ": "));
  check_contents(std::as_const(a), boxes);
  // The others' boxes are written.
  if (me != last) {
    std::size_t missing = 0;
    for (std::size_t i = boxes[me].lower[0]; i < boxes[me].upper[0]; ++i)
      missing += std::as_const(a)[i][0] != value(i, 0, 0.5);
    CHECK(missing == 0);
  }
  a.close();
}

TEST_CASE("a full disk in the middle of an exchange is an error on all ranks, and none waits") {
  const group_ptr g = all_ranks();
  const store_on_small_disk s(*g);
  runtime rt(testing::memory(s.handle().core()->staging_bytes() + 16_MiB));
  matrix a = half_and_half(rt, s.handle(), g);
  const auto ranks = static_cast<std::size_t>(g->size());
  const std::size_t width = columns / ranks;
  std::vector<box<2>> boxes;
  for (std::size_t r = 0; r < ranks; ++r) boxes.push_back({{half + kept, r * width}, {2 * half, (r + 1) * width}});
  const auto me = static_cast<std::size_t>(g->rank());
  CHECK_THAT(error_of(a, boxes[me], true), Contains(s.node()));
  check_contents(std::as_const(a), boxes);
  // The ranks are still together, and what finds room is written.
  const box<2> small{{kept + me, 0}, {kept + me + 1, columns}};
  a.write_all(small, values(small, 0.5));
  a.close();
}
