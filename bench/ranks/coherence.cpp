// Jacobi's iteration on ranks whose parts fit into their budgets: after each iteration a rank needs
// from the store only the rows beside its part, which others have just written.
//
//     reread_bytes_sync         bytes that all ranks read in an iteration that follows sync()
//     reread_bytes_halo         the same after sync_halo()
//     reread_bytes_invalidate   the same after the papers' writeback(); MPI_Barrier; invalidate()
//     halo_bytes                foreign rows that the ranks read
//     halo_block_bytes          blocks that hold them: what can be read at least
//     written_bytes_...         bytes that all ranks write in an iteration
//
// All forms compute the same plate, which is compared.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "measure/stopwatch.hpp"
#include "oocarray/mpi.hpp"
#include "oocarray/ooc_array.hpp"
#include "ranks/case.hpp"

namespace bench::ranks {
namespace {

using namespace ooc::literals;
using matrix = ooc::ooc_array<double, 2>;

constexpr std::size_t n = 2048;
constexpr std::uint64_t block = 64_KiB;  // four rows
constexpr unsigned warm = 2;             ///< iterations before those that count
constexpr unsigned counted = 4;          ///< an even number in all leaves the result in `a`

enum class form { sync, halo, invalidate };

struct outcome {
  ooc::runtime_stats moved;  ///< by all ranks in the counted iterations
  double seconds = 0;
  double sum = 0;  ///< of the plate
};

void make_visible(matrix& b, form f) {
  switch (f) {
    case form::sync: b.sync(); return;
    case form::halo: b.sync_halo(); return;
    case form::invalidate:
      b.writeback();
      MPI_Barrier(MPI_COMM_WORLD);
      b.invalidate();
  }
}

void sweep(const matrix& from, matrix& to, std::size_t first, std::size_t last) {
  for (std::size_t i = std::max<std::size_t>(first, 1); i < std::min(last, n - 1); ++i)
    for (std::size_t j = 1; j + 1 < n; ++j)
      to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
}

outcome iterate(ooc::runtime& rt, const ooc::store& store, const std::shared_ptr<ooc::process_group>& all, form f) {
  const ooc::array_options<double> o{.block = block, .replace = true, .group = all, .owner_computes = true};
  matrix a(rt, store, "a", ooc::create, {n, n}, o);
  matrix b(rt, store, "b", ooc::create, {n, n}, o);
  const auto [first, last] = a.local_rows();
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 0; j < n; ++j) a[i][j] = b[i][j] = static_cast<double>((i * 7 + j * 3) % 64);
  make_visible(a, f);
  make_visible(b, f);

  matrix *from = &a, *to = &b;
  const auto iterations = [&](unsigned count) {
    for (unsigned k = 0; k < count; ++k) {
      sweep(std::as_const(*from), *to, first, last);
      make_visible(*to, f);
      std::swap(from, to);
    }
  };
  iterations(warm);
  outcome r;
  const ooc::runtime_stats before = rt.stats(*all);
  r.seconds = seconds_of([&] { iterations(counted); });
  r.moved = rt.stats(*all);
  r.moved.bytes_read -= before.bytes_read;
  r.moved.bytes_written -= before.bytes_written;
  r.moved.bytes_reread -= before.bytes_reread;
  r.moved.bytes_invalidated -= before.bytes_invalidated;
  double part = 0;
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 0; j < n; ++j) part += std::as_const(*from)[i][j];
  MPI_Allreduce(&part, &r.sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  a.close();
  b.close();
  return r;
}

/// Foreign rows beside the part, and the blocks that hold them; of all ranks.
std::pair<std::uint64_t, std::uint64_t> halo(ooc::process_group& all, std::size_t first, std::size_t last) {
  constexpr std::uint64_t row = n * sizeof(double);
  std::vector<std::uint64_t> v{0, 0};
  const auto add = [&](std::size_t i) {
    v[0] += row;
    v[1] += ((i + 1) * row + block - 1) / block * block - i * row / block * block;
  };
  if (first < last && first > 0) add(first - 1);
  if (first < last && last < n) add(last);
  all.all_reduce("halo", v, ooc::reduction::sum);
  return {v[0], v[1]};
}

}  // namespace

json coherence(const options& o) {
  const auto all = ooc::mpi_group(MPI_COMM_WORLD);
  const std::uint64_t part = 2 * n * n * sizeof(double) / static_cast<std::uint64_t>(all->size());
  ooc::runtime rt({.memory = o.memory_or(part + part / 4 + 8_MiB)});
  const ooc::store_options small{.workers = 1};
  if (all->rank() != 0) MPI_Barrier(MPI_COMM_WORLD);  // until the store is made
  const ooc::store store = ooc::store::open(o.url, small);
  if (all->rank() == 0) MPI_Barrier(MPI_COMM_WORLD);

  const outcome sync = iterate(rt, store, all, form::sync);
  const outcome border = iterate(rt, store, all, form::halo);
  const outcome invalidate = iterate(rt, store, all, form::invalidate);
  if (sync.sum != invalidate.sum || border.sum != sync.sum)
    throw std::runtime_error("the forms do not come to the same plate");
  std::pair<std::size_t, std::size_t> rows;
  {
    const matrix a(rt, store, "a", ooc::open_read_only, {.block = block, .group = all});
    rows = a.local_rows();
  }
  const auto [halo_bytes, halo_block_bytes] = halo(*all, rows.first, rows.second);
  const auto per_iteration = [](std::uint64_t n_bytes) { return n_bytes / counted; };
  return {{"n", n},
          {"block", block},
          {"memory_per_rank", rt.memory()},
          {"array_bytes", n * n * sizeof(double)},
          {"reread_bytes_sync", per_iteration(sync.moved.bytes_read)},
          {"reread_bytes_halo", per_iteration(border.moved.bytes_read)},
          {"reread_bytes_invalidate", per_iteration(invalidate.moved.bytes_read)},
          {"halo_bytes", halo_bytes},
          {"halo_block_bytes", halo_block_bytes},
          {"reread_over_halo_blocks", static_cast<double>(per_iteration(sync.moved.bytes_read)) /
                                          static_cast<double>(std::max<std::uint64_t>(halo_block_bytes, 1))},
          {"invalidated_bytes_sync", per_iteration(sync.moved.bytes_invalidated)},
          {"written_bytes_sync", per_iteration(sync.moved.bytes_written)},
          {"written_bytes_halo", per_iteration(border.moved.bytes_written)},
          {"written_halo_over_sync", static_cast<double>(border.moved.bytes_written) /
                                         static_cast<double>(std::max<std::uint64_t>(sync.moved.bytes_written, 1))},
          {"seconds_sync", sync.seconds / counted},
          {"seconds_halo", border.seconds / counted},
          {"seconds_invalidate", invalidate.seconds / counted}};
}

}  // namespace bench::ranks
