// One sweep over an array of eight times the budget, reading or writing every element.
//
//     read_over_limit    our throughput / the better of direct and of cold buffered reading
//     write_over_limit   our throughput / the better of direct and of buffered writing, all files
//                        written before: a fresh file is written slower than a rewritten one
//     *_over_same_memory the same, but the bare direct transfers go through as much fresh memory as
//                        our budget is, and what they write is made first: what bounds us
//     read_over_mmap     time of the loop over a mapped file / ours, under the same memory cap
//     write_over_mmap    the same for the writing loop
//     *_processor_s_per_gib  processor time of our process, both loop and library
#include <algorithm>
#include <cstdio>
#include <functional>

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
using matrix = ooc::ooc_array<double, 2>;

constexpr std::size_t columns = 4096;
constexpr std::uint64_t times_budget = 8;
constexpr std::uint64_t slack = 64_MiB;  ///< what a process may hold beside its budget

struct setting {
  std::filesystem::path store, plain;
  std::uint64_t budget = 0;
  std::size_t rows = 0;

  std::uint64_t bytes() const { return rows * columns * sizeof(double); }
  std::uint64_t cap() const { return budget + slack; }
};

/// Runs `loop` on the array in a process of its own; returns seconds and peak memory.
json ours(const setting& s, const std::function<void(matrix&, std::size_t rows)>& loop) {
  drop_cache(s.store);
  return in_child(s.cap(), [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.budget}};
    matrix a{rt, ooc::store::open("local:" + s.store.string()), "a", ooc::open};
    json out;
    out["seconds"] = seconds_of([&] { loop(a, s.rows); });
    return out;
  });
}

void read_all(matrix& m, std::size_t rows) {
  const matrix& a = m;
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) sum += a[i][j];
  keep(sum);
}

void write_all(matrix& a, std::size_t rows) {
  a.overwrite(a.whole());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) a[i][j] = static_cast<double>(i + j);
  a.writeback();
}

/// The same loops over a mapped file; seconds.
double mapped(const setting& s, bool write, int advice) {
  const json r = in_child(s.cap(), [&] {
    const mapped_file f(s.plain, advice);
    double* a = f.data();
    json out;
    out["seconds"] = seconds_of([&] {
      double sum = 0;
      for (std::size_t i = 0; i < s.rows; ++i) {
        double* row = a + i * columns;
        if (write)
          for (std::size_t j = 0; j < columns; ++j) row[j] = static_cast<double>(i + j);
        else
          for (std::size_t j = 0; j < columns; ++j) sum += row[j];
      }
      keep(sum);
    });
    return out;
  });
  return r["seconds"].get<double>();
}

void make_array(const setting& s) {
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.budget}};
    matrix a{rt, ooc::store::open("local:" + s.store.string()), "a", ooc::create, {s.rows, columns}};
    write_all(a, s.rows);
    return json::object();
  });
}

}  // namespace

json run_stream(const options& o) {
  setting s;
  s.budget = o.memory_or(256_MiB);
  s.rows = times_budget * s.budget / (columns * sizeof(double));
  require_space(o.dir, 2 * s.bytes() + 256_MiB);
  s.store = fresh_folder(o.dir, "store");
  s.plain = o.dir / "plain";
  make_array(s);
  raw::make_file(s.plain, s.bytes());

  paired_ratio read_limit("read_over_limit"), write_limit("write_over_limit");
  paired_ratio read_same("read_over_same_memory"), write_same("write_over_same_memory");
  paired_ratio read_mmap("read_over_mmap"), write_mmap("write_over_mmap");
  paired_ratio read_speed("read_mib_per_s"), write_speed("write_mib_per_s");
  const double mib = static_cast<double>(s.bytes()) / (1 << 20);
  paired_ratio read_cpu("read_processor_s_per_gib"), write_cpu("write_processor_s_per_gib");
  std::uint64_t peak = 0;
  const auto timed = [&](const auto& loop, paired_ratio& cpu) {
    const json r = ours(s, loop);
    cpu.add(r["processor_seconds"].get<double>(), mib / 1024);
    peak = std::max(peak, r["peak_rss"].get<std::uint64_t>());
    return r["seconds"].get<double>();
  };
  // A disk's or hypervisor's own cache makes the second look at a file faster than the first: so each
  // side gets two runs a round, in turns with the other's, and its better one counts.
  const auto round = [&](bool write, paired_ratio& limit, paired_ratio& same, paired_ratio& mmap, paired_ratio& speed,
                         paired_ratio& cpu) {
    const auto run = [&] { return write ? timed(write_all, cpu) : timed(read_all, cpu); };
    const double direct = write ? raw::direct_write({s.plain}) : raw::direct_read({s.plain});
    double best = run();
    const double first = best;
    const double buffered = write ? raw::buffered_write(s.plain) : raw::buffered_read(s.plain);
    best = std::min(best, run());
    std::fprintf(stderr, "  %s, MiB/s: direct %.0f, ours %.0f, buffered %.0f, ours (better) %.0f\n",
                 write ? "write" : "read", mib / direct, mib / first, mib / buffered, mib / best);
    limit.add(std::min(direct, buffered), best);
    same.add(write ? raw::direct_write({s.plain}, s.budget) : raw::direct_read({s.plain}, s.budget), best);
    speed.add(mib, best);
    const double mapped_1 = mapped(s, write, advices[0]);
    best = run();
    const double mapped_2 = mapped(s, write, advices[1]);
    best = std::min(best, run());
    mmap.add(std::min(mapped_1, mapped_2), best);
  };
  for (unsigned k = 0; k < o.rounds_or(5); ++k) {
    round(false, read_limit, read_same, read_mmap, read_speed, read_cpu);
    round(true, write_limit, write_same, write_mmap, write_speed, write_cpu);
  }
  json out;
  for (const paired_ratio* r : {&read_limit, &write_limit, &read_same, &write_same, &read_mmap, &write_mmap,
                                &read_speed, &write_speed, &read_cpu, &write_cpu})
    r->put(out);
  out["peak_rss_mib"] = peak >> 20;
  out["budget_mib"] = s.budget >> 20;
  out["array_mib"] = s.bytes() >> 20;
  out["capped"] = can_cap_memory();
  return out;
}

}  // namespace bench
