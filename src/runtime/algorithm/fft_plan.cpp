#include "runtime/algorithm/fft_plan.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "storage/base/page.hpp"

namespace ooc::detail {
namespace {

/// f(rows, columns), for all that make up the vector.
template <class F>
void for_each_shape(std::uint64_t elements, F f) {
  for (std::uint64_t k = 1; k <= elements / k; ++k) {
    if (elements % k != 0) continue;
    f(k, elements / k);
    if (k != elements / k) f(elements / k, k);
  }
}

std::uint64_t line_bytes(const fft_facts& f, std::uint64_t rows, std::uint64_t columns) {
  return std::max(f.line_bytes(rows, columns), f.line_bytes(columns, rows));
}

/// Lines of one band, of which memory has room for so many: a piece has whole chunks of 4 KiB, or is part of one.
std::uint64_t lines_of_band(std::uint64_t room, std::uint64_t all, std::size_t element_size) {
  if (room >= all) return all;
  const std::uint64_t of_chunk = std::max<std::uint64_t>(4096 / element_size, 1);
  return room >= of_chunk ? room / of_chunk * of_chunk : std::bit_floor(room);
}

}  // namespace

fft_plan plan_fft(const fft_facts& f, std::uint64_t memory_bytes) {
  fft_plan best;
  double least = std::numeric_limits<double>::infinity();
  for_each_shape(f.elements, [&](std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t lines = line_bytes(f, rows, columns), all = in_whole_pages(f.elements * f.element_size);
    fft_plan p{rows, columns, columns, rows, true, all, lines};
    // Of its memory a piece at most as long as a chunk needs a chunk, and where it is written, once more.
    double cost = 0;
    if (p.bytes() > memory_bytes) {
      p.in_memory = false;
      if (memory_bytes < lines + p.buffers() * page_bytes) return;
      p.buffer_bytes = (memory_bytes - lines) / p.buffers() / page_bytes * page_bytes;
      const std::uint64_t room = p.buffer_bytes / f.element_size;
      p.columns_of_band = lines_of_band(room / rows, columns, f.element_size);
      p.rows_of_band = lines_of_band(room / columns, rows, f.element_size);
      if (p.columns_of_band == 0 || p.rows_of_band == 0) return;
      cost = 1.0 / static_cast<double>(p.columns_of_band) + 2.0 / static_cast<double>(p.rows_of_band);
    } else {
      cost = -1.0 / static_cast<double>(std::max(rows, columns));  // many short lines, for all threads
    }
    if (cost >= least) return;
    least = cost;
    best = p;
  });
  return best;
}

std::uint64_t least_fft_memory(const fft_facts& f) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for_each_shape(f.elements, [&](std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t lines = line_bytes(f, rows, columns);
    const std::uint64_t in_pieces = 3 * in_whole_pages(std::max(rows, columns) * f.element_size);
    least = std::min(least, lines + std::min(in_pieces, 2 * in_whole_pages(f.elements * f.element_size)));
  });
  return least;
}

}  // namespace ooc::detail
