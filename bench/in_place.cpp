// The inner product of a file of eight times the budget with itself, by a plain loop.
//
//     over_imported      time over the file where it lies, whose elements begin at byte 128 as those of
//                        .npy files do / over an array of a store, in turns, each cold
//     *_mib_per_s        the speed of each
//     read_over_array    bytes that the runtime read of the file / those of the elements
#include <stdexcept>

#include "measure/child.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/raw_io.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/open_file.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using vector = ooc::ooc_array<double, 1>;

constexpr std::uint64_t times_budget = 8, slack = 64_MiB, header = 128;

void inner_product(const vector& a) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * a[i];
  if (sum != static_cast<double>(a.size())) throw std::runtime_error("in_place: a sum is wrong");
}

template <class Open>
json cold(const std::filesystem::path& what, std::uint64_t budget, const Open& open) {
  drop_cache(what);
  return in_child(budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    const vector a = open(rt);
    json out;
    out["seconds"] = seconds_of([&] { inner_product(a); });
    out["read"] = rt.stats().bytes_read;
    return out;
  });
}

}  // namespace

json run_in_place(const options& o) {
  const std::uint64_t budget = o.memory_or(64_MiB);
  const std::size_t n = times_budget * budget / sizeof(double);
  require_space(o.dir, 2 * times_budget * budget + 256_MiB);
  const auto store = fresh_folder(o.dir, "store"), file = o.dir / "plain";
  const auto open_store = [&] { return ooc::store::open("local:" + store.string()); };
  raw::make_file(file, times_budget * budget + raw::request_bytes);  // room for the header
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    vector a{rt, open_store(), "a", ooc::create, {n}};
    a.overwrite(a.whole());
    for (double& x : a) x = 1;
    return json::object();
  });
  paired_ratio over_imported("over_imported"), ours("in_place_mib_per_s"), imported("imported_mib_per_s");
  const double mib = static_cast<double>(times_budget * budget) / (1 << 20);
  std::uint64_t read = 0;
  for (unsigned k = 0; k < o.rounds_or(5); ++k) {
    const json there = cold(store, budget, [&](ooc::runtime& rt) {
      return vector{rt, open_store(), "a", ooc::open_read_only};
    });
    const json here = cold(file, budget, [&](ooc::runtime& rt) {
      return ooc::open_file<double, 1>(rt, file.string(), ooc::open_read_only, {.extents = {n}, .offset = header});
    });
    over_imported.add(here["seconds"].get<double>(), there["seconds"].get<double>());
    ours.add(mib, here["seconds"].get<double>());
    imported.add(mib, there["seconds"].get<double>());
    read = here["read"].get<std::uint64_t>();
  }
  json out;
  for (const paired_ratio* r : {&over_imported, &ours, &imported}) r->put(out);
  out["read_over_array"] = static_cast<double>(read) / static_cast<double>(n * sizeof(double));
  out["file_mib"] = static_cast<std::uint64_t>(mib);
  return out;
}

}  // namespace bench
