// Factorisations beside LAPACK in memory, of a matrix of 4.3 times the budget (12,000 rows in 256 MiB).
//
//     cholesky_over_in_core, lu_over_in_core, qr_over_in_core   LAPACK's time in memory / ours, from disk until it is
//     on
//                                                               the disk
//     cholesky_bytes_over_bound, ...                            bytes read and written / the least that any method
//     moves
//
// LAPACK is OpenBLAS's, with as many threads as processors, loaded when it is needed (Debian: libopenblas0).  The
// bounds are those of docs/algorithms.md.
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "algorithm_sorting.hpp"
#include "measure/child.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/algorithm/factorise.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using matrix = ooc::ooc_array<double, 2>;

constexpr std::uint64_t slack = 64_MiB;

/// Between -1 and 1; of a symmetric, positive definite matrix if `symmetric`.
double element(std::size_t i, std::size_t j, std::size_t n, bool symmetric) {
  const std::size_t low = symmetric ? std::min(i, j) : i, high = symmetric ? std::max(i, j) : j;
  std::uint64_t h = (low * 0x9e3779b97f4a7c15ULL) ^ (high * 0xc2b2ae3d27d4eb4fULL + 0x165667b19e3779f9ULL);
  h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ULL;
  h ^= h >> 32;
  const double x = static_cast<double>(h >> 11) * 0x1p-52 - 1;
  return symmetric && i == j ? x + static_cast<double>(n) : x;
}

struct method {
  const char* name;
  bool symmetric;
  ooc::factor_statistics (*run)(matrix& a);
  void (*in_core)(void* lapack, int n, double* a);
  double (*bound)(double n, double memory);  ///< elements
};

template <class F>
F function(void* lapack, const char* name) {
  void* const f = ::dlsym(lapack, name);
  if (f == nullptr) throw std::runtime_error(std::string("algorithms: libopenblas.so.0 has no ") + name);
  return reinterpret_cast<F>(f);
}

void require_success(int info) {
  if (info != 0) throw std::runtime_error("algorithms: LAPACK has returned " + std::to_string(info));
}

double bound_of_lu(double n, double memory) { return 2 * n * n * n / (3 * std::sqrt(memory)) + 2 * n * n; }

const method methods[] = {
    {"cholesky", true, [](matrix& a) { return ooc::cholesky(a); },
     [](void* lapack, int n, double* a) {
       int info = 0;
       function<void (*)(const char*, int*, double*, int*, int*)>(lapack, "dpotrf_")("L", &n, a, &n, &info);
       require_success(info);
     },
     [](double n, double memory) { return n * n * n / (3 * std::sqrt(2.0) * std::sqrt(memory)) + n * n; }},
    {"lu", false,
     [](matrix& a) {
       std::vector<std::size_t> pivots(a.extent(0));
       return ooc::lu(a, pivots);
     },
     [](void* lapack, int n, double* a) {
       int info = 0;
       std::vector<int> pivots(static_cast<std::size_t>(n));
       function<void (*)(int*, int*, double*, int*, int*, int*)>(lapack, "dgetrf_")(&n, &n, a, &n, pivots.data(),
                                                                                    &info);
       require_success(info);
     },
     bound_of_lu},
    {"qr", false,
     [](matrix& a) {
       std::vector<double> tau(a.extent(0));
       return ooc::qr(a, tau);
     },
     [](void* lapack, int n, double* a) {
       int info = 0, room = 64 * n;
       std::vector<double> tau(static_cast<std::size_t>(n)), work(static_cast<std::size_t>(room));
       function<void (*)(int*, int*, double*, int*, double*, double*, int*, int*)>(lapack, "dgeqrf_")(
           &n, &n, a, &n, tau.data(), work.data(), &room, &info);
       require_success(info);
     },
     bound_of_lu},  // none is known for QR with its constant
};

/// Of the factor's diagonal, whose signs depend on the method.
template <class At>
double fingerprint(std::size_t n, At at) {
  double f = 0;
  for (std::size_t k = 0; k < 64; ++k) f += std::log(std::abs(at(k * n / 64)));
  return f;
}

json ours(const options& o, const method& m, std::uint64_t budget, std::size_t n) {
  const std::filesystem::path folder = fresh_folder(o.dir, "factorise");
  const std::string url = "local:" + folder.string();
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    matrix a{rt, ooc::store::open(url), "a", ooc::create, {n, n}};
    a.overwrite(a.whole());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) a[i][j] = element(i, j, n, m.symmetric);
    a.close();
    return json::object();
  });
  drop_cache(folder);
  json out = in_child(budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    matrix a{rt, ooc::store::open(url), "a", ooc::open};
    json r;
    ooc::factor_statistics done;
    put_times(r, [&] { done = m.run(a); });  // durable when it returns
    r["bytes"] = done.bytes_read + done.bytes_written;
    r["panels"] = done.panels;
    r["fingerprint"] = fingerprint(n, [&](std::size_t k) { return std::as_const(a)[k][k]; });
    return r;
  });
  std::filesystem::remove_all(folder);
  return out;
}

json in_core(const method& m, std::size_t n) {
  return in_child(0, [&] {
    void* const lapack = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (lapack == nullptr)
      throw std::runtime_error("algorithms: libopenblas.so.0 cannot be loaded; install Debian's libopenblas0");
    std::vector<double> a(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) a[i * n + j] = element(i, j, n, m.symmetric);
    json out;
    put_times(out, [&] { m.in_core(lapack, static_cast<int>(n), a.data()); });
    out["fingerprint"] = fingerprint(n, [&](std::size_t k) { return a[k * n + k]; });
    return out;
  });
}

}  // namespace

void measure_factorise(const options& o, json& out) {
  const std::uint64_t budget = o.memory_or(256_MiB);
  const auto n = static_cast<std::size_t>(std::sqrt(4.3 * static_cast<double>(budget) / sizeof(double))) / 8 * 8;
  if (n == 0) throw std::runtime_error("algorithms: --memory is too small for a factorisation");
  require_space(o.dir, n * n * sizeof(double) + 256_MiB);
  out["factorise_rows"] = n;
  out["factorise_budget_mib"] = budget >> 20;
  for (const method& m : methods) {
    const std::string name = m.name;
    paired_ratio rate(name + "_over_in_core");
    json one, plain;
    for (unsigned k = 0; k < o.rounds_or(1); ++k) {
      plain = in_core(m, n);
      one = ours(o, m, budget, n);
      const double expected = plain["fingerprint"].get<double>();
      if (!(std::abs(one["fingerprint"].get<double>() - expected) <= 1e-6 * std::abs(expected) + 1e-6))
        throw std::runtime_error("algorithms: the factors of " + name + " disagree");
      rate.add(plain["seconds"].get<double>(), one["seconds"].get<double>());
    }
    rate.put(out);
    const auto size = static_cast<double>(n);
    const double least = m.bound(size, static_cast<double>(budget) / sizeof(double)) * sizeof(double);
    out[name + "_bytes_over_bound"] = one["bytes"].get<double>() / least;
    out[name + "_mib"] = one["bytes"].get<std::uint64_t>() >> 20;
    out[name + "_panels"] = one["panels"];
    out[name + "_seconds"] = one["seconds"];
    out[name + "_in_core_seconds"] = plain["seconds"];
    out[name + "_processor_seconds"] = one["processor"];
    out[name + "_in_core_processor_seconds"] = plain["processor"];
    out[name + "_peak_rss_mib"] = one["peak_rss"].get<std::uint64_t>() >> 20;
  }
}

}  // namespace bench
