#include "patterns/nearly_fitting.hpp"

#include <cmath>
#include <string>

#include "measure/child.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/ooc_array.hpp"
#include "patterns/loops.hpp"

namespace bench::patterns {
namespace {

using matrix = ooc::ooc_array<double, 2>;

struct updates {
  const char* name;
  double (*loop)(const matrices&, const time_limit&);
};

constexpr updates all_updates[] = {
    {"random_update", random_update}, {"zipf_update", zipf_update}, {"column_update", column_update}};
/// The memory / the array, in per cent.
constexpr int all_ratios[] = {50, 80, 95, 105};

json run(const std::string& url, std::uint64_t budget, int per_cent, const updates& u, double seconds) {
  return in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    const ooc::store store = ooc::store::open(url);
    const auto n = static_cast<std::size_t>(std::sqrt(static_cast<double>(budget) * 100 / per_cent / sizeof(double)));
    matrix b{rt, store, u.name + std::to_string(per_cent), ooc::create, {n, n}};
    const matrices m{nullptr, b.data(), n};
    u.loop(m, time_limit(seconds));
    const ooc::runtime_stats before = rt.stats();
    const stopwatch w;
    const double touches = u.loop(m, time_limit(seconds));
    const double took = w.seconds();
    const ooc::runtime_stats after = rt.stats();
    return json{{"rate", touches / took},
                {"written", after.bytes_written - before.bytes_written},
                {"read", after.bytes_read - before.bytes_read},
                {"evicted", after.bytes_evicted - before.bytes_evicted}};
  });
}

}  // namespace

void measure_nearly_fitting(const std::filesystem::path& dir, std::uint64_t budget, double seconds, json& out) {
  const std::string url = "local:" + fresh_folder(dir, "nearly_fitting").string();
  for (const updates& u : all_updates)
    for (const int per_cent : all_ratios) {
      const json r = run(url, budget, per_cent, u, seconds);
      char name[64];
      std::snprintf(name, sizeof name, "%s_in_%d.%02d", u.name, per_cent / 100, per_cent % 100);
      const auto written = r["written"].get<double>(), evicted = r["evicted"].get<double>();
      constexpr double mib = 1 << 20;
      if (evicted > 0) out[name + std::string("_written")] = written / evicted;
      out[name + std::string("_written_mib")] = written / mib;
      out[name + std::string("_evicted_mib")] = evicted / mib;
      out[name + std::string("_read_mib")] = r["read"].get<double>() / mib;
      out[name + std::string("_touches_per_s")] = r["rate"];
    }
}

}  // namespace bench::patterns
