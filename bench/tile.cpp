// All 512 x 512 tiles of a 16384 x 16384 matrix of doubles, column by column, with a quarter of the
// matrix as memory, on a store of four folders.
//
//     row_major_over_mmap           file in row-major order: mapped file's time / ours.  Of the mapped
//                                   file only the first columns of tiles are read, and their time is
//                                   multiplied: each costs it the same, and all would take minutes
//     row_major_requests_per_tile   messages to I/O nodes for a tile (4 nodes: one to each, less
//                                   where tiles are fetched together)
//     tiled_over_limit              file in tiled order: our throughput / that of direct reads of as
//                                   much from four files, in pieces of the same size and order
//     tiled_over_same_memory        the same / those reads through as much fresh memory as our budget is:
//                                   what bounds us
//     tiled_over_sequential         the same / direct reads of the four files from end to end
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/child.hpp"
#include "measure/memory_cap.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/raw_io.hpp"
#include "measure/rival_memory.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/ooc_array.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using matrix = ooc::ooc_array<double, 2, ooc::layout_tiled>;

constexpr std::size_t n = 16384;
constexpr std::size_t side = 512;
constexpr std::size_t grid = n / side;
constexpr std::uint64_t bytes = n * n * sizeof(double);
constexpr std::uint64_t tile_bytes = side * side * sizeof(double);
constexpr std::uint64_t slack = 64_MiB;

struct setting {
  std::string url;
  std::filesystem::path store, plain;
  std::uint64_t cap = 0;
  /// Columns of tiles that the mapped file's loop goes through: each costs it the same.
  std::size_t rival_columns = 4;
};

/// The elements are 1: every tile must add up to its size.
void check(double sum, std::size_t columns = grid) {
  if (sum != static_cast<double>(n * side * columns)) throw std::runtime_error("tile: the sum is wrong");
}

/// An empty store of four folders.
void make_store(setting& s, const std::filesystem::path& dir) {
  s.store = fresh_folder(dir, "store");
  s.url = "local:";
  for (const char* name : {"disk0", "disk1", "disk2", "disk3"}) {
    if (s.url.back() != ':') s.url += ',';
    s.url += fresh_folder(s.store, name).string();
  }
}

void make_array(const setting& s, const char* name, ooc::file_order order) {
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.cap - slack}};
    matrix a{rt, ooc::store::open(s.url), name, ooc::create, {n, n}, {.order = order, .tile = {side, side}}};
    a.overwrite(a.whole());
    // In bands of tiles, so that each block is written once.
    for (auto t : a.tiles(ooc::access_mode::write))
      for (std::size_t i = 0; i < t.rows(); ++i)
        for (std::size_t j = 0; j < t.cols(); ++j) t(i, j) = 1.0;
    a.close();
    return json::object();
  });
}

json ours(const setting& s, const char* name) {
  drop_cache(s.store);
  return in_child(s.cap, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.cap - slack}};
    const ooc::store store = ooc::store::open(s.url);
    const matrix a{rt, store, name, ooc::open_read_only, {.tile = {side, side}}};
    const ooc::io_stats before = store.stats();
    json out;
    out["seconds"] = seconds_of([&] {
      const auto tiles = a.tiles();
      double sum = 0;
      for (std::size_t tj = 0; tj < grid; ++tj)
        for (std::size_t ti = 0; ti < grid; ++ti) {
          const auto t = tiles[ti * grid + tj];
          for (std::size_t i = 0; i < side; ++i)
            for (std::size_t j = 0; j < side; ++j) sum += t(i, j);
        }
      check(sum);
    });
    const ooc::io_stats io = store.stats() - before;
    out["requests"] = io.read_requests;
    out["device_reads"] = io.device_reads;
    out["device_mib_read"] = io.device_bytes_read >> 20;
    return out;
  });
}

/// What this process had read from disks, by the kernel's count.
std::uint64_t device_bytes_read() {
  std::ifstream in("/proc/self/io");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("read_bytes:")) return std::stoull(line.substr(11));
  return 0;
}

/// Time of a loop over the whole matrix in a mapped file, from that over its first columns of tiles.
double mapped(const setting& s, int advice) {
  const json r = in_child(s.cap, [&] {
    const mapped_file f(s.plain, advice);
    json out;
    out["seconds"] = seconds_of([&] {
      double sum = 0;
      for (std::size_t tj = 0; tj < s.rival_columns; ++tj)
        for (std::size_t ti = 0; ti < grid; ++ti)
          for (std::size_t i = 0; i < side; ++i) {
            const double* row = f.data() + (ti * side + i) * n + tj * side;
            for (std::size_t j = 0; j < side; ++j) sum += row[j];
          }
      check(sum, s.rival_columns);
    });
    out["device_mib_read"] = device_bytes_read() >> 20;
    return out;
  });
  const double seconds = r["seconds"].get<double>() * grid / static_cast<double>(s.rival_columns);
  std::fprintf(stderr, "  mapped, advice %d: %.1f s for the whole, %lu MiB read in %zu of %zu columns\n", advice,
               seconds, r["device_mib_read"].get<unsigned long>(), s.rival_columns, grid);
  return seconds;
}

/// Runs our loop, and keeps the most memory that any run took.
class own_runs {
 public:
  explicit own_runs(const setting& s) : setting_(s) {}
  json operator()(const char* name) {
    json r = ours(setting_, name);
    peak_ = std::max(peak_, r["peak_rss"].get<std::uint64_t>());
    return r;
  }
  std::uint64_t peak() const noexcept { return peak_; }

 private:
  const setting& setting_;
  std::uint64_t peak_ = 0;
};

void measure_row_major(setting& s, const std::filesystem::path& dir, unsigned rounds, own_runs& run, json& out) {
  make_store(s, dir);
  s.plain = dir / "plain";
  raw::make_file(s.plain, bytes);
  make_array(s, "rows", ooc::file_order::row_major);
  paired_ratio ratio("row_major_over_mmap"), requests("row_major_requests_per_tile");
  paired_ratio ours_s("row_major_seconds"), mapped_s("mmap_seconds");
  for (unsigned k = 0; k < rounds; ++k) {
    double best = std::numeric_limits<double>::infinity();
    for (const int advice : {MADV_NORMAL, MADV_SEQUENTIAL, MADV_RANDOM}) best = std::min(best, mapped(s, advice));
    const json r = run("rows");
    mapped_s.add(best);
    ours_s.add(r["seconds"].get<double>());
    ratio.add(best, r["seconds"].get<double>());
    requests.add(r["requests"].get<double>(), grid * grid);
    out["row_major_device_reads"] = r["device_reads"];
    out["row_major_device_mib_read"] = r["device_mib_read"];
  }
  std::filesystem::remove(s.plain);
  for (const paired_ratio* r : {&ratio, &requests, &ours_s, &mapped_s}) r->put(out);
}

void measure_tiled(setting& s, const std::filesystem::path& dir, unsigned rounds, own_runs& run, json& out) {
  make_store(s, dir);
  std::vector<std::filesystem::path> parts;
  for (int k = 0; k < 4; ++k) {
    parts.push_back(dir / ("part" + std::to_string(k)));
    raw::make_file(parts.back(), bytes / 4);
  }
  make_array(s, "tiles", ooc::file_order::tiled);
  const auto read_raw = [&](std::uint64_t memory = 0) {
    return raw::direct_read_columns(parts, tile_bytes / 4, grid, memory);
  };
  paired_ratio ratio("tiled_over_limit"), seconds("tiled_seconds");
  paired_ratio same("tiled_over_same_memory");
  paired_ratio sequential("tiled_over_sequential");
  for (unsigned k = 0; k < rounds; ++k) {
    double limit = read_raw();
    double best = run("tiles")["seconds"].get<double>();
    limit = std::min(limit, read_raw());
    const double in_order = raw::direct_read(parts);
    const double same_memory = read_raw(s.cap - slack);
    best = std::min(best, run("tiles")["seconds"].get<double>());
    seconds.add(best);
    ratio.add(limit, best);
    same.add(same_memory, best);
    sequential.add(in_order, best);
  }
  for (const paired_ratio* r : {&ratio, &same, &sequential, &seconds}) r->put(out);
}

}  // namespace

json run_tile(const options& o) {
  setting s;
  s.cap = o.memory_or(bytes / 4);
  if (s.cap < 128_MiB) throw std::runtime_error("tile: --memory must be 128M or more");
  require_space(o.dir, 2 * bytes + 256_MiB);
  const unsigned rounds = o.rounds_or(3);
  json out;
  own_runs run(s);
  // One half after the other, each with its own files: the fewer there are, the less the caches of
  // disks and hypervisors tell between them.
  measure_row_major(s, o.dir, rounds, run, out);
  measure_tiled(s, o.dir, rounds, run, out);
  out["peak_rss_mib"] = run.peak() >> 20;
  out["cap_mib"] = s.cap >> 20;
  out["budget_mib"] = (s.cap - slack) >> 20;
  out["capped"] = can_cap_memory();
  return out;
}

}  // namespace bench
