#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <utility>

#include "measure/random_numbers.hpp"
#include "policy/access_trace.hpp"

namespace bench::policy {
namespace {

constexpr std::uint64_t grain = 4096;
constexpr std::uint32_t element = 8;

/// Collects touches; those of what was touched a moment ago only add to the time that the program has run.
class builder {
 public:
  explicit builder(std::string name, std::uint64_t budget) {
    t_.name = std::move(name);
    t_.budget = budget;
  }
  /// The number of a new array.
  std::uint16_t array(std::uint64_t bytes) {
    const std::uint64_t block = std::clamp<std::uint64_t>(t_.budget / 32 / grain * grain, grain, 2 << 20);
    t_.arrays.push_back({(bytes + block - 1) / block * block, block, true, element});
    return static_cast<std::uint16_t>(t_.arrays.size() - 1);
  }
  void touch(std::uint16_t array, std::uint64_t place, bool write = false, std::uint32_t work_ns = 1) {
    if (place >= t_.arrays.at(array).bytes) throw std::out_of_range(t_.name + ": a touch behind the array");
    work_ += work_ns;
    const seen now{array, write, place / t_.unit};
    if (std::find(lately_.begin(), lately_.end(), now) != lately_.end()) return;
    lately_[next_++ % lately_.size()] = now;
    t_.accesses.push_back({place, std::exchange(work_, 0), array, write});
  }
  /// A run of bytes, all of them.
  void sweep(std::uint16_t array, std::uint64_t from, std::uint64_t bytes, bool write = false) {
    constexpr std::uint32_t bytes_per_ns = 8;
    for (std::uint64_t at = from; at < from + bytes;) {
      const std::uint64_t n = std::min(from + bytes, (at / t_.unit + 1) * t_.unit) - at;
      touch(array, at, write, static_cast<std::uint32_t>(n / bytes_per_ns));
      at += n;
    }
  }
  access_trace done() { return std::move(t_); }
  access_trace& trace() { return t_; }

 private:
  struct seen {
    std::uint16_t array;
    bool write;
    std::uint64_t unit;
    bool operator==(const seen&) const = default;
  };

  access_trace t_;
  std::array<seen, 8> lately_{};
  unsigned next_ = 0;
  std::uint32_t work_ = 0;
};

/// Rank k of n with probability ~ 1 / k, nearly: the inverse of the integral.
std::uint64_t zipf(random_numbers& g, std::uint64_t n) {
  return std::min(n - 1, static_cast<std::uint64_t>(std::exp(g.unit() * std::log(static_cast<double>(n)))) - 1);
}

constexpr int random_touches = 200'000;

/// Columns of an n * n matrix, so many of them, down to the last row; each so many to the right of the one before.
access_trace columns(const char* name, std::uint64_t budget, std::uint64_t n, std::uint64_t count, bool write,
                     std::uint64_t step = 1) {
  builder b(name, budget);
  const auto a = b.array(n * n * element);
  for (std::uint64_t j = 0; j < std::min(count * step, n); j += step)
    for (std::uint64_t i = 0; i < n; ++i) {
      b.touch(a, (i * n + j) * element, false, 2);
      if (write) b.touch(a, (i * n + j) * element, true, 1);
    }
  return b.done();
}

access_trace jacobi_swapped(const char* name, std::uint64_t budget, std::uint64_t n, std::uint64_t count,
                            std::uint64_t step = 1) {
  builder t(name, budget);
  const auto a = t.array(n * n * element), b = t.array(n * n * element);
  for (std::uint64_t j = 1; j <= std::min(count * step, n - 2); j += step)
    for (std::uint64_t i = 1; i + 1 < n; ++i) {
      const std::uint64_t at = (i * n + j) * element, row = n * element;
      for (const std::uint64_t from : {at - row, at + row, at - element, at + element}) t.touch(a, from);
      t.touch(b, at, true, 2);
    }
  return t.done();
}

access_trace jacobi(std::uint64_t budget, std::uint64_t n) {
  builder t("jacobi", budget);
  const auto a = t.array(n * n * element), b = t.array(n * n * element);
  for (std::uint64_t i = 1; i + 1 < n; ++i)
    for (std::uint64_t j = 0; j < n; j += grain / element)
      for (const std::uint64_t row : {i - 1, i + 1, i, n})
        t.sweep(row == n ? b : a, ((row == n ? i : row) * n + j) * element, std::min(grain, (n - j) * element),
                row == n);
  return t.done();
}

access_trace again(const char* name, std::uint64_t budget, bool write) {
  builder t(name, budget);
  const auto a = t.array(budget * 8);
  for (int pass = 0; pass < 10; ++pass) t.sweep(a, 0, budget * 3 / 2, write);
  return t.done();
}

/// Somewhat more than the memory again and again, then something else that fits.
access_trace again_then_less(std::uint64_t budget) {
  builder t("sweep_again_then_less", budget);
  const auto a = t.array(budget * 8);
  for (int pass = 0; pass < 10; ++pass) t.sweep(a, 0, budget * 3 / 2);
  for (int pass = 0; pass < 30; ++pass) t.sweep(a, budget * 4, budget / 2);
  return t.done();
}

access_trace at_random(const char* name, std::uint64_t budget, bool write,
                       const std::function<std::uint64_t(random_numbers&, std::uint64_t)>& next) {
  builder t(name, budget);
  const std::uint64_t bytes = budget * 8;
  const auto a = t.array(bytes);
  random_numbers g(1);
  for (int k = 0; k < random_touches; ++k) {
    const std::uint64_t place = next(g, bytes / element) * element;
    t.touch(a, place, false, 5);
    if (write) t.touch(a, place, true, 1);
  }
  return t.done();
}

access_trace binary_search(std::uint64_t budget) {
  builder t("binary_search", budget);
  const std::uint64_t size = budget;  // elements
  const auto a = t.array(size * element);
  random_numbers g(4);
  for (int k = 0; k < random_touches / 10; ++k) {
    const std::uint64_t key = g.below(size);
    for (std::uint64_t first = 0, count = size; count > 0;) {
      const std::uint64_t half = count / 2;
      t.touch(a, (first + half) * element, false, 3);
      if (first + half < key) {
        first += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
  }
  return t.done();
}

access_trace tiles(std::uint64_t budget, std::uint64_t n) {
  builder t("tiles_row_major", budget);
  const auto a = t.array(n * n * element);
  const std::uint64_t side = std::min<std::uint64_t>(512, n);
  for (std::uint64_t tj = 0; tj + side <= n; tj += side)
    for (std::uint64_t i = 0; i < n; ++i) t.sweep(a, (i * n + tj) * element, side * element);
  return t.done();
}

/// A sweep over the first rows of a matrix, then every 512th column of the other rows, which are blocks: it goes on to
/// the next block with each touch, as before.
access_trace sweep_then_columns(std::uint64_t budget, std::uint64_t count) {
  builder t("sweep_then_columns", budget);
  const auto a = t.array(budget * 8);
  const array_shape shape = t.trace().arrays[a];
  const std::uint64_t swept = shape.bytes / 4;
  t.sweep(a, 0, swept);
  for (std::uint64_t j = 0; j < std::min(count, shape.block_bytes / grain); ++j)
    for (std::uint64_t row = swept; row < shape.bytes; row += shape.block_bytes) t.touch(a, row + j * grain, false, 2);
  return t.done();
}

/// Fills a panel, and then adds to it.
access_trace panel_again(std::uint64_t budget) {
  builder t("panel_again", budget);
  const std::uint64_t panel = budget / 4;
  const auto a = t.array(budget * 8);
  for (std::uint64_t at = 0; at < budget * 8; at += panel)
    for (int pass = 0; pass < 3; ++pass) t.sweep(a, at, panel, true);
  return t.done();
}

/// A walk down columns that looks 320 columns back, so that of each row it comes to two grains; the rest of memory goes
/// to a sweep beside it.
access_trace columns_looking_back(std::uint64_t budget, std::uint64_t n) {
  builder t("column_looking_back", budget);
  const std::uint64_t rows = n / 2, back = 320, step = 16, count = 96, beside = budget * 8 / count;
  const auto a = t.array(n * n * element), b = t.array(budget * 8);
  for (std::uint64_t j = 0; j < count && back + j * step < n; ++j) {
    for (std::uint64_t i = 0; i < rows; ++i) {
      t.touch(a, (i * n + back + j * step) * element, false, 2);
      t.touch(a, (i * n + j * step) * element, false, 2);
    }
    t.sweep(b, j * beside, beside);
  }
  return t.done();
}

access_trace transpose(std::uint64_t budget, std::uint64_t n, std::uint64_t rows) {
  builder t("transpose_naive", budget);
  const auto a = t.array(n * n * element), b = t.array(n * n * element);
  for (std::uint64_t i = 0; i < rows; ++i)
    for (std::uint64_t j = 0; j < n; ++j) {
      t.touch(a, (i * n + j) * element);
      t.touch(b, (j * n + i) * element, true);
    }
  return t.done();
}

access_trace gather(std::uint64_t budget) {
  builder t("gather", budget);
  const auto indices = t.array(std::uint64_t{random_touches} * element), a = t.array(budget * 8);
  random_numbers g(5);
  for (std::uint64_t k = 0; k < random_touches; ++k) {
    t.touch(indices, k * element);
    t.touch(a, g.below(budget) * element, false, 3);
  }
  return t.done();
}

// --- the traces of `lru`: blocks that come whole

constexpr std::uint64_t block_bytes = 64 << 10;
constexpr std::uint64_t frames = 256;

using sink = std::function<void(std::uint64_t)>;

access_trace of_blocks(const char* name, double times, const std::function<void(std::uint32_t, const sink&)>& make) {
  const auto blocks = static_cast<std::uint32_t>(times * static_cast<double>(frames));
  builder b(name, frames * block_bytes);
  access_trace& t = b.trace();
  t.unit = block_bytes;
  t.arrays.push_back({blocks * block_bytes, block_bytes, false, element});
  make(blocks, [&](std::uint64_t block) { b.touch(0, block * block_bytes, false, 100'000); });
  return b.done();
}

void lru_traces(std::vector<access_trace>& all) {
  all.push_back(of_blocks("blocks_jacobi", 2, [](std::uint32_t n, const sink& touch) {
    const std::uint32_t half = n / 2, rows = 4;
    for (std::uint32_t sweep = 0; sweep < 6; ++sweep) {
      const std::uint32_t a = sweep % 2 ? half : 0, b = half - a;
      for (std::uint32_t i = 1; i + 1 < half * rows; ++i)
        for (const std::uint32_t at : {a + (i - 1) / rows, a + (i + 1) / rows, a + i / rows, b + i / rows}) touch(at);
    }
  }));
  all.push_back(of_blocks("blocks_gauss_seidel", 2, [](std::uint32_t n, const sink& touch) {
    const std::uint32_t vector = n / 16;
    for (int sweep = 0; sweep < 4; ++sweep)
      for (std::uint32_t m = vector; m < n; ++m) {
        touch(m);
        for (std::uint32_t x = 0; x < vector; ++x) touch(x);
      }
  }));
  all.push_back(of_blocks("blocks_sweep_again", 1.25, [](std::uint32_t n, const sink& touch) {
    for (int pass = 0; pass < 40; ++pass)
      for (std::uint32_t b = 0; b < n; ++b) touch(b);
  }));
  all.push_back(of_blocks("blocks_zipf", 8, [](std::uint32_t n, const sink& touch) {
    random_numbers g(1);
    for (int k = 0; k < 40'000; ++k) touch(zipf(g, n) * 7919 % n);
  }));
  all.push_back(of_blocks("blocks_random", 2, [](std::uint32_t n, const sink& touch) {
    random_numbers g(1);
    for (int k = 0; k < 40'000; ++k) touch(g.below(n));
  }));
}

}  // namespace

std::vector<access_trace> generated_traces(std::uint64_t budget) {
  const auto n = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(budget))) / 64 * 64;
  const auto half = static_cast<std::uint64_t>(static_cast<double>(n) * std::sqrt(0.5)) / 2 * 2;
  std::vector<access_trace> all;
  builder once("sweep", budget);
  once.sweep(once.array(budget * 8), 0, budget * 8);
  all.push_back(once.done());
  all.push_back(again("sweep_again", budget, false));
  all.push_back(again("update_again", budget, true));
  all.push_back(again_then_less(budget));
  all.push_back(columns("column_read", budget, n, 48, false));
  all.push_back(columns("column_staggered", budget, n - n / 40, 48, false));
  all.push_back(columns("column_update", budget, n, 48, true));
  all.push_back(columns("column_read_on", budget, n, 96, false, 32));
  all.push_back(columns("column_update_on", budget, n, 96, true, 32));
  all.push_back(columns("column_staggered_on", budget, n - n / 40, 96, true, 32));
  all.push_back(sweep_then_columns(budget, 40));
  all.push_back(columns_looking_back(budget, n));
  all.push_back(panel_again(budget));
  const auto anywhere = [](random_numbers& g, std::uint64_t elements) { return g.below(elements); };
  all.push_back(at_random("random_read", budget, false, anywhere));
  all.push_back(at_random("random_update", budget, true, anywhere));
  all.push_back(at_random("zipf_read", budget, false, [](random_numbers& g, std::uint64_t size) {
    const std::uint64_t step = 0x9e3779b97f4a7c15u % size | 1;  // ranks that follow each other lie apart
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(zipf(g, size)) * step % size);
  }));
  all.push_back(binary_search(budget));
  all.push_back(tiles(budget, n));
  all.push_back(jacobi(budget, n / 2));
  all.push_back(jacobi_swapped("jacobi_swapped", budget, half, 40));
  all.push_back(jacobi_swapped("jacobi_swapped_on", budget, half, 40, 64));
  all.push_back(jacobi_swapped("jacobi_swapped_large", budget, n, 40));
  all.push_back(jacobi_swapped("jacobi_swapped_staggered", budget, n - n / 80, 40));
  all.push_back(transpose(budget, n, 48));
  all.push_back(gather(budget));
  lru_traces(all);
  return all;
}

}  // namespace bench::policy
