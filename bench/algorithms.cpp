// The library's algorithms beside what a program does without them, on arrays of eight times the budget.
//
//     sweep_over_mmap         16 steps of Jacobi, one disk: the plain loop over mapped files' time / ours
//     sweep_bytes_over_model  bytes that ooc::sweep() reads and writes / one read and one write of the
//                             array a pass
//     sweep_over_stepwise     our own loop step by step, with overwrite(): its time / that of the sweep
//     sweep_resident          arrays in memory: the plain loop's time / ours, 2 threads on both sides
//
// Everything counts until it is on the disk, on all sides (but in memory).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "algorithm_passes.hpp"
#include "algorithm_sorting.hpp"
#include "measure/child.hpp"
#include "measure/memory_cap.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/raw_io.hpp"
#include "measure/rival_memory.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "plain_jacobi.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using matrix = ooc::ooc_array<double, 2>;

constexpr unsigned steps = 16;  ///< even: the result is in `a`

/// A run of ours: compute(a, b, result).
template <class F>
json ours(const jacobi_setting& s, F compute) {
  make_jacobi_arrays(s);
  drop_cache(s.store);
  return in_child(s.cap(), [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.budget}};
    const ooc::store store = ooc::store::open("local:" + s.store.string());
    matrix a{rt, store, "a", ooc::open};
    matrix b{rt, store, "b", ooc::open};
    json out;
    out["seconds"] = seconds_of([&] { compute(a, b, out); });
    const ooc::runtime_stats moved = rt.stats();
    out["bytes"] = moved.bytes_read + moved.bytes_written;
    out["fingerprint"] = fingerprint(s.n, [&](std::size_t i, std::size_t j) { return std::as_const(a)[i][j]; });
    return out;
  });
}

json fused(const jacobi_setting& s) {
  return ours(s, [](matrix& a, matrix&, json& out) {
    const auto done = ooc::sweep(a, steps, jacobi_stencil());  // durable when it returns
    out["model"] = done.bytes_read + done.bytes_written;
    out["fuse"] = done.fuse;
  });
}

json stepwise(const jacobi_setting& s) {
  return ours(s, [](matrix& a, matrix& b, json&) {
    const std::size_t n = a.extent(0);
    const auto step = [n](const matrix& from, matrix& to) {
      to.overwrite({{1, 1}, {n - 1, n - 1}});
      for (std::size_t i = 1; i + 1 < n; ++i)
        for (std::size_t j = 1; j + 1 < n; ++j)
          to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
    };
    for (unsigned k = 0; k < steps; ++k) k % 2 ? step(b, a) : step(a, b);
    a.writeback(ooc::durable);
  });
}

void on_disk(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR);
  if (fd < 0 || ::fdatasync(fd) != 0) throw std::system_error(errno, std::generic_category(), file.string());
  ::close(fd);
}

/// Seconds of as many steps by 2 threads over arrays in memory, and what they came to.
json in_core(std::size_t n) {
  return in_child(0, [n] {
    plain_array one(n * n), other(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) one.data()[i * n + j] = other.data()[i * n + j] = start_value(i, j);
    std::barrier meeting(2);
    const auto half = [&](std::size_t first, std::size_t last) {
      for (unsigned k = 0; k < steps; ++k) {
        const double* const from = k % 2 ? other.data() : one.data();
        double* const to = k % 2 ? one.data() : other.data();
        for (std::size_t i = first; i < last; ++i)
          for (std::size_t j = 1; j + 1 < n; ++j)
            to[i * n + j] =
                0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] + from[i * n + j - 1] + from[i * n + j + 1]);
        meeting.arrive_and_wait();
      }
    };
    json out;
    out["seconds"] = seconds_of([&] {
      std::thread second(half, n / 2, n - 1);
      half(1, n / 2);
      second.join();
    });
    out["fingerprint"] = fingerprint(n, [&](std::size_t i, std::size_t j) { return one.data()[i * n + j]; });
    return out;
  });
}

json resident(const jacobi_setting& s, std::size_t n) {
  return in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = 2 * n * n * sizeof(double) + 64_MiB}};
    const ooc::store store = ooc::store::open("local:" + s.store.string());
    matrix a{rt, store, "resident", ooc::create, {n, n}, {.replace = true}};
    a.overwrite(a.whole());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) a[i][j] = start_value(i, j);
    json out;
    out["seconds"] = seconds_of([&] { ooc::sweep(a, steps, jacobi_stencil(), {.threads = 2, .mark = false}); });
    out["fingerprint"] = fingerprint(n, [&](std::size_t i, std::size_t j) { return std::as_const(a)[i][j]; });
    a.invalidate(ooc::discard);
    return out;
  });
}

void measure_sweep(const options& o, json& out) {
  jacobi_setting s;
  s.budget = o.memory_or(64_MiB);
  s.n = static_cast<std::size_t>(std::sqrt(static_cast<double>(8 * s.budget / sizeof(double)))) / 512 * 512;
  if (s.n < 512) throw std::runtime_error("algorithms: --memory is too small");
  require_space(o.dir, 4 * s.bytes() + 256_MiB);
  s.store = fresh_folder(o.dir, "store");
  s.plain_a = o.dir / "plain.a";
  s.plain_b = o.dir / "plain.b";

  paired_ratio over_mmap("sweep_over_mmap"), over_stepwise("sweep_over_stepwise"), bytes("sweep_bytes_over_model"),
      in_memory("sweep_resident");
  json one;
  for (unsigned k = 0; k < o.rounds_or(3); ++k) {
    std::map<double, int> results;  // how many runs came to which
    double plain = std::numeric_limits<double>::infinity();
    for (const int advice : advices) {
      make_jacobi_files(s);
      const json r = mapped_jacobi(s, steps, advice, [&] { on_disk(s.plain_a); });
      ++results[r["fingerprint"].get<double>()];
      plain = std::min(plain, r["seconds"].get<double>());
    }
    const json step = stepwise(s);
    ++results[step["fingerprint"].get<double>()];
    one = fused(s);
    ++results[one["fingerprint"].get<double>()];
    if (results.size() != 1) throw std::runtime_error("algorithms: the sweeps disagree about the result");
    over_mmap.add(plain, one["seconds"].get<double>());
    over_stepwise.add(step["seconds"].get<double>(), one["seconds"].get<double>());
    bytes.add(one["bytes"].get<double>(), one["model"].get<double>());
    const json plain_run = in_core(s.n / 2), our_run = resident(s, s.n / 2);
    if (plain_run["fingerprint"] != our_run["fingerprint"])
      throw std::runtime_error("algorithms: the sweeps in memory disagree about the result");
    in_memory.add(plain_run["seconds"].get<double>(), our_run["seconds"].get<double>());
  }
  for (const paired_ratio* r : {&over_mmap, &over_stepwise, &bytes, &in_memory}) r->put(out);
  out["sweep_steps"] = steps;
  out["sweep_fuse"] = one["fuse"];
  out["array_mib"] = s.bytes() >> 20;
  out["budget_mib"] = s.budget >> 20;
  out["peak_rss_mib"] = one["peak_rss"].get<std::uint64_t>() >> 20;
}

struct part_of_case {
  const char* name;
  void (*measure)(const options& o, json& out);
};

constexpr part_of_case parts[] = {
    {"sweep", measure_sweep}, {"wave", measure_wave},         {"passes", measure_passes},
    {"sort", measure_sort},   {"multiply", measure_multiply}, {"factorise", measure_factorise},
    {"fft", measure_fft}};

}  // namespace

json run_algorithms(const options& o) {
  for (const std::string& name : o.only)
    if (std::none_of(std::begin(parts), std::end(parts), [&](const part_of_case& p) { return name == p.name; }))
      throw std::runtime_error("algorithms: --only " + name +
                               ": expected sweep, wave, passes, sort, multiply, factorise or fft");
  json out;
  out["capped"] = can_cap_memory();
  for (const part_of_case& p : parts)
    if (o.only.empty() || std::find(o.only.begin(), o.only.end(), p.name) != o.only.end()) p.measure(o, out);
  return out;
}

}  // namespace bench
