// A smooth field of eight times the budget, packed: a loop over its rows that adds up its elements.
//
//     CODEC_ratio              bytes of the plain array / of the packed one
//     CODEC_over_plain         time over the plain array / over the packed one, in turns, each cold
//     CODEC_over_plain_500     the same on a device that is held to 500 MB/s
//     CODEC_pack_mib_per_s     how fast it is packed
#include <cmath>
#include <stdexcept>

#include "measure/child.hpp"
#include "measure/device_limit.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/algorithm/copy.hpp"
#include "oocarray/ooc_array.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using field = ooc::ooc_array<double, 2>;

constexpr std::uint64_t times_budget = 8, slack = 64_MiB, slow_device = 500'000'000;
constexpr std::size_t columns = 4096;
constexpr double scale = 1 << 18;

/// Known to a part of some 100,000 of its greatest, as measured ones are.
double value(std::size_t i, std::size_t j) {
  const double x = static_cast<double>(i) / 700, y = static_cast<double>(j) / 900;
  return std::round(scale * std::sin(x) * std::cos(y + 0.3 * x)) / scale;
}

double total(const field& a) {
  double sum = 0;
  for (std::size_t i = 0; i < a.extents()[0]; ++i)
    for (std::size_t j = 0; j < columns; ++j) sum += a[i][j];
  return sum;
}

double cold(const std::filesystem::path& folder, const char* path, std::uint64_t budget, const device_limit* held,
            double expected) {
  drop_cache(folder);
  return in_child(budget + slack,
                  [&] {
                    if (held) held->enter();
                    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
                    const field a{rt, ooc::store::open("local:" + folder.string()), path, ooc::open_read_only};
                    double sum = 0;
                    json out;
                    out["seconds"] = seconds_of([&] { sum = total(a); });
                    if (std::abs(sum - expected) > 1e-6 * std::abs(expected) + 1e-3)
                      throw std::runtime_error("packed: a sum is wrong");
                    return out;
                  })["seconds"]
      .get<double>();
}

}  // namespace

json run_packed(const options& o) {
  const std::uint64_t budget = o.memory_or(64_MiB), bytes = times_budget * budget;
  const std::size_t rows = bytes / sizeof(double) / columns;
  require_space(o.dir, 3 * bytes + 256_MiB);
  const auto folder = fresh_folder(o.dir, "store");
  const auto open_store = [&] { return ooc::store::open("local:" + folder.string()); };
  const double expected = in_child(0,
                                   [&] {
                                     ooc::runtime rt{ooc::runtime_options{.memory = budget}};
                                     double sum = 0;
                                     field a{rt, open_store(), "plain", ooc::create, {rows, columns}};
                                     for (std::size_t i = 0; i < rows; ++i)
                                       for (std::size_t j = 0; j < columns; ++j) sum += a[i][j] = value(i, j);
                                     a.close();
                                     json j;
                                     j["sum"] = sum;
                                     return j;
                                   })["sum"]
                              .get<double>();
  const device_limit slow(folder, slow_device);
  json out;
  for (const std::string codec : {"lz4", "zstd"}) {
    const json packed = in_child(0, [&] {
      {
        ooc::runtime rt{ooc::runtime_options{.memory = budget}};
        const field from{rt, open_store(), "plain", ooc::open_read_only};
        field to{rt, open_store(), codec, ooc::create, {rows, columns}};
        ooc::copy(from, to);
      }
      json j;
      std::uint64_t is = 0;
      j["seconds"] = seconds_of([&] { is = open_store().pack(codec, {.codec = codec}); });
      j["bytes"] = is;
      return j;
    });
    out[codec + "_ratio"] = static_cast<double>(bytes) / packed["bytes"].get<double>();
    out[codec + "_pack_mib_per_s"] = static_cast<double>(bytes >> 20) / packed["seconds"].get<double>();
    paired_ratio here(codec + "_over_plain"), there(codec + "_over_plain_500");
    for (unsigned k = 0; k < o.rounds_or(5); ++k) {
      const double plain = cold(folder, "plain", budget, nullptr, expected);
      here.add(plain, cold(folder, codec.c_str(), budget, nullptr, expected));
      if (!slow.active()) continue;
      const double slow_plain = cold(folder, "plain", budget, &slow, expected);
      there.add(slow_plain, cold(folder, codec.c_str(), budget, &slow, expected));
    }
    here.put(out);
    if (slow.active()) there.put(out);
  }
  return out;
}

}  // namespace bench
