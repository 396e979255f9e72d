// ooc::sort() beside what bounds it and beside stxxl::sort(), on random keys of eight times the budget.
//
//     sort_over_bound  time / the longer of: the same bytes read and written by direct transfers that do nothing else;
//                      sorting as much in memory, run by run
//     sort_over_stxxl  stxxl::sort()'s time, with as much memory / ours; where libstxxl-dev was found
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "algorithm_sorting.hpp"
#include "measure/child.hpp"
#include "measure/memory_cap.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/raw_io.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "measure/stxxl_sort.hpp"
#include "oocarray/algorithm/sort.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using key = std::uint64_t;
using keys = ooc::ooc_array<key, 1>;

constexpr std::uint64_t slack = 64_MiB;

/// Returns what was done, and the sum and some places of the result.
json ours(const options& o, std::uint64_t budget, std::size_t n) {
  const std::filesystem::path folder = fresh_folder(o.dir, "sort");
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    keys a{rt, ooc::store::open("local:" + folder.string()), "keys", ooc::create, {n}};
    a.overwrite(a.whole());
    random_keys next;
    for (key& k : a) k = next();
    a.close();
    return json::object();
  });
  drop_cache(folder);
  json out = in_child(budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    keys a{rt, ooc::store::open("local:" + folder.string()), "keys", ooc::open};
    json r;
    ooc::sort_statistics done;
    put_times(r, [&] { done = ooc::sort(a); });  // durable when it returns
    r["runs"] = done.runs;
    r["passes"] = done.passes;
    r["bytes"] = done.bytes_read + done.bytes_written;
    if (!ooc::is_sorted(a)) throw std::runtime_error("algorithms: the keys are not sorted");
    key sum = 0;
    for (const key& k : std::as_const(a)) sum += k;
    r["sum"] = sum;
    return r;
  });
  std::filesystem::remove_all(folder);
  return out;
}

/// As much memory as a run, sorted by each thread at the same time, as often as there are runs.
double in_core(std::size_t n, std::uint64_t runs) {
  const json r = in_child(0, [&] {
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t run = n / runs;
    struct part {
      std::vector<key> keys, scratch;
    };
    std::vector<part> parts(threads);
    random_keys next;
    for (part& p : parts) {
      p.scratch.assign(run, 0);
      for (std::size_t i = 0; i < run; ++i) p.keys.push_back(next());
    }
    const auto order = ooc::detail::order_of<key>(std::less<>{}, ooc::detail::as_it_is{});
    const ooc::detail::ordered_program<key, std::remove_const_t<decltype(order)>> program(order, false);
    const auto bytes = [](std::vector<key>& v) { return reinterpret_cast<std::byte*>(v.data()); };
    json out;
    out["seconds"] = seconds_of([&] {
      std::vector<std::thread> all;
      for (part& p : parts) all.emplace_back([&] { program.sort_run(bytes(p.keys), run, bytes(p.scratch)); });
      for (std::thread& t : all) t.join();
    });
    out["threads"] = threads;
    return out;
  });
  return r["seconds"].get<double>() * static_cast<double>(runs) / r["threads"].get<double>();
}

/// One file is read while another is written, as often as there are passes.
double transfers(const options& o, std::uint64_t bytes, std::uint64_t passes) {
  const auto from = o.dir / "sort.from", to = o.dir / "sort.to";
  in_child(0, [&] {
    raw::make_file(from, bytes);
    raw::make_file(to, bytes);
    return json::object();
  });
  double seconds = 0;
  for (std::uint64_t k = 0; k < passes; ++k)
    seconds += in_child(0,
                        [&] {
                          json r;
                          r["seconds"] = raw::direct_copy(from, to);
                          return r;
                        })["seconds"]
                   .get<double>();
  std::filesystem::remove(from);
  std::filesystem::remove(to);
  return seconds;
}

}  // namespace

void measure_sort(const options& o, json& out) {
  const std::uint64_t budget = o.memory_or(512_MiB), bytes = 8 * budget;
  const std::size_t n = bytes / sizeof(key);
  require_space(o.dir, 2 * bytes + 256_MiB);
  key sum = 0;
  random_keys next;
  for (std::size_t i = 0; i < n; ++i) sum += next();
  paired_ratio bound("sort_over_bound"), rival("sort_over_stxxl");
  json one;
  double io = 0, sorting = 0;
  for (unsigned k = 0; k < o.rounds_or(1); ++k) {
    one = ours(o, budget, n);
    if (one["sum"].get<key>() != sum) throw std::runtime_error("algorithms: sorting has lost keys");
    io = transfers(o, bytes, one["passes"].get<std::uint64_t>());
    sorting = in_core(n, one["runs"].get<std::uint64_t>());
    const auto seconds = one["seconds"].get<double>();
    bound.add(seconds, std::max(io, sorting));
    if (!stxxl_is_here()) continue;
    // Without a cap: its parallel sort takes as much memory again.
    const json r = in_child(0, [&] {
      json s;
      s["seconds"] = seconds_of_stxxl_sort((o.dir / "stxxl.disk").string(), n, budget);
      return s;
    });
    std::filesystem::remove(o.dir / "stxxl.disk");
    rival.add(r["seconds"].get<double>(), seconds);
  }
  bound.put(out);
  if (stxxl_is_here()) rival.put(out);
  out["sort_mib"] = bytes >> 20;
  out["sort_budget_mib"] = budget >> 20;
  out["sort_runs"] = one["runs"];
  out["sort_passes"] = one["passes"];
  out["sort_seconds"] = one["seconds"];
  out["sort_processor_seconds"] = one["processor"];
  out["sort_io_bound_seconds"] = io;
  out["sort_in_core_seconds"] = sorting;
  out["sort_peak_rss_mib"] = one["peak_rss"].get<std::uint64_t>() >> 20;
}

}  // namespace bench
