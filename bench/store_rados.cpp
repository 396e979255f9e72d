// A store in RADOS beside `rados bench` on the same pool: `oocbench store --rados URL`.
//
//     rados_read_over_bench, rados_write_over_bench   our throughput / that of `rados bench` in objects of 1 MiB, as many
//                                                     in flight
//     rados_latency_over_bench     time of a 4 KiB read / of `rados bench rand` of objects of 4 KiB, one at a time
//     rados_random_over_bench      4 KiB reads of 16 threads: our number of them a second / that of `rados bench rand -t 16`
//     rados_tile_over_contiguous   all 512 x 512 tiles of a 8192 x 8192 file of doubles: throughput / that of contiguous
//                                  reads of the same file
//     rados_jacobi_over_served, rados_jacobi_over_embedded   8 steps of Jacobi on 128 MiB with 32 MiB of memory: the time
//                                  on 4 I/O servers, and in a folder, of --dir / in RADOS, which keeps copies
#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "measure/paired_ratio.hpp"
#include "measure/scratch.hpp"
#include "measure/served_store.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "oocarray/ooc_array.hpp"
#include "plain_jacobi.hpp"
#include "store_loads.hpp"

namespace bench {
namespace {

constexpr int seconds_of_rival = 4;
constexpr unsigned random_threads = 16;
constexpr std::size_t jacobi_extent = 4096;

/// The number behind `field` in what `rados bench` prints.
double rados_bench(const std::string& pool, const std::string& arguments, const std::string& field) {
  const std::string line =
      "rados -p " + pool + " bench " + std::to_string(seconds_of_rival) + " " + arguments + " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(line.c_str(), "r"), ::pclose);
  if (!pipe) throw std::runtime_error("store: '" + line + "' cannot be run");
  std::array<char, 512> text;
  double found = -1;
  while (std::fgets(text.data(), text.size(), pipe.get()) != nullptr) {
    const std::string row = text.data();
    if (row.starts_with(field)) found = std::stod(row.substr(row.find(':') + 1));
  }
  if (found <= 0) throw std::runtime_error("store: '" + line + "' has not told its " + field);
  return found;
}

/// Seconds of a sweep whose result is durable.
double jacobi(const std::string& url) {
  return seconds(client({url, 1}, [](const ooc::store& store) {
    ooc::runtime rt({.memory = 32_MiB});
    ooc::ooc_array<double, 2> a(rt, store, "jacobi", ooc::create, {jacobi_extent, jacobi_extent}, {.replace = true});
    for (std::size_t i = 0; i < jacobi_extent; ++i)
      for (std::size_t j = 0; j < jacobi_extent; ++j) a[i][j] = start_value(i, j);
    a.writeback(ooc::durable);
    return json{{"seconds", seconds_of([&] { ooc::sweep(a, 8, jacobi_stencil()); })}};
  }));
}

}  // namespace

json run_store_on_rados(const options& o) {
  require_space(o.dir, 4 * jacobi_extent * jacobi_extent * sizeof(double));
  const setting s{o.url, 1};
  const auto begin = o.url.find(':') + 1;
  const std::string pool = o.url.substr(begin, o.url.find_first_of("/?", begin) - begin);
  make_files(s);
  const std::string threads = " -t " + std::to_string(depth), run = " --run-name oocbench";
  const double mib = static_cast<double>(times * stream_bytes) / 1e6;
  paired_ratio read("rados_read_over_bench"), write("rados_write_over_bench"), latency("rados_latency_over_bench");
  paired_ratio random("rados_random_over_bench"), tile("rados_tile_over_contiguous");
  paired_ratio over_served("rados_jacobi_over_served"), over_embedded("rados_jacobi_over_embedded");
  paired_ratio read_speed("read_mb_per_s"), write_speed("write_mb_per_s"), small_us("us_per_4k_read");
  for (unsigned r = o.rounds_or(3); r != 0; --r) {
    const std::string large = run + "-1m", little = run + "-4k";
    const double bench_out =
        rados_bench(pool, "write -b 1048576 --no-cleanup" + threads + large, "Bandwidth (MB/sec)") * 1.048576;
    const double ours_out = mib / our_stream(s, transfer::write);
    write.add(ours_out, bench_out);
    write_speed.add(ours_out);
    const double bench_in = rados_bench(pool, "seq" + threads + large, "Bandwidth (MB/sec)") * 1.048576;
    const double ours_in = mib / our_stream(s, transfer::read);
    read.add(ours_in, bench_in);
    read_speed.add(ours_in);
    (void)rados_bench(pool, "write -b 4096 -t 16 --no-cleanup" + little, "Bandwidth (MB/sec)");
    const double rival = rados_bench(pool, "rand -t 1" + little, "Average Latency(s)");
    const double one = small_read(s);
    latency.add(one, rival);
    const std::string all = " -t " + std::to_string(random_threads);
    const double bench_random = rados_bench(pool, "rand" + all + little, "Average IOPS");
    random.add(random_reads_per_second(s, random_threads), bench_random);
    small_us.add(one * 1e6);
    const double in_rados = jacobi(o.url);
    {
      const served_store servers(o.dir / "servers", 4);
      over_served.add(jacobi(servers.url()), in_rados);
    }
    std::filesystem::create_directories(o.dir / "embedded");
    over_embedded.add(jacobi("local:" + (o.dir / "embedded").string()), in_rados);
    const json contiguous = read_matrix(s, false), tiles = read_matrix(s, true);
    tile.add(seconds(contiguous), seconds(tiles));
    for (const std::string& name : {large, little})
      if (std::system(("rados -p " + pool + " cleanup" + name + " >/dev/null 2>&1").c_str()) != 0)
        throw std::runtime_error("store: the objects of `rados bench` could not be removed from pool '" + pool + "'");
  }
  json out{{"store", o.url}};
  for (const paired_ratio* p :
       {&read, &write, &latency, &random, &tile, &over_served, &over_embedded, &read_speed, &write_speed, &small_us})
    p->put(out);
  return out;
}

}  // namespace bench
