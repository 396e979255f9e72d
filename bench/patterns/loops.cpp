#include "patterns/loops.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "measure/random_numbers.hpp"

namespace bench::patterns {
namespace {

void check(double wrong) {
  if (wrong != 0) throw std::runtime_error("patterns: an element is not what was written");
}

/// Ranks 1 to n, rank k as often as k^-s says, by rejection from the inverse of the integral (Hörmann
/// and Derflinger 1996): no table as long as the array.
class zipf {
 public:
  zipf(std::uint64_t n, double s) : n_(n), s_(s) {
    low_ = integral(1.5) - 1;
    high_ = integral(static_cast<double>(n) + 0.5);
    near_ = 2 - inverse(integral(2.5) - std::pow(2.0, -s));
  }
  std::uint64_t operator()(random_numbers& g) const {
    for (;;) {
      const double u = high_ + g.unit() * (low_ - high_);
      const double x = inverse(u);
      const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
      if (k - x <= near_ || u >= integral(k + 0.5) - std::pow(k, -s_)) return static_cast<std::uint64_t>(k);
    }
  }

 private:
  double integral(double x) const { return std::expm1((1 - s_) * std::log(x)) / (1 - s_); }
  double inverse(double y) const { return std::exp(std::log1p(y * (1 - s_)) / (1 - s_)); }
  std::uint64_t n_;
  double s_, low_ = 0, high_ = 0, near_ = 0;
};

/// Zipf 0.99: rank k is the element k * step, so that no two ranks lie together.
class zipf_elements {
 public:
  explicit zipf_elements(std::size_t size) : size_(size), ranks_(size, 0.99), step_(0x9e3779b97f4a7c15u % size | 1) {
    while (std::gcd(step_, size) != 1) step_ += 2;
  }
  std::size_t operator()(random_numbers& g) const {
    return static_cast<std::size_t>(static_cast<unsigned __int128>(ranks_(g)) * step_ % size_);
  }

 private:
  std::size_t size_;
  zipf ranks_;
  std::uint64_t step_;
};

double read_some(const double* a, std::size_t size, std::uint64_t seed, const time_limit& t) {
  random_numbers g(seed);
  double done = 0, wrong = 0;
  for (; !t.over(); ++done) {
    const std::size_t at = g.below(size);
    wrong += std::abs(a[at] - static_cast<double>(at));
  }
  check(wrong);
  return done;
}

}  // namespace

std::uint32_t graph::target(std::uint64_t edge, std::uint32_t vertices) {
  return static_cast<std::uint32_t>(random_numbers(edge * 0x2545f4914f6cdd1du).below(vertices));
}

std::vector<std::size_t> random_elements(std::size_t count, std::size_t of) {
  random_numbers g(5);
  std::vector<std::size_t> all(count);
  for (std::size_t& i : all) i = g.below(of);
  return all;
}

double random_read(const matrices& m, const time_limit& t) { return read_some(m.a, m.n * m.n, 1, t); }

double random_read_16(const matrices& m, const time_limit& t) {
  std::vector<std::thread> all;
  std::vector<double> done(16, -1);
  for (std::size_t k = 0; k < done.size(); ++k)
    all.emplace_back([&, k] {
      try {
        done[k] = read_some(m.a, m.n * m.n, 100 + k, t);
      } catch (const std::exception&) {  // done[k] stays
      }
    });
  for (std::thread& one : all) one.join();
  for (const double d : done) check(d < 0);
  return std::accumulate(done.begin(), done.end(), 0.0);
}

double zipf_read(const matrices& m, const time_limit& t) {
  const zipf_elements elements(m.n * m.n);
  random_numbers g(2);
  double done = 0, wrong = 0;
  for (; !t.over(); ++done) {
    const std::size_t at = elements(g);
    wrong += std::abs(m.a[at] - static_cast<double>(at));
  }
  check(wrong);
  return done;
}

double zipf_update(const matrices& m, const time_limit& t) {
  const zipf_elements elements(m.n * m.n);
  random_numbers g(2);
  double done = 0;
  for (; !t.over(); ++done) m.b[elements(g)] += 1;
  return done;
}

double random_update(const matrices& m, const time_limit& t) {
  random_numbers g(3);
  double done = 0;
  for (; !t.over(); ++done) m.b[g.below(m.n * m.n)] += 1;
  return done;
}

double gather(const matrices& m, const std::vector<std::size_t>& indices, std::vector<double>& out,
              const time_limit& t) {
  std::size_t done = 0;
  for (; done < indices.size() && !(done % 16 == 0 && t.over()); ++done) out[done] = m.a[indices[done]];
  check_gathered(indices, out, done);
  return static_cast<double>(done);
}

void check_gathered(const std::vector<std::size_t>& indices, const std::vector<double>& out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) check(out[i] != static_cast<double>(indices[i]));
}

double column_read(const matrices& m, const time_limit& t) {
  double done = 0, wrong = 0;
  for (std::size_t j = 0; j < m.n; ++j)
    for (std::size_t i = 0; i < m.n; ++i, ++done) {
      if (i % 16 == 0 && t.over()) return check(wrong), done;
      wrong += std::abs(m.a[i * m.n + j] - static_cast<double>(i * m.n + j));
    }
  check(wrong);
  return done;
}

double column_update(const matrices& m, const time_limit& t) {
  double done = 0;
  for (std::size_t j = 0; j < m.n; ++j)
    for (std::size_t i = 0; i < m.n; ++i, ++done) {
      if (i % 16 == 0 && t.over()) return done;
      m.b[i * m.n + j] += 1;
    }
  return done;
}

double jacobi(const matrices& m, const time_limit& t) {
  const std::size_t n = m.n;
  double done = 0;
  for (std::size_t i = 1; i + 1 < n && !t.over(); ++i, done += static_cast<double>(n - 2))
    for (std::size_t j = 1; j + 1 < n; ++j)
      m.b[i * n + j] = 0.25 * (m.a[(i - 1) * n + j] + m.a[(i + 1) * n + j] + m.a[i * n + j - 1] + m.a[i * n + j + 1]);
  return done;
}

double jacobi_swapped(const matrices& m, const time_limit& t) {
  const std::size_t n = m.n;
  double done = 0;
  for (int sweep = 0; sweep < 2; ++sweep) {
    double* const from = sweep == 0 ? m.a : m.b;
    double* const to = sweep == 0 ? m.b : m.a;
    for (std::size_t j = 1; j + 1 < n; ++j)
      for (std::size_t i = 1; i + 1 < n; ++i, ++done) {
        if (i % 16 == 0 && t.over()) return done;
        to[i * n + j] =
            0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] + from[i * n + j - 1] + from[i * n + j + 1]);
      }
  }
  return done;
}

double sweep_again(const matrices& m, const time_limit& t) {
  const std::size_t size = m.n * m.n * 3 / 16;
  double done = 0, wrong = 0;
  while (!t.over())
    for (std::size_t i = 0; i < size && !t.over(); i += m.n, done += static_cast<double>(m.n))
      for (std::size_t k = i; k < i + m.n; ++k) wrong += std::abs(m.a[k] - static_cast<double>(k));
  check(wrong);
  return done;
}

double update_again(const matrices& m, const time_limit& t) {
  const std::size_t size = m.n * m.n * 3 / 16;
  double done = 0;
  while (!t.over())
    for (std::size_t i = 0; i < size && !t.over(); i += m.n, done += static_cast<double>(m.n))
      for (std::size_t k = i; k < i + m.n; ++k) m.b[k] += 1;
  return done;
}

double transpose_naive(const matrices& m, const time_limit& t) {
  double done = 0;
  for (std::size_t i = 0; i < m.n; ++i)
    for (std::size_t j = 0; j < m.n; ++j, ++done) {
      if (j % 16 == 0 && t.over()) return done;
      m.b[j * m.n + i] = m.a[i * m.n + j];
    }
  return done;
}

double tiles_row_major(const matrices& m, const time_limit& t) {
  const std::size_t side = std::min<std::size_t>(512, m.n);
  double done = 0, wrong = 0;
  for (std::size_t tj = 0; tj < m.n; tj += side)
    for (std::size_t ti = 0; ti < m.n; ti += side)
      for (std::size_t i = ti; i < std::min(ti + side, m.n); ++i) {
        if (t.over()) return check(wrong), done;
        const std::size_t end = std::min(tj + side, m.n);
        for (std::size_t j = tj; j < end; ++j) wrong += std::abs(m.a[i * m.n + j] - static_cast<double>(i * m.n + j));
        done += static_cast<double>(end - tj);
      }
  check(wrong);
  return done;
}

double binary_search(const matrices& m, const time_limit& t) {
  random_numbers g(4);
  const std::size_t size = m.n * m.n;
  double done = 0, wrong = 0;
  for (; done < 1e5 && !t.over(); ++done) {
    const auto key = static_cast<double>(g.below(size));
    wrong += std::abs(*std::lower_bound(m.a, m.a + size, key) - key);
  }
  check(wrong);
  return done;
}

double breadth_first(const graph& g, const time_limit& t) {
  double done = 0;
  std::uint32_t found = 1;
  g.distance[0] = 0;
  g.queue[0] = 0;
  for (std::uint32_t next = 0; next < found && !t.over(); ++next) {
    const std::uint32_t v = g.queue[next];
    const std::uint32_t end = g.offsets[v + 1];
    const std::uint32_t beyond = g.distance[v] + 1;
    for (std::uint32_t e = g.offsets[v]; e < end; ++e, ++done) {
      const std::uint32_t to = g.edges[e];
      if (g.distance[to] != graph::unseen) continue;
      g.distance[to] = beyond;
      g.queue[found++] = to;
    }
  }
  return done;
}

}  // namespace bench::patterns
