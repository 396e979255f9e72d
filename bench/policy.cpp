// The pager's choices without a machine: recorded and generated traces are replayed in one thread, beside textbook
// replacement with as much memory.
//
//     over_optimum       bytes read / those of Belady's optimum, which knows the future and brings in single units
//     over_best_of_two   the same / those of the better of LRU and S3-FIFO
//     read_mib, written_mib, faults, soft_faults, ahead, ahead_wasted   ours
//     waits_ms           time for which the program waits for a disk_model, ours, which reads ahead; lru_waits_ms,
//                        optimum_waits_ms: theirs, which do not
//     hinted             whether the program is told that it reads far more than it touches
//
// The unit is a grain, 4 KiB, or a block where these come whole.  There is no clock and no chance in it: the figures
// are the same at each run, and a change of them is one of the library's choices.
#include <algorithm>
#include <stdexcept>

#include "measure/case.hpp"
#include "oocarray/units.hpp"
#include "policy/access_trace.hpp"
#include "policy/replayed_pager.hpp"
#include "policy/rivals.hpp"

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
          {"ahead", ours.ahead},
          {"ahead_wasted", ours.ahead_wasted},
          {"waits_ms", ms(ours.waited_ns)},
          {"lru_waits_ms", ms(lru.waited_ns)},
          {"optimum_waits_ms", ms(best.waited_ns)},
          {"hinted", ours.hinted}};
}

}  // namespace

json run_policy(const options& o) {
  using namespace ooc::literals;
  json out;
  const auto add = [&](const policy::access_trace& t) {
    if (o.only.empty() || std::find(o.only.begin(), o.only.end(), t.name) != o.only.end()) out[t.name] = row_of(t);
  };
  for (const std::string& file : o.traces) {
    policy::access_trace t = policy::recorded_trace(file);
    if (o.memory) t.budget = o.memory;
    add(t);
  }
  if (o.traces.empty())
    for (const policy::access_trace& t : policy::generated_traces(o.memory_or(64_MiB))) add(t);
  for (const std::string& name : o.only)
    if (!out.contains(name))
      throw std::runtime_error("policy: --only " + name + ": there is no such row; see the names of the rows");
  return out;
}

}  // namespace bench
