// Fourier transforms: those of the definition, in long double, whatever the length, type, memory and threads.

#include "oocarray/algorithm/fft.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <complex>
#include <numbers>

#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

using exact = std::complex<long double>;

/// exp(sign 2 pi i k / n), by the arithmetic of long double.
std::vector<exact> roots(std::size_t n, int sign) {
  std::vector<exact> w(n);
  for (std::size_t k = 0; k < n; ++k)
    w[k] = std::polar(1.0L, static_cast<long double>(sign) * 2 * std::numbers::pi_v<long double> *
                                static_cast<long double>(k) / static_cast<long double>(n));
  return w;
}

/// Every `step`th of x from `first` on, `n` of them, by their least factor.
std::vector<exact> transformed(const std::vector<exact>& x, std::size_t first, std::size_t step, std::size_t n,
                               const std::vector<exact>& w) {
  if (n == 1) return {x[first]};
  std::size_t p = 2;
  while (n % p != 0) ++p;
  std::vector<std::vector<exact>> parts;
  for (std::size_t r = 0; r < p; ++r) parts.push_back(transformed(x, first + r * step, step * p, n / p, w));
  std::vector<exact> y(n);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t r = 0; r < p; ++r) y[k] += w[r * k % n * step] * parts[r][k % (n / p)];
  return y;
}
std::vector<exact> transformed(const std::vector<exact>& x, int sign) {
  return transformed(x, 0, 1, x.size(), roots(x.size(), sign));
}

template <class Given>
Given random_value(std::mt19937_64& g) {
  std::uniform_real_distribution<double> d(-1, 1);
  if constexpr (std::floating_point<Given>)
    return static_cast<Given>(d(g));
  else
    return {static_cast<typename Given::value_type>(d(g)), static_cast<typename Given::value_type>(d(g))};
}

template <class Given>
ooc_array<Given, 1> stored(runtime& rt, const test_store& s, const char* name, const std::vector<Given>& values) {
  ooc_array<Given, 1> a{rt, s.handle(), name, create, {values.size()}, {.block = 4_KiB, .replace = true}};
  a.write_all({{0}, {values.size()}}, values);
  return a;
}

template <class T>
std::vector<std::complex<T>> all_of(const ooc_array<std::complex<T>, 1>& a) {
  std::vector<std::complex<T>> values(a.size());
  a.read_all({{0}, {a.size()}}, std::span(values));
  return values;
}

/// The largest difference, in units of the result's root of the mean square.
template <class T>
long double error_of(const std::vector<std::complex<T>>& found, const std::vector<exact>& wanted, long double scale) {
  long double largest = 0, squares = 0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    largest = std::max(largest, std::abs(exact(found[k]) - scale * wanted[k]));
    squares += std::norm(scale * wanted[k]);
  }
  return largest / std::sqrt(squares / static_cast<long double>(found.size()));
}

/// What makes up lengths: small and large factors.
std::size_t random_length(std::mt19937_64& g) {
  static constexpr std::size_t primes[] = {2, 2, 2, 2, 3, 3, 5, 7, 11, 61, 67, 97, 211};
  std::size_t n = 1;
  const std::size_t most = between(g, 1, 60000);
  for (;;) {
    const std::size_t p = primes[between(g, 0, std::size(primes) - 1)];
    if (n * p > most) return n;
    n *= p;
  }
}

template <class Given, class T>
void transform_at_random(std::mt19937_64& g) {
  using complex = std::complex<T>;
  const std::size_t n = random_length(g);
  std::vector<Given> x(n);
  for (Given& v : x) v = random_value<Given>(g);
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + between(g, 150_KiB, 4_MiB)));
  auto from = stored(rt, nodes, "x", x);
  ooc_array<complex, 1> to{rt, nodes.handle(), "y", create, {n}, {.block = 4_KiB}};
  const bool inverse = between(g, 0, 1) == 0;
  pass_options o{.threads = static_cast<unsigned>(between(g, 1, 4))};
  CAPTURE(n, inverse, o.threads);
  const auto run = [&] { return inverse ? ifft(from, to, o) : fft(from, to, o); };
  pass_statistics done;
  try {
    done = run();
  } catch (const usage_error& e) {  // a length of two large factors
    REQUIRE(e.code() == errc::budget_too_small);
    return;
  }
  CHECK(done.bytes_read + done.bytes_written == n * (sizeof(Given) + sizeof(complex) * (done.passes == 1 ? 1 : 3)));
  const std::vector<exact> wanted = transformed({x.begin(), x.end()}, inverse ? 1 : -1);
  const long double scale = inverse ? 1.0L / static_cast<long double>(n) : 1;
  const long double limit = (sizeof(T) == 4 ? 1e-6L : 2e-15L) * (4 + std::log2(static_cast<long double>(n)));
  CHECK(error_of(all_of(to), wanted, scale) < limit);
  CHECK(nodes.handle().list("").size() == 2);  // nothing temporary
  if constexpr (std::same_as<Given, complex>) {
    inverse ? ifft(from, o) : fft(from, o);
    CHECK(all_of(from) == all_of(to));
  } else {
    std::vector<Given> kept(n);
    from.read_all({{0}, {n}}, std::span(kept));
    CHECK(kept == x);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("a transform is that of the definition", "", float, double) {
  using T = TestType;
  std::mt19937_64 g(random_seed("Fourier transforms"));
  for (int round = 0; round < rounds(30, 200); ++round) {
    transform_at_random<std::complex<T>, T>(g);
    transform_at_random<T, T>(g);
  }
}

TEST_CASE("a transform of a vector that memory has no room for takes two passes") {
  std::mt19937_64 g(random_seed("large Fourier transforms"));
  const test_store nodes(store_kind::local);
  const std::size_t n = 3 << 17;  // 6 MiB
  std::vector<std::complex<double>> x(n);
  for (auto& v : x) v = random_value<std::complex<double>>(g);
  runtime rt(memory(nodes.staging() + 1_MiB, 1));  // without read-ahead, bytes are exact
  const auto from = stored(rt, nodes, "x", x);
  ooc_array<std::complex<double>, 1> y{rt, nodes.handle(), "y", create, {n}, {.block = 64_KiB}};
  const io_stats before = nodes.handle().stats();
  const pass_statistics planned = fft(from, y, {.plan = true}), done = fft(from, y);
  const io_stats moved = nodes.handle().stats() - before;
  CHECK(done.passes == 2);
  CHECK(done.over_bound() == 1);
  CHECK(done.memory == planned.memory);
  CHECK(done.bytes_read == planned.bytes_read);
  CHECK(done.bytes_written == planned.bytes_written);
  CHECK(moved.bytes_read == done.bytes_read);
  CHECK(moved.bytes_written == done.bytes_written);
  CHECK(done.bytes_read + done.bytes_written == 4 * n * sizeof x[0]);
  ifft(y);
  const std::vector<std::complex<double>> back = all_of(y);
  double largest = 0;
  for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, std::abs(back[k] - x[k]));
  CHECK(largest < 1e-14);
}

TEST_CASE("a vector without elements, and one of one, have their transforms") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  auto none = stored<std::complex<float>>(rt, nodes, "none", {}),
       one = stored<std::complex<float>>(rt, nodes, "one", {{3, 4}});
  CHECK(fft(none).passes == 0);
  fft(one);
  CHECK(all_of(one) == std::vector<std::complex<float>>{{3, 4}});
}

TEST_CASE("what cannot be transformed is refused, with the remedy") {
  std::mt19937_64 g(random_seed("refused Fourier transforms"));
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  const std::size_t prime = 65537;
  ooc_array<double, 1> x{rt, nodes.handle(), "x", create, {prime}, {.block = 4_KiB}};
  ooc_array<std::complex<double>, 1> y{rt, nodes.handle(), "y", create, {prime}, {.block = 4_KiB}},
      z{rt, nodes.handle(), "z", create, {prime - 1}, {.block = 4_KiB}};
  CHECK_THROWS_WITH(fft(x, z), Catch::Contains("'x' has 65537 elements, and 'z', for the result, 65536"));
  CHECK_THROWS_WITH(fft(x, y),
                    Catch::Contains("Fourier transform of 'x' to 'y'") && Catch::Contains("give the runtime"));
  CHECK_THROWS_WITH(ifft(x, y, {.plan = true}),
                    Catch::Contains("inverse Fourier transform") && Catch::Contains("more memory"));
  ooc_array<double, 1> given{rt, nodes.handle(), "given", create, {prime - 1}, {.block = 4_KiB}};
  {
    const auto pinned = z.pin({{0}, {10}}, access_mode::read);
    CHECK_THROWS_WITH(fft(given, z), Catch::Contains("pinned"));
  }
  CHECK_NOTHROW(fft(given, z));
}

TEST_CASE("a vector whose length is a prime number is transformed where memory has room for it") {
  std::mt19937_64 g(random_seed("prime Fourier transforms"));
  const test_store nodes(store_kind::in_memory);
  std::vector<double> x(10007);
  for (auto& v : x) v = random_value<double>(g);
  runtime rt(memory(nodes.staging() + 6_MiB));
  const auto from = stored(rt, nodes, "x", x);
  ooc_array<std::complex<double>, 1> y{rt, nodes.handle(), "y", create, {x.size()}, {.block = 4_KiB}};
  CHECK(fft(from, y).passes == 1);
  CHECK(error_of(all_of(y), transformed({x.begin(), x.end()}, -1), 1) < 1e-13L);
}

TEST_CASE("a transform that is stopped in its first pass leaves its vector as it was") {
  std::mt19937_64 g(random_seed("stopped Fourier transforms"));
  const test_store nodes(store_kind::in_memory);
  std::vector<std::complex<double>> x(1 << 16);
  for (auto& v : x) v = random_value<std::complex<double>>(g);
  runtime rt(memory(nodes.staging() + 500_KiB));
  auto a = stored(rt, nodes, "a", x);
  int calls = 0;
  CHECK_THROWS_AS(fft(a, {.progress = [&](const pass_progress& p) { return ++calls < 3 || p.part() > 0.4; }}), error);
  CHECK(calls == 3);
  CHECK(all_of(a) == x);
  CHECK_THROWS_AS(fft(a, {.progress = [&](const pass_progress& p) { return p.part() < 0.7; }}), error);
  auto small = stored(rt, nodes, "small", std::vector<std::complex<double>>(x.begin(), x.begin() + 1000));
  CHECK_THROWS_AS(fft(small, {.progress = [](const pass_progress&) { return false; }}), error);
  small.close();
  ooc_array<std::complex<double>, 1> again{rt, nodes.handle(), "small", ooc::open};  // it has no mark
  CHECK(std::as_const(again)[999] == x[999]);
  a.close();
  CHECK_THROWS_WITH((ooc_array<std::complex<double>, 1>{rt, nodes.handle(), "a", ooc::open}),
                    Catch::Contains("Fourier transform"));
}

namespace {

/// Counts the lines that are transformed with memory of their own at once; transforms nothing.
class counting_kernel final : public detail::line_kernel {
 public:
  std::size_t element_size() const noexcept override { return sizeof(std::complex<double>); }
  std::size_t given_size() const noexcept override { return element_size(); }
  void widen(std::byte*, std::size_t) const override {}
  void prepare(std::uint64_t) override {}
  void turn(std::byte*, std::size_t, std::uint64_t) const override {}
  std::unique_ptr<detail::line_transform> transform(std::size_t) const override {
    return std::make_unique<line>(there_, most_);
  }
  std::uint64_t transform_bytes(std::size_t) const override { return 4_KiB; }
  std::uint64_t prepared_bytes(std::uint64_t) const override { return 0; }
  unsigned most() const noexcept { return most_; }

 private:
  struct line final : detail::line_transform {
    line(std::atomic<unsigned>& there, std::atomic<unsigned>& most) : there_(there) {
      for (unsigned now = ++there_, before = most; now > before && !most.compare_exchange_weak(before, now);) {
      }
    }
    ~line() override { --there_; }
    void run(std::byte*) override {}
    std::atomic<unsigned>& there_;
  };
  mutable std::atomic<unsigned> there_{0}, most_{0};
};

}  // namespace

TEST_CASE("each thread has memory for lines of one length at a time, as the plan counts it") {
  for (const std::uint64_t spare : {8_MiB, 1_MiB})  // in memory, and in two passes
    for (const unsigned threads : {1U, 3U}) {
      const test_store nodes(store_kind::in_memory);
      runtime rt(memory(nodes.staging() + spare));
      ooc_array<std::complex<double>, 1> x{rt, nodes.handle(), "x", create, {1 << 17}, {.block = 4_KiB}};
      counting_kernel kernel;
      const pass_statistics done = detail::run_fft("transform", x.core(), x.core(), kernel, {.threads = threads});
      CHECK(done.passes == (spare == 8_MiB ? 1 : 2));
      CHECK(kernel.most() <= threads);
    }
}
