// Jacobi sweeps on two arrays that together have eight times the budget, against the same loop over
// mapped files under the same memory cap.
//
//     over_mmap             mapped files' time / ours, the plain loop
//     over_mmap_overwrite   the same with one overwrite(box) before each sweep: the target is not read
//     over_limit            our throughput with overwrite() / that of copying one file to another
//                           with direct transfers, which moves the same bytes
//
// Ours ends with writeback(), so every byte has reached its I/O node; the mapped file's last dirty
// pages are left to the kernel, which is to its favour.
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "measure/child.hpp"
#include "measure/memory_cap.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/raw_io.hpp"
#include "measure/rival_memory.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/ooc_array.hpp"
#include "plain_jacobi.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using matrix = ooc::ooc_array<double, 2>;

constexpr unsigned sweeps = 2;  ///< of a run; an even number leaves the result in `a`

json ours(const jacobi_setting& s, bool overwrite) {
  drop_cache(s.store);
  return in_child(s.cap(), [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.budget}};
    const ooc::store store = ooc::store::open("local:" + s.store.string());
    matrix a{rt, store, "a", ooc::open};
    matrix b{rt, store, "b", ooc::open};
    const std::size_t n = s.n;
    const auto sweep = [&](const matrix& from, matrix& to) {
      if (overwrite) to.overwrite({{1, 1}, {n - 1, n - 1}});
      for (std::size_t i = 1; i + 1 < n; ++i)
        for (std::size_t j = 1; j + 1 < n; ++j)
          to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
    };
    json out;
    out["seconds"] = seconds_of([&] {
      for (unsigned k = 0; k < sweeps; ++k) k % 2 ? sweep(b, a) : sweep(a, b);
      a.writeback();
      b.writeback();
    });
    out["mib_read"] = rt.stats().bytes_read >> 20;
    out["mib_written"] = rt.stats().bytes_written >> 20;
    out["fingerprint"] = fingerprint(n, [&](std::size_t i, std::size_t j) { return std::as_const(a)[i][j]; });
    return out;
  });
}

}  // namespace

json run_jacobi(const options& o) {
  jacobi_setting s;
  s.budget = o.memory_or(192_MiB);
  // Four budgets an array, whole requests of the raw transfers.
  s.n = static_cast<std::size_t>(std::sqrt(static_cast<double>(4 * s.budget / sizeof(double)))) / 512 * 512;
  if (s.n < 512) throw std::runtime_error("jacobi: --memory is too small");
  require_space(o.dir, 4 * s.bytes() + 256_MiB);
  s.store = fresh_folder(o.dir, "store");
  s.plain_a = o.dir / "plain.a";
  s.plain_b = o.dir / "plain.b";

  paired_ratio plain("over_mmap"), promised("over_mmap_overwrite"), limit("over_limit");
  std::uint64_t peak = 0;
  json one;
  for (unsigned k = 0; k < o.rounds_or(4); ++k) {
    std::map<double, int> results;  // how many runs came to which
    double best = std::numeric_limits<double>::infinity();
    // Each run begins with the start values, so all must come to the same result.
    const auto run = [&](const auto& make, const auto& f) {
      make(s);
      const json r = f();
      ++results[r["fingerprint"].get<double>()];
      return r;
    };
    for (const int advice : advices)
      best = std::min(
          best, run(make_jacobi_files, [&] { return mapped_jacobi(s, sweeps, advice); })["seconds"].get<double>());
    const json without = run(make_jacobi_arrays, [&] { return ours(s, false); });
    const json with = run(make_jacobi_arrays, [&] { return ours(s, true); });
    if (results.size() != 1) throw std::runtime_error("jacobi: the runs disagree about the result");
    plain.add(best, without["seconds"].get<double>());
    promised.add(best, with["seconds"].get<double>());
    limit.add(sweeps * raw::direct_copy(s.plain_a, s.plain_b), with["seconds"].get<double>());
    for (const json* r : {&without, &with}) peak = std::max(peak, (*r)["peak_rss"].get<std::uint64_t>());
    one = {{"mib_read", without["mib_read"]},
           {"mib_written", without["mib_written"]},
           {"mib_read_overwrite", with["mib_read"]},
           {"mib_written_overwrite", with["mib_written"]}};
  }
  json out;
  for (const paired_ratio* r : {&plain, &promised, &limit}) r->put(out);
  out.update(one);
  out["n"] = s.n;
  out["array_mib"] = s.bytes() >> 20;
  out["peak_rss_mib"] = peak >> 20;
  out["budget_mib"] = s.budget >> 20;
  out["capped"] = can_cap_memory();
  return out;
}

}  // namespace bench
