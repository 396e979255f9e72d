// The pager's choices without a machine: recorded and generated traces are replayed in one thread, beside textbook
// replacement with as much memory.
//
//     over_optimum       bytes read / those of Belady's optimum, which knows the future and brings in single units
//     over_best_of_two   the same / those of the better of LRU and S3-FIFO
//     read_mib, written_mib, faults, soft_faults, refused, ahead, ahead_wasted   ours (policy/replayed_pager.hpp)
//     waits_ms           time for which the program waits for a disk_model, ours, which reads ahead; lru_waits_ms,
//                        optimum_waits_ms: theirs, which do not
//     hinted             whether the program is told that it reads far more than it touches
//
// The unit is a grain, 4 KiB, or a block where these come whole.  There is no clock and no chance in it: the figures
// are the same at each run, and a change of them is one of the library's choices.
//
// `--vary`: how much the time that is lost changes, transfers, waits and faults, with half and with twice of each
// number that these choices go by (src/runtime/policy/policy_numbers.hpp).
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "measure/case.hpp"
#include "oocarray/units.hpp"
#include "policy/access_trace.hpp"
#include "policy/disk_model.hpp"
#include "policy/replayed_pager.hpp"
#include "policy/rivals.hpp"
#include "runtime/policy/policy_numbers.hpp"

namespace bench {
namespace {

double rounded(double x) { return static_cast<double>(static_cast<std::int64_t>(x * 1000 + 0.5)) / 1000; }

double over(double ours, double theirs) { return rounded(ours / std::max(1.0, theirs)); }

json row_of(const policy::access_trace& t) {
  const policy::outcome ours = policy::replay_with_pager(t);
  const policy::rival_outcome lru = policy::replay_lru(t), s3 = policy::replay_s3_fifo(t),
                              best = policy::replay_optimum(t);
  const auto units = static_cast<double>(ours.bytes_read) / static_cast<double>(t.unit);
  const auto mib = [](std::uint64_t bytes) { return bytes >> 20; };
  const auto ms = [](std::uint64_t ns) { return ns / 1'000'000; };
  return {{"over_optimum", over(units, static_cast<double>(best.misses))},
          {"over_best_of_two", over(units, static_cast<double>(std::min(lru.misses, s3.misses)))},
          {"read_mib", mib(ours.bytes_read)},
          {"optimum_read_mib", mib(best.misses * t.unit)},
          {"lru_read_mib", mib(lru.misses * t.unit)},
          {"s3_fifo_read_mib", mib(s3.misses * t.unit)},
          {"written_mib", mib(ours.bytes_written)},
          {"lru_written_mib", mib(lru.written * t.unit)},
          {"faults", ours.faults},
          {"soft_faults", ours.soft_faults},
          {"refused", ours.refused},
          {"ahead", ours.ahead},
          {"ahead_wasted", ours.ahead_wasted},
          {"waits_ms", ms(ours.waited_ns)},
          {"lru_waits_ms", ms(lru.waited_ns)},
          {"optimum_waits_ms", ms(best.waited_ns)},
          {"hinted", ours.hinted}};
}

std::vector<policy::access_trace> wanted_traces(const options& o) {
  using namespace ooc::literals;
  std::vector<policy::access_trace> all;
  for (const std::string& file : o.traces) {
    all.push_back(policy::recorded_trace(file));
    if (o.memory) all.back().budget = o.memory;
  }
  if (o.traces.empty()) all = policy::generated_traces(o.memory_or(64_MiB));
  const auto named = [](const std::string& name) {
    return [&name](const policy::access_trace& t) { return t.name == name; };
  };
  for (const std::string& name : o.only)
    if (std::none_of(all.begin(), all.end(), named(name)))
      throw std::runtime_error("policy: --only " + name + ": there is no such row; see the names of the rows");
  if (!o.only.empty())
    std::erase_if(all, [&](const policy::access_trace& t) {
      return std::find(o.only.begin(), o.only.end(), t.name) == o.only.end();
    });
  return all;
}

/// Of each number, with half and with twice of it: on which trace most more time is lost, and on which
/// least, in units of the time with the number as it is; and on all together.
json varied(const std::vector<policy::access_trace>& traces) {
  using ooc::detail::policy_numbers;
  const auto costs = [&] {
    std::vector<double> all;
    for (const policy::access_trace& t : traces) {
      const policy::outcome r = policy::replay_with_pager(t);
      const auto bytes = static_cast<double>(r.bytes_read + r.bytes_written);
      constexpr double fault_ns = 2000;
      all.push_back(1e6 + static_cast<double>(r.waited_ns) + bytes / policy::disk_model::bytes_per_us * 1000 +
                    fault_ns * static_cast<double>(r.refused));
    }
    return all;
  };
  const std::vector<double> before = costs();
  json out;
  for (const ooc::detail::policy_number& n : ooc::detail::all_policy_numbers) {
    unsigned& number = policy_numbers::now.*n.value;
    const unsigned as_it_is = number;
    json row = {{"number", as_it_is}};
    for (const auto& [name, value] : {std::pair("half", as_it_is / 2), std::pair("twice", 2 * as_it_is)}) {
      number = value;
      const std::vector<double> now = costs();
      double together = 0;
      std::size_t worst = 0, best = 0;
      const auto ratio = [&](std::size_t i) { return now[i] / before[i]; };
      for (std::size_t i = 0; i < now.size(); ++i) {
        together += std::log(ratio(i)) / static_cast<double>(now.size());
        if (ratio(i) > ratio(worst)) worst = i;
        if (ratio(i) < ratio(best)) best = i;
      }
      json& to = row[name] = {{"together", rounded(std::exp(together))}};
      if (ratio(worst) > 1) to["worst"] = rounded(ratio(worst)), to["worst_trace"] = traces[worst].name;
      if (ratio(best) < 1) to["best"] = rounded(ratio(best)), to["best_trace"] = traces[best].name;
    }
    number = as_it_is;
    out[n.name] = std::move(row);
  }
  return out;
}

}  // namespace

json run_policy(const options& o) {
  const std::vector<policy::access_trace> traces = wanted_traces(o);
  if (o.vary) return varied(traces);
  json out;
  for (const policy::access_trace& t : traces) out[t.name] = row_of(t);
  return out;
}

}  // namespace bench
