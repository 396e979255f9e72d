#include "runtime/algorithm/sort_plan.hpp"

#include <algorithm>
#include <numeric>

namespace ooc::detail {
namespace {

constexpr std::uint64_t least_transfer = 4096;  // what nodes read and write at least
/// Runs shorter than this are sorted by fewer threads, and below the second not beside transfers.
constexpr std::uint64_t good_run_bytes = 1 << 20;
constexpr std::uint64_t least_run_bytes = 256 << 10;
constexpr std::uint64_t most_output_bytes = 8 << 20;
/// A transfer of a disk costs little more than its bytes from here on.
constexpr std::uint64_t good_piece_bytes = 128 << 10;
constexpr std::uint64_t most_piece_bytes = 16 << 20;

/// The least that a buffer holds.
std::uint64_t unit(const sort_facts& f) { return std::max<std::uint64_t>(least_transfer, f.element_size); }

/// At most `most`, but at least `least`.
std::uint64_t between(std::uint64_t least, std::uint64_t bytes, std::uint64_t most) {
  return std::max(least, std::min(bytes, most));
}

std::size_t rounded(std::uint64_t elements, std::size_t granule) {
  const std::uint64_t whole = elements / granule * granule;
  return static_cast<std::size_t>(whole != 0 ? whole : elements);
}

/// Memory in bytes for runs of `run` elements.
std::uint64_t bytes_of_slots(const sort_facts& f, std::uint64_t run, std::size_t slots, unsigned threads) {
  const std::uint64_t bytes = run * f.element_size;
  return bytes * slots + (f.scratch ? bytes * threads : 0);
}
std::uint64_t allocated(const sort_facts& f, std::uint64_t run, unsigned threads) {
  return f.allocates ? (run + 1) / 2 * f.element_size * threads : 0;
}

std::uint64_t power(std::uint64_t base, unsigned exponent) {
  std::uint64_t p = 1;
  for (unsigned k = 0; k < exponent; ++k) {
    if (p > UINT64_MAX / base) return UINT64_MAX;
    p *= base;
  }
  return p;
}

/// One part for each thread, all of them in memory.  False: there is no room.
bool plan_in_memory(const sort_facts& f, std::uint64_t memory, sort_plan& p) {
  const std::uint64_t bytes = f.elements * f.element_size;
  p.output =
      static_cast<std::size_t>(std::min(f.elements, between(unit(f), bytes / 16, most_output_bytes) / f.element_size));
  p.granule = chunk_granule(f.element_size, p.output / 2);
  p.output = rounded(p.output, p.granule);
  const std::uint64_t out = sort_plan::outputs * p.output * f.element_size;
  p.threads = static_cast<unsigned>(std::clamp<std::uint64_t>(bytes / (64 << 10), 1, f.threads));
  p.run = static_cast<std::size_t>((f.elements + p.threads - 1) / p.threads);
  p.lent_bytes = (f.scratch ? 2 : 1) * bytes + out;
  p.taken_bytes = p.lent_bytes + allocated(f, p.run, p.threads);
  p.in_memory = true;
  p.runs = (f.elements + p.run - 1) / p.run;
  p.fan_in = static_cast<std::size_t>(p.runs);
  return p.taken_bytes <= memory;
}

void plan_runs(const sort_facts& f, std::uint64_t memory, sort_plan& p) {
  const auto run_bytes = [&](std::size_t slots, unsigned threads) {
    // Twice, so that halves stay whole.
    const std::uint64_t shares = 2 * slots + (f.scratch ? 2 * threads : 0) + (f.allocates ? threads : 0);
    return memory * 2 / shares;
  };
  p.threads = f.threads;
  while (p.threads > 1 && run_bytes(p.threads + 2, p.threads) < good_run_bytes) --p.threads;
  p.slots = p.threads + 2;
  if (run_bytes(p.slots, p.threads) < least_run_bytes) p.slots = p.threads = 1;
  p.run = static_cast<std::size_t>(std::max<std::uint64_t>(1, run_bytes(p.slots, p.threads) / f.element_size));
  p.granule = chunk_granule(f.element_size, p.run / 4);
  p.run = rounded(p.run, p.granule);
  while (p.run > 1 && bytes_of_slots(f, p.run, p.slots, p.threads) + allocated(f, p.run, p.threads) > memory)
    p.run = rounded(p.run - 1, p.granule);
  if (p.run > f.elements)
    p.run = std::min(p.run, static_cast<std::size_t>((f.elements + p.granule - 1) / p.granule * p.granule));
  p.runs = (f.elements + p.run - 1) / p.run;
}

void plan_merges(const sort_facts& f, std::uint64_t memory, sort_plan& p) {
  const std::uint64_t least = std::max<std::uint64_t>(2, f.ranks);  // runs at once
  const std::uint64_t out_bytes =
      between(unit(f), std::min(memory / 16, (memory - 2 * least * unit(f)) / sort_plan::outputs), most_output_bytes);
  p.output = static_cast<std::size_t>(out_bytes / f.element_size);
  p.granule = std::min(p.granule, chunk_granule(f.element_size, p.output / 2));
  p.output = rounded(p.output, p.granule);
  const std::uint64_t inputs = memory - sort_plan::outputs * p.output * f.element_size;
  const std::uint64_t piece_bytes = between(unit(f), memory / 512, good_piece_bytes);
  const auto most = std::max(least, inputs / (2 * piece_bytes));
  // Each rank merges its own runs until the last merge has room for what is left of all.
  const auto fits_all = [&](std::uint64_t fan_in) {
    const std::uint64_t together = power(fan_in, p.merges - 1);
    return f.ranks * ((p.runs + together - 1) / together) <= fan_in;
  };
  for (p.merges = 1; !fits_all(most);) ++p.merges;
  for (p.fan_in = static_cast<std::size_t>(least); !fits_all(p.fan_in);) ++p.fan_in;
  p.piece = static_cast<std::size_t>(
      std::max<std::uint64_t>(1, std::min(most_piece_bytes, inputs / (2 * p.fan_in)) / f.element_size));
  p.piece = rounded(p.piece, chunk_granule(f.element_size, p.piece));
}

}  // namespace

std::size_t chunk_granule(std::size_t element_size, std::size_t most) {
  const std::size_t n = least_transfer / std::gcd(std::size_t{least_transfer}, element_size);
  return n <= most ? n : 1;
}

std::uint64_t least_sort_memory(const sort_facts& f) {
  // To merge two runs, or one of each rank: two buffers each, and those of the result.
  const std::uint64_t merging = (2 * std::max<std::uint64_t>(2, f.ranks) + sort_plan::outputs) * unit(f);
  sort_plan p;
  if (f.ranks == 1 && plan_in_memory(f, merging, p)) return p.taken_bytes;
  return merging;
}

sort_plan plan_sort(const sort_facts& f, std::uint64_t memory) {
  sort_plan p;
  if (f.ranks == 1 && plan_in_memory(f, memory, p)) return p;
  p = {};
  plan_runs(f, memory, p);
  plan_merges(f, memory, p);
  p.lent_bytes = std::max(bytes_of_slots(f, p.run, p.slots, p.threads),
                          (2 * p.fan_in * p.piece + sort_plan::outputs * p.output) * f.element_size);
  p.taken_bytes = std::max(p.lent_bytes, bytes_of_slots(f, p.run, p.slots, p.threads) + allocated(f, p.run, p.threads));
  return p;
}

}  // namespace ooc::detail
