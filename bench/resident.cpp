// Everything in memory: the loop over an array against the same loop over a plain double*.
//
//     jacobi          b[i][j] = (a[i-1][j] + a[i+1][j] + a[i][j-1] + a[i][j+1]) / 4, layout_right
//     dot             sum a[i][j] * b[i][j], layout_right
//     tile            sum over tiles() of a layout_tiled array, against a plain loop over as much
//     tiled_index     the same sum with a[i][j] on layout_tiled
//
// n = 4096 is bound by memory; n = 512 fits in cache and shows the arithmetic (`*_cached_ratio`).
// Times are processor times of the one thread.  The plain arrays are in huge pages.  All blocks are touched several
// times before the first measurement, so that each is mapped with the access it needs.
#include <cmath>
#include <stdexcept>

#include "measure/child.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/rival_memory.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/ooc_array.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using matrix = ooc::ooc_array<double, 2>;
using tiled_matrix = ooc::ooc_array<double, 2, ooc::layout_tiled>;

// The loops are functions of their own, so that each is compiled for itself, as in a program.

[[gnu::noinline]] void jacobi(const matrix& a, matrix& b, std::size_t n) {
  for (std::size_t i = 1; i + 1 < n; ++i)
    for (std::size_t j = 1; j + 1 < n; ++j) b[i][j] = 0.25 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
}

[[gnu::noinline]] void jacobi(const double* a, double* b, std::size_t n) {
  for (std::size_t i = 1; i + 1 < n; ++i)
    for (std::size_t j = 1; j + 1 < n; ++j)
      b[i * n + j] = 0.25 * (a[(i - 1) * n + j] + a[(i + 1) * n + j] + a[i * n + j - 1] + a[i * n + j + 1]);
}

[[gnu::noinline]] double dot(const matrix& a, const matrix& b, std::size_t n) {
  double s = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) s += a[i][j] * b[i][j];
  return s;
}

[[gnu::noinline]] double dot(const double* a, const double* b, std::size_t n) {
  double s = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) s += a[i * n + j] * b[i * n + j];
  return s;
}

[[gnu::noinline]] double sum_tiles(const tiled_matrix& a) {
  double s = 0;
  for (const auto t : a.tiles())
    for (std::size_t r = 0; r < t.rows(); ++r)
      for (std::size_t c = 0; c < t.cols(); ++c) s += t(r, c);
  return s;
}

[[gnu::noinline]] double sum_indexed(const tiled_matrix& a, std::size_t n) {
  double s = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) s += a[i][j];
  return s;
}

[[gnu::noinline]] double sum(const double* a, std::size_t n) {
  double s = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) s += a[i * n + j];
  return s;
}

/// Times `ours` and `theirs` in turns.
template <class Ours, class Theirs>
void compare(json& out, const std::string& name, unsigned rounds, std::size_t n, Ours ours, Theirs theirs) {
  const unsigned repeats = n >= 4096 ? 5 : 200;
  for (int i = 0; i < 3; ++i) {  // all blocks mapped, all caches warm
    ours();
    theirs();
  }
  paired_ratio r(name);
  double rival = 0;
  for (unsigned k = 0; k < rounds; ++k) {
    const double a = best_of(repeats, ours);
    const double b = best_of(repeats, theirs);
    r.add(a, b);
    rival = b;
  }
  r.put(out);
  out[name + "_ns_per_element"] = std::round(rival / static_cast<double>(n * n) * 1e12 * r.middle()) / 1e3;
}

void fill(auto& a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) a[i][j] = 1.0;
}

void check_sum(double got, std::size_t n) {
  if (got != static_cast<double>(n * n)) throw std::runtime_error("resident: a sum is wrong");
}

void measure(json& out, const ooc::store& store, ooc::runtime& rt, std::size_t n, unsigned rounds) {
  const std::string tag = n >= 4096 ? "" : "_cached";
  const ooc::array_options<double> fresh{.sparse = true, .replace = true};
  {
    matrix a{rt, store, "a", ooc::create, {n, n}, fresh};
    matrix b{rt, store, "b", ooc::create, {n, n}, fresh};
    const plain_array pa(n * n), pb(n * n);
    fill(a, n);
    fill(b, n);
    compare(
        out, "jacobi" + tag + "_ratio", rounds, n, [&] { jacobi(a, b, n); }, [&] { jacobi(pa.data(), pb.data(), n); });
    compare(
        out, "dot" + tag + "_ratio", rounds, n, [&] { check_sum(dot(a, b, n), n); },
        [&] { check_sum(dot(pa.data(), pb.data(), n), n); });
    a.invalidate(ooc::discard);
    b.invalidate(ooc::discard);
  }
  tiled_matrix t{rt, store, "t", ooc::create, {n, n}, fresh};
  const plain_array p(n * n);
  fill(t, n);
  compare(
      out, "tile" + tag + "_ratio", rounds, n, [&] { check_sum(sum_tiles(t), n); },
      [&] { check_sum(sum(p.data(), n), n); });
  compare(
      out, "tiled_index" + tag + "_ratio", rounds, n, [&] { check_sum(sum_indexed(t, n), n); },
      [&] { check_sum(sum(p.data(), n), n); });
  t.invalidate(ooc::discard);
}

}  // namespace

json run_resident(const options& o) {
  const std::uint64_t memory = o.memory_or(512_MiB);
  if (memory < 400_MiB) throw std::runtime_error("resident: the arrays need --memory 400M or more");
  const auto folder = fresh_folder(o.dir, "store");
  return in_child(0, [&] {
    json out;
    ooc::runtime rt{ooc::runtime_options{.memory = memory}};
    const ooc::store store = ooc::store::open("local:" + folder.string());
    for (const std::size_t n : {4096, 512}) measure(out, store, rt, n, o.rounds_or(15));
    const ooc::runtime_stats s = rt.stats();
    out["evictions"] = s.evictions;  // 0: everything was resident
    return out;
  });
}

}  // namespace bench
