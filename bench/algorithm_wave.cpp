// The row of `oocbench algorithms` about a sweep in three dimensions:
//
//     wave_over_stepwise   the wave equation, 8th order in space, 16 steps of two fields that make up eight
//                          times the budget: step by step, each step written over the former field, time /
//                          ooc::sweep()
//
// Step by step 2 threads share each plane, and each step reads both fields and writes one, which is the
// least.  Both compute rows by one function, and must agree about the result.
#include <array>
#include <barrier>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "algorithm_passes.hpp"
#include "measure/child.hpp"
#include "measure/memory_cap.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/algorithm/sweep.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using field = ooc::ooc_array<double, 3>;

constexpr std::uint64_t slack = 64_MiB;
constexpr std::size_t steps = 16;
constexpr std::ptrdiff_t radius = 4;
constexpr std::array<double, 5> w = {-205.0 / 72, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560};
constexpr double q = 0.1;

struct setting {
  std::filesystem::path store;
  std::uint64_t budget = 0;
  std::size_t n = 0;
};

/// Rows d planes and d rows away, |d| <= 4; [radius] is the row itself.
using rows_around = std::array<const double*, 2 * radius + 1>;

/// to may be before.  One function for both, so that sums are reordered in one way.
[[gnu::noinline]] void next_row(double* to, const double* before, const rows_around& x, const rows_around& y,
                                std::ptrdiff_t n) {
  const double* const here = x[radius];
#pragma GCC ivdep
  for (std::ptrdiff_t k = radius; k < n - radius; ++k) {
    double sum = 3 * w[0] * here[k];
    for (std::ptrdiff_t d = 1; d <= radius; ++d)
      sum += w[static_cast<std::size_t>(d)] *
             (x[static_cast<std::size_t>(radius - d)][k] + x[static_cast<std::size_t>(radius + d)][k] +
              y[static_cast<std::size_t>(radius - d)][k] + y[static_cast<std::size_t>(radius + d)][k] + here[k - d] +
              here[k + d]);
    to[k] = 2 * here[k] - before[k] + q * sum;
  }
}

double start_value(std::size_t i, std::size_t j, std::size_t k) {
  return static_cast<double>((i * 7 + j * 3 + k * 5) % 64) / 64;
}

template <class F>
json run_with(const setting& s, F compute) {
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.budget}};
    const ooc::store store = ooc::store::open("local:" + s.store.string());
    for (const char* name : {"u", "former"}) {
      field f{rt, store, name, ooc::create, {s.n, s.n, s.n}, {.replace = true}};
      f.overwrite(f.whole());
      for (std::size_t i = 0; i < s.n; ++i)
        for (std::size_t j = 0; j < s.n; ++j)
          for (std::size_t k = 0; k < s.n; ++k) f[i][j][k] = start_value(i, j, k);
      f.close();
    }
    return json::object();
  });
  drop_cache(s.store);
  return in_child(s.budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.budget}};
    const ooc::store store = ooc::store::open("local:" + s.store.string());
    field u{rt, store, "u", ooc::open}, former{rt, store, "former", ooc::open};
    json out;
    put_times(out, [&] { compute(u, former, out); });
    const ooc::runtime_stats moved = rt.stats();
    out["moved_mib"] = (moved.bytes_read + moved.bytes_written) >> 20;
    double f = 0;
    for (std::size_t i = 0; i < s.n; i += 5) f += std::as_const(u)[i][i * 7 % s.n][i * 11 % s.n];
    out["fingerprint"] = f;
    return out;
  });
}

json fused(const setting& s) {
  return run_with(s, [&](field& u, field& former, json& out) {
    const auto leapfrog = ooc::stencil({radius, radius, radius}, [](auto& to, const auto& from) {
                            const auto& [now, before] = from;
                            const auto next = to.template get<0>();
                            const auto n = static_cast<std::ptrdiff_t>(to.extent(2));
                            for (std::ptrdiff_t j = to.lower(1); j < to.upper(1); ++j) {
                              rows_around x{}, y{};
                              for (std::ptrdiff_t d = -radius; d <= radius; ++d) {
                                x[static_cast<std::size_t>(radius + d)] = now[d][j].data();
                                y[static_cast<std::size_t>(radius + d)] = now[0][j + d].data();
                              }
                              next_row(next[j].data(), before[0][j].data(), x, y, n);
                            }
                          }).keeps_former();
    const auto done = ooc::sweep(std::tie(u, former), steps, leapfrog);  // durable when it returns
    out["fuse"] = done.fuse;
    out["parts"] = done.parts;
  });
}

json stepwise(const setting& s) {
  return run_with(s, [&](field& u, field& former, json&) {
    constexpr std::size_t workers = 2;
    const auto n = static_cast<std::ptrdiff_t>(s.n);
    const auto index = [](std::ptrdiff_t i) { return static_cast<std::size_t>(i); };
    std::barrier meeting(workers);
    const auto half = [&](std::size_t me) {
      for (std::size_t t = 0; t < steps; ++t) {
        const field& now = t % 2 ? former : u;
        field& next = t % 2 ? u : former;
        const std::ptrdiff_t first = radius + (n - 2 * radius) * static_cast<std::ptrdiff_t>(me) / 2;
        const std::ptrdiff_t last = radius + (n - 2 * radius) * static_cast<std::ptrdiff_t>(me + 1) / 2;
        for (std::ptrdiff_t i = radius; i < n - radius; ++i) {
          for (std::ptrdiff_t j = first; j < last; ++j) {
            rows_around x{}, y{};
            for (std::ptrdiff_t d = -radius; d <= radius; ++d) {
              x[index(radius + d)] = &now[index(i + d)][index(j)][0];
              y[index(radius + d)] = &now[index(i)][index(j + d)][0];
            }
            double* const to = &next[index(i)][index(j)][0];
            next_row(to, to, x, y, n);
          }
          meeting.arrive_and_wait();
        }
      }
    };
    std::thread second(half, 1);
    half(0);
    second.join();
    u.writeback(ooc::durable);
    former.writeback(ooc::durable);
  });
}

}  // namespace

void measure_wave(const options& o, json& out) {
  setting s;
  s.budget = o.memory_or(64_MiB);
  s.n = static_cast<std::size_t>(std::cbrt(static_cast<double>(4 * s.budget / sizeof(double)))) / 16 * 16;
  require_space(o.dir, 3 * 8 * s.budget + 256_MiB);
  s.store = fresh_folder(o.dir, "wave");
  paired_ratio over_stepwise("wave_over_stepwise");
  json one, step;
  for (unsigned k = 0; k < o.rounds_or(3); ++k) {
    step = stepwise(s);
    one = fused(s);
    if (step["fingerprint"] != one["fingerprint"])
      throw std::runtime_error("algorithms: the waves disagree about the result");
    over_stepwise.add(step["seconds"].get<double>(), one["seconds"].get<double>());
  }
  over_stepwise.put(out);
  out["wave_fuse"] = one["fuse"];
  out["wave_parts"] = one["parts"];
  out["wave_mib"] = one["moved_mib"];
  out["wave_stepwise_mib"] = step["moved_mib"];
  out["wave_processor_seconds"] = one["processor"];
  out["wave_stepwise_processor_seconds"] = step["processor"];
}

}  // namespace bench
