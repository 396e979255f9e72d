// The rows of `oocbench algorithms` about single passes over arrays of eight times the budget:
//
//     transpose_over_bound   ooc::transpose() of a square matrix between two row-major files: time /
//                            direct I/O of as many bytes, in pieces as long as its own, read and
//                            written in turns
//     transpose_over_mmap    the best of loops blocked by hand over mapped files: its time / ours
//     transpose_over_naive   the double loop over mapped files: its time / ours; of the loop 512 rows
//                            or 20 s are run, and their time multiplied
//     reduce_over_bound      ooc::reduce(): time / direct reads of the file
//     transform_over_bound   ooc::transform() of two arrays into a third: time / direct I/O that
//                            reads two files and writes a third
#include "algorithm_passes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "measure/child.hpp"
#include "measure/memory_cap.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/raw_io.hpp"
#include "measure/rival_memory.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using matrix = ooc::ooc_array<double, 2>;

constexpr std::uint64_t slack = 64_MiB;

struct setting {
  std::filesystem::path store;
  std::vector<std::filesystem::path> plain;
  std::uint64_t budget = 0;
  std::size_t n = 0;

  std::uint64_t bytes() const { return n * n * sizeof(double); }
  std::uint64_t cap() const { return budget + slack; }
};

double value_at(std::size_t i, std::size_t j) { return static_cast<double>((i * 7 + j * 3) % 64); }

/// Of a matrix that should be the transposed one.
template <class At>
void check_transposed(std::size_t n, At at) {
  for (std::size_t k = 0; k < 500; ++k) {
    const std::size_t i = k * 7919 % n, j = k * 104729 % n;
    if (at(i, j) != value_at(j, i)) throw std::runtime_error("algorithms: a transposition is wrong");
  }
}

void on_disk(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR);
  if (fd < 0 || ::fdatasync(fd) != 0) throw std::system_error(errno, std::generic_category(), file.string());
  ::close(fd);
}

void make_arrays(const setting& s) {
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.budget}};
    const ooc::store store = ooc::store::open("local:" + s.store.string());
    for (const char* name : {"a", "b", "c"}) {
      matrix m{rt, store, name, ooc::create, {s.n, s.n}};
      m.overwrite(m.whole());
      for (std::size_t i = 0; i < s.n; ++i)
        for (std::size_t j = 0; j < s.n; ++j) m[i][j] = value_at(i, j);
      m.close();
    }
    return json::object();
  });
  in_child(0, [&] {
    for (const auto& file : s.plain) raw::make_file(file, s.bytes());
    const mapped_file a(s.plain[0], MADV_NORMAL);
    for (std::size_t i = 0; i < s.n; ++i)
      for (std::size_t j = 0; j < s.n; ++j) a.data()[i * s.n + j] = value_at(i, j);
    return json::object();
  });
}

/// A run of ours: compute(a, b, c, result), timed by itself.
template <class F>
json ours(const setting& s, F compute) {
  drop_cache(s.store);
  return in_child(s.cap(), [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.budget}};
    const ooc::store store = ooc::store::open("local:" + s.store.string());
    matrix a{rt, store, "a", ooc::open}, b{rt, store, "b", ooc::open}, c{rt, store, "c", ooc::open};
    json out;
    compute(a, b, c, out);
    return out;
  });
}

json transposed(const setting& s) {
  return ours(s, [&](matrix& a, matrix& b, matrix&, json& out) {
    put_times(out, [&] {
      const auto done = ooc::transpose(a, b);  // durable when it returns
      out["memory"] = done.memory;
    });
    check_transposed(s.n, [&](std::size_t i, std::size_t j) { return std::as_const(b)[i][j]; });
  });
}

/// How a loop over mapped files goes.
struct blocking {
  int advice;
  std::size_t side;
};

/// Seconds of a loop over mapped files: blocks of `side`, the first `rows` rows of the source.
double mapped(const setting& s, int advice, std::size_t side, std::size_t rows) {
  return in_child(s.cap(),
                  [&] {
                    const mapped_file a(s.plain[0], advice), b(s.plain[1], advice);
                    const std::size_t n = s.n;
                    json out;
                    out["seconds"] = seconds_of([&] {
                      for (std::size_t i0 = 0; i0 < rows; i0 += side)
                        for (std::size_t j0 = 0; j0 < n; j0 += side)
                          for (std::size_t i1 = i0; i1 < std::min(i0 + side, rows); i1 += 16)
                            for (std::size_t j = j0; j < std::min(j0 + side, n); ++j)
                              for (std::size_t i = i1; i < std::min(i1 + 16, i0 + side); ++i)
                                b.data()[j * n + i] = a.data()[i * n + j];
                      on_disk(s.plain[1]);
                    });
                    if (rows == n)
                      check_transposed(n, [&](std::size_t i, std::size_t j) { return b.data()[i * n + j]; });
                    return out;
                  })["seconds"]
      .get<double>();
}

/// Of the naive loop only the first rows are run, for at most so long, and the rest is taken to
/// cost as much: 512 rows of the source go to the same pages of the target.
double mapped_plain_loop(const setting& s) {
  constexpr double most_seconds = 20;
  constexpr std::size_t most_rows = 512;
  return in_child(s.cap(),
                  [&] {
                    const mapped_file a(s.plain[0], MADV_NORMAL), b(s.plain[1], MADV_NORMAL);
                    json out;
                    std::size_t rows = 0;
                    const stopwatch w;
                    for (; rows < most_rows && w.seconds() < most_seconds; ++rows)
                      for (std::size_t j = 0; j < s.n; ++j) b.data()[j * s.n + rows] = a.data()[rows * s.n + j];
                    on_disk(s.plain[1]);
                    out["seconds"] = w.seconds() * static_cast<double>(s.n) / static_cast<double>(rows);
                    return out;
                  })["seconds"]
      .get<double>();
}

json reduced(const setting& s) {
  return ours(s, [&](matrix& a, matrix&, matrix&, json& out) {
    double sum = 0;
    put_times(out, [&] { sum = ooc::reduce(std::as_const(a), 0.0); });
    double expected = 0;
    for (std::size_t i = 0; i < 64; ++i)
      for (std::size_t j = 0; j < 64; ++j) expected += value_at(i, j);
    expected *= static_cast<double>(s.n / 64) * static_cast<double>(s.n / 64);
    if (sum != expected) throw std::runtime_error("algorithms: a sum is wrong");
  });
}

/// After transposed(): b is the mirror image of a.
json combined(const setting& s) {
  return ours(s, [&](matrix& a, matrix& b, matrix& c, json& out) {
    put_times(out, [&] { ooc::transform(a, b, c, [](double x, double y) { return x - 2 * y; }); });
    for (std::size_t k = 0; k < s.n; ++k)
      if (std::as_const(c)[k][7 * k % s.n] != value_at(k, 7 * k % s.n) - 2 * value_at(7 * k % s.n, k))
        throw std::runtime_error("algorithms: a transformation is wrong");
  });
}

}  // namespace

void measure_passes(const options& o, json& out) {
  setting s;
  s.budget = o.memory_or(o.full ? 256_MiB : 64_MiB);
  const double elements = static_cast<double>(8 * s.budget / sizeof(double));
  s.n = static_cast<std::size_t>(std::sqrt(elements)) / 512 * 512;
  require_space(o.dir, 6 * s.bytes() + 256_MiB);
  s.store = fresh_folder(o.dir, "passes");
  for (const char* name : {"pass.a", "pass.b", "pass.c"}) s.plain.push_back(o.dir / name);
  make_arrays(s);

  paired_ratio over_bound("transpose_over_bound"), over_mmap("transpose_over_mmap"), over_naive("transpose_over_naive"),
      seconds("transpose_seconds"), reduce_over_bound("reduce_over_bound"),
      transform_over_bound("transform_over_bound");
  std::vector<blocking> rivals;
  for (const int advice : advices)
    for (const std::size_t side : {std::size_t{512}, std::size_t{2048}}) rivals.push_back({advice, side});
  json one, sum, third;
  for (unsigned k = 0; k < o.rounds_or(3); ++k) {
    one = transposed(s);
    const double mine = one["seconds"].get<double>();
    // Three boxes in memory, whose edges are multiples of a chunk.
    const double edge = std::sqrt(one["memory"].get<double>() / 3 / sizeof(double));
    const std::uint64_t piece = std::max<std::uint64_t>(static_cast<std::uint64_t>(edge) / 512, 1) * 4_KiB;
    out["transpose_piece"] = piece;
    seconds.add(mine);
    over_bound.add(mine, raw::direct_transpose(s.plain[0], s.plain[2], s.n * sizeof(double), piece));
    sum = reduced(s);
    reduce_over_bound.add(sum["seconds"].get<double>(), raw::direct_read({s.plain[0]}));
    third = combined(s);
    transform_over_bound.add(third["seconds"].get<double>(), raw::direct_combine({s.plain[0], s.plain[1]}, s.plain[2]));
    // The first round finds out which of the loops is the best one.
    double best = std::numeric_limits<double>::infinity();
    std::vector<blocking> winner;
    for (const blocking& b : rivals) {
      const double t = mapped(s, b.advice, b.side, s.n);
      if (t < best) {
        best = t;
        winner = {b};
      }
    }
    rivals = winner;
    over_mmap.add(best, mine);
    over_naive.add(mapped_plain_loop(s), mine);
  }
  for (const paired_ratio* r :
       {&over_bound, &over_mmap, &over_naive, &seconds, &reduce_over_bound, &transform_over_bound})
    r->put(out);
  out["transpose_rows"] = s.n;
  out["transpose_budget_mib"] = s.budget >> 20;
  for (const auto& [name, run] :
       {std::pair{"transpose", &one}, std::pair{"reduce", &sum}, std::pair{"transform", &third}})
    out[std::string(name) + "_processor_seconds"] = (*run)["processor"];
}

}  // namespace bench
