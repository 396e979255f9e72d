// ooc::multiply() beside Eigen in memory, on three square matrices that together have four times the budget.
//
//     multiply_over_in_core  Eigen's time in memory, with as many threads / ours, until it is on the disk
#include <Eigen/Core>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <vector>

#include "algorithm_sorting.hpp"
#include "measure/child.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/algorithm/multiply.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using matrix = ooc::ooc_array<double, 2>;
using dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::uint64_t slack = 64_MiB;

// Whole numbers: sums are exact.
double left(std::size_t i, std::size_t j) { return static_cast<double>((i * 7 + j * 3) % 16); }
double right(std::size_t i, std::size_t j) { return static_cast<double>((i * 5 + j * 11) % 32); }

template <class At>
double fingerprint(std::size_t n, At at) {
  double f = 0;
  for (std::size_t k = 0; k < 64; ++k) f += at(k * n / 64, (k * k * 131) % n);
  return f;
}

json ours(const options& o, std::uint64_t budget, std::size_t n) {
  const std::filesystem::path folder = fresh_folder(o.dir, "multiply");
  const std::string url = "local:" + folder.string();
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    for (const auto& [name, value] : {std::pair{"a", &left}, std::pair{"b", &right}}) {
      matrix m{rt, ooc::store::open(url), name, ooc::create, {n, n}};
      m.overwrite(m.whole());
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) m[i][j] = value(i, j);
      m.close();
    }
    return json::object();
  });
  drop_cache(folder);
  json out = in_child(budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    const auto store = ooc::store::open(url);
    const matrix a{rt, store, "a", ooc::open_read_only}, b{rt, store, "b", ooc::open_read_only};
    matrix c{rt, store, "c", ooc::create, {n, n}};
    json r;
    ooc::multiply_statistics done;
    put_times(r, [&] { done = ooc::multiply(a, b, c); });  // durable when it returns
    r["bytes_read"] = done.bytes_read;
    r["fingerprint"] = fingerprint(n, [&](std::size_t i, std::size_t j) { return std::as_const(c)[i][j]; });
    return r;
  });
  std::filesystem::remove_all(folder);
  return out;
}

json in_core(std::size_t n) {
  return in_child(0, [n] {
    const auto size = static_cast<Eigen::Index>(n);
    dense a(size, size), b(size, size), c(size, size);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const auto r = static_cast<Eigen::Index>(i), s = static_cast<Eigen::Index>(j);
        a(r, s) = left(i, j);
        b(r, s) = right(i, j);
        c(r, s) = 0;
      }
    const auto threads = static_cast<Eigen::Index>(std::max(1U, std::thread::hardware_concurrency()));
    json out;
    put_times(out, [&] {
      std::vector<std::thread> all;
      for (Eigen::Index t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
          const Eigen::Index first = size * t / threads, rows = size * (t + 1) / threads - first;
          c.middleRows(first, rows).noalias() = a.middleRows(first, rows) * b;
        });
      for (std::thread& t : all) t.join();
    });
    out["fingerprint"] = fingerprint(
        n, [&](std::size_t i, std::size_t j) { return c(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)); });
    return out;
  });
}

}  // namespace

void measure_multiply(const options& o, json& out) {
  const std::uint64_t budget = o.memory_or(384_MiB);
  const auto n = static_cast<std::size_t>(std::sqrt(static_cast<double>(4 * budget / (3 * sizeof(double))))) / 64 * 64;
  if (n == 0) throw std::runtime_error("algorithms: --memory is too small for a product");
  require_space(o.dir, 3 * n * n * sizeof(double) + 256_MiB);
  paired_ratio rate("multiply_over_in_core");
  json one;
  double plain = 0, plain_processor = 0;
  for (unsigned k = 0; k < o.rounds_or(1); ++k) {
    const json r = in_core(n);
    plain = r["seconds"].get<double>();
    plain_processor = r["processor"].get<double>();
    one = ours(o, budget, n);
    if (one["fingerprint"] != r["fingerprint"])
      throw std::runtime_error("algorithms: the products disagree about the result");
    rate.add(plain, one["seconds"].get<double>());
  }
  rate.put(out);
  out["multiply_rows"] = n;
  out["multiply_budget_mib"] = budget >> 20;
  out["multiply_read_mib"] = one["bytes_read"].get<std::uint64_t>() >> 20;
  out["multiply_seconds"] = one["seconds"];
  out["multiply_in_core_seconds"] = plain;
  out["multiply_processor_seconds"] = one["processor"];
  out["multiply_in_core_processor_seconds"] = plain_processor;
  out["multiply_peak_rss_mib"] = one["peak_rss"].get<std::uint64_t>() >> 20;
}

}  // namespace bench
