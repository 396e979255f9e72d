// Random programs of algorithms: each algorithm is repeated on plain vectors, and after each of them all arrays hold
// what the vectors do, bit by bit.
//
// All elements are whole numbers below 65537, so sums and products are exact in any order.  Budgets begin with the
// least that the arrays can be opened with.  An algorithm that refuses for want of memory has changed nothing, and
// says how many bytes more would do: with these it runs.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/multiply.hpp"
#include "oocarray/algorithm/sort.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "oocarray/error.hpp"
#include "support/random_boxes.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

double folded(double x) { return std::fmod(x, 65537); }
double mixed(double x, double y) { return folded(3 * x + y + 1); }

/// The bytes that a refusal says are missing; 0 where it names none.
std::uint64_t missing(const std::string& refusal) {
  const std::string before = "give the runtime ";
  const auto at = refusal.find(before);
  return at == std::string::npos ? 0 : std::stoull(refusal.substr(at + before.size()));
}

/// Three arrays of one shape, in a store on two folders, and what they should hold.
template <std::size_t N, class A, class B, class C>
class random_algorithms {
 public:
  explicit random_algorithms(std::mt19937_64& g) : g_(g), extents_(shape()), budget_(4_KiB * between(g, 0, 8)) {
    options_ = {random_order<double, N, A>(g), random_order<double, N, B>(g), random_order<double, N, C>(g)};
    for (auto& o : options_) {
      if (between(g, 0, 5) == 0) o.block = 64_KiB;
      o.stripes = {.sn = 0, .nn = static_cast<std::uint32_t>(between(g, 1, 2)), .sf = 4_KiB * between(g, 1, 4)};
    }
    open();
    for (auto& m : model_) {
      m.resize(size());
      for (double& x : m) x = static_cast<double>(between(g_, 0, between(g_, 0, 1) ? 65536 : 9));
    }
    put<0>(), put<1>(), put<2>();
  }

  void run(int algorithms) {
    check("after they were made");
    while (algorithms-- > 0) {
      touch();
      one();
      if (between(g_, 0, 4) == 0) open();
      check(what_);
    }
  }

 private:
  using arrays = std::tuple<ooc_array<double, N, A>, ooc_array<double, N, B>, ooc_array<double, N, C>>;

  coordinates<N> shape() {
    coordinates<N> e = random_extents<N>(g_, 3000);
    if (N == 2 && between(g_, 0, 1)) e.fill(between(g_, 1, 62));  // for products and transpositions in place
    return e;
  }
  std::size_t size() const { return box<N>{{}, extents_}.size(); }

  std::string description() const {
    std::ostringstream s;
    for (const auto& o : options_) s << describe<double>(extents_, o, budget_) << "; ";
    s << what_;
    return s.str();
  }

  template <class Layout>
  ooc_array<double, N, Layout> opened(const char* name, const array_options<double>& o) {
    if (made_) return {*runtime_, store_.handle(), name, ooc::open, o};
    return {*runtime_, store_.handle(), name, create_or_open, extents_, o};
  }

  /// Closes them, and opens them with the budget, or with as much more as that takes.
  void open() {
    now_.reset();
    runtime_.reset();
    for (;; budget_ += 4_KiB) try {
        runtime_.emplace(memory(store_.handle().core()->staging_bytes() + budget_));
        now_.reset(new arrays{opened<A>("a", options_[0]), opened<B>("b", options_[1]), opened<C>("c", options_[2])});
        made_ = true;
        return;
      } catch (const usage_error& e) {
        now_.reset();
        runtime_.reset();
        if (e.code() != errc::budget_too_small) throw;
      }
  }

  template <std::size_t K>
  auto& array() {
    return std::get<K>(*now_);
  }

  template <std::size_t K>
  void put() {
    array<K>().write_all({{}, extents_}, model_[K]);
  }

  /// By elements, or as they are in the store: elements of small blocks in another order are slow.
  template <std::size_t K>
  std::size_t wrong() {
    std::vector<double> all(size());
    if (between(g_, 0, 11) == 0)
      for_each_element<N>({{}, extents_}, extents_, [&](const coordinates<N>& c, std::size_t n) {
        all[n] = std::as_const(array<K>()).element(c);
      });
    else
      array<K>().read_all({{}, extents_}, all);
    std::size_t count = 0;
    for (std::size_t n = 0; n < size(); ++n) count += std::memcmp(&all[n], &model_[K][n], sizeof(double)) != 0;
    return count;
  }
  void check(const std::string& when) {
    INFO(description());
    INFO(when);
    REQUIRE(std::array{wrong<0>(), wrong<1>(), wrong<2>()} == std::array<std::size_t, 3>{});
  }

  /// Elements are written here and there, so that blocks are modified, and promised.
  void touch() {
    const auto some = [&](auto& a, std::vector<double>& m) {
      for (std::uint64_t k = between(g_, 0, 3); k > 0; --k) {
        const box<N> one = random_box<N>(g_, extents_);
        if (one.empty() || one.size() > 300) continue;
        if (between(g_, 0, 1)) a.overwrite(one);
        for_each_element<N>(one, extents_, [&](const coordinates<N>& c, std::size_t n) {
          a.element(c) = m[n] = static_cast<double>(between(g_, 0, 65536));
        });
      }
    };
    some(array<0>(), model_[0]);
    some(array<1>(), model_[1]);
    some(array<2>(), model_[2]);
  }

  /// Runs f(options), with more memory where it says that it needs some.
  template <class Options, class F>
  void within_budget(Options o, F f) {
    for (int attempt = 0;; ++attempt) try {
        f(o);
        return;
      } catch (const usage_error& e) {
        INFO(description());
        INFO(e.what());
        REQUIRE(e.code() == errc::budget_too_small);
        REQUIRE(attempt < 4);
        check("after a refusal");
        if (const std::uint64_t more = missing(e.what())) {
          budget_ += more;
          open();
        } else {
          if constexpr (requires { o.memory; }) {
            REQUIRE(o.memory != 0);
            o.memory = 0;
          } else {
            FAIL("a refusal that names no bytes");
          }
        }
      }
  }

  unsigned some_threads() { return static_cast<unsigned>(between(g_, 1, 8)); }
  pass_options some_options() {
    pass_options o{.threads = some_threads(), .mark = between(g_, 0, 5) == 0};
    if (between(g_, 0, 2) == 0) o.memory = between(g_, 16_KiB, 200_KiB);
    o.progress = [](const pass_progress& p) { return p.done <= p.all; };
    return o;
  }

  void one() {
    switch (between(g_, 0, 10)) {
      case 0: return move<0, 1>();
      case 1: return move<1, 2>();
      case 2: return move<2, 0>();
      case 3: return map();
      case 4: return change();
      case 5: return fold();
      case 6: return scan();
      case 7: return count();
      case 8: return order();
      case 9: return product();
      default: return steps();
    }
  }

  template <std::size_t From, std::size_t To>
  void move() {
    what_ = "copy or transposition of a box";
    std::array<std::size_t, N> permutation{};
    std::iota(permutation.begin(), permutation.end(), 0);
    if (between(g_, 0, 1)) std::shuffle(permutation.begin(), permutation.end(), g_);
    coordinates<N> both{}, where{};
    for (std::size_t k = 0; k < N; ++k) both[permutation[k]] = std::min(extents_[permutation[k]], extents_[k]);
    const box<N> which = random_box<N>(g_, both);
    for (std::size_t k = 0; k < N; ++k) where[k] = between(g_, 0, extents_[k] - which.extent(permutation[k]));
    within_budget(some_options(),
                  [&](const pass_options& o) { transpose(array<From>(), which, array<To>(), where, permutation, o); });
    for_each_element<N>(which, extents_, [&](const coordinates<N>& c, std::size_t n) {
      coordinates<N> to{};
      for (std::size_t k = 0; k < N; ++k) to[k] = where[k] + c[permutation[k]] - which.lower[permutation[k]];
      model_[To][linear_index<N>(to, extents_)] = model_[From][n];
    });
  }

  void map() {
    const bool in_place = between(g_, 0, 1);
    what_ = "transformation";
    within_budget(some_options(), [&](const pass_options& o) {
      if (in_place)
        transform(array<0>(), array<1>(), array<1>(), mixed, o);
      else
        transform(array<0>(), array<1>(), array<2>(), mixed, o);
    });
    std::vector<double>& to = model_[in_place ? 1 : 2];
    for (std::size_t n = 0; n < size(); ++n) to[n] = mixed(model_[0][n], model_[1][n]);
  }

  void change() {
    what_ = "for_each";
    within_budget(some_options(), [&](const pass_options& o) {
      for_each(
          std::tie(std::as_const(array<1>()), array<0>(), array<2>()),
          [](double x, double& y, double& z) {
            const double was = y;
            y = mixed(x, z);
            z = was;
          },
          o);
    });
    for (std::size_t n = 0; n < size(); ++n) {
      const double was = std::exchange(model_[0][n], mixed(model_[1][n], model_[2][n]));
      model_[2][n] = was;
    }
  }

  void fold() {
    what_ = "reduction";
    double sum = 0, inner = 0;
    within_budget(some_options(), [&](const pass_options& o) { sum = ooc::reduce(array<2>(), 7.0, std::plus<>(), o); });
    CHECK(sum == std::accumulate(model_[2].begin(), model_[2].end(), 7.0));
    within_budget(some_options(), [&](const pass_options& o) {
      inner = ooc::transform_reduce(array<0>(), array<1>(), 0.0, std::plus<>(), std::multiplies<>(), o);
    });
    CHECK(inner == std::inner_product(model_[0].begin(), model_[0].end(), model_[1].begin(), 0.0));
    // Rounded sums are the same on any number of threads.
    const auto root = [](double x) { return std::sqrt(x); };
    std::optional<double> alone;
    for (const unsigned threads : {1U, some_threads()}) {
      within_budget(pass_options{.threads = threads}, [&](const pass_options& o) {
        sum = ooc::transform_reduce(array<1>(), 0.0, std::plus<>(), root, o);
      });
      if (!alone) alone = sum;
      CHECK(sum == *alone);
    }
  }

  void scan() {
    if constexpr (A::contiguous && C::contiguous) {
      what_ = "scan";
      const bool in_place = between(g_, 0, 1);
      within_budget(some_options(), [&](pass_options o) {
        o.reproducible = in_place;
        if (in_place)
          ooc::inclusive_scan(array<0>(), array<0>(), std::plus<>(), o);
        else
          ooc::inclusive_scan(array<0>(), array<2>(), std::plus<>(), o);
      });
      std::vector<double>& to = model_[in_place ? 0 : 2];
      std::partial_sum(model_[0].begin(), model_[0].end(), to.begin());
      check(what_);
      within_budget(some_options(), [&](const pass_options& o) {
        for_each(
            std::tie(array<0>(), array<2>()), [](double& x, double& y) { x = folded(x), y = folded(y); }, o);
      });
      for (const std::size_t k : {0, 2})
        for (double& x : model_[k]) x = folded(x);
    }
  }

  void count() {
    what_ = "histogram";
    const std::size_t bins = between(g_, 1, 40);
    const double upper = static_cast<double>(bins) * std::pow(2.0, static_cast<double>(between(g_, 0, 12)));
    std::vector<std::uint64_t> counts(bins);
    std::uint64_t outside = 0;
    for (const double x : model_[1])
      x < upper ? ++counts[static_cast<std::size_t>(x / (upper / static_cast<double>(bins)))] : ++outside;
    histogram_counts found;
    within_budget(some_options(),
                  [&](const pass_options& o) { found = histogram(array<1>(), 0.0, upper, bins, o).value; });
    CHECK(found.counts == counts);
    CHECK(found.outside == outside);
  }

  bool in_rows(std::size_t k) const { return N == 1 || options_[k].order == file_order::row_major; }

  void order() {
    what_ = "sort";
    if constexpr (A::contiguous && C::contiguous) {
      if (!in_rows(0) || !in_rows(2)) return;
      const bool in_place = between(g_, 0, 1), falling = between(g_, 0, 1), by_key = between(g_, 0, 1);
      const auto key = [](double x) { return std::fmod(x, 17); };
      const auto less = [falling](double x, double y) { return falling ? y < x : x < y; };
      sort_options options{.stable = by_key, .flat = true, .threads = some_threads(), .mark = between(g_, 0, 5) == 0};
      if (between(g_, 0, 2) == 0) options.memory = between(g_, 30_KiB, 200_KiB);
      within_budget(options, [&](const sort_options& o) {
        const auto sort_it = [&](auto& to) {
          if (by_key)
            ooc::sort(array<0>(), to, less, key, o);
          else
            ooc::sort(array<0>(), to, less, o);
        };
        if (!in_place) return sort_it(array<2>());
        if (by_key)
          ooc::sort(array<0>(), less, key, o);
        else if (falling)
          ooc::sort(array<0>(), std::greater<>(), o);
        else
          ooc::sort(array<0>(), o);
      });
      std::vector<double> sorted = model_[0];
      std::stable_sort(sorted.begin(), sorted.end(),
                       [&](double x, double y) { return by_key ? less(key(x), key(y)) : less(x, y); });
      model_[in_place ? 0 : 2] = sorted;
    }
  }

  void product() {
    if constexpr (N == 2) {
      if (extents_[0] != extents_[1]) return;
      what_ = "product";
      multiply_options options{.threads = some_threads(), .mark = between(g_, 0, 5) == 0};
      if (between(g_, 0, 2) == 0) options.memory = between(g_, 60_KiB, 300_KiB);
      within_budget(options, [&](const multiply_options& o) { multiply(array<0>(), array<1>(), array<2>(), o); });
      const std::size_t n = extents_[0];
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::size_t k = 0; k < n; ++k) sum += model_[0][i * n + k] * model_[1][k * n + j];
          model_[2][i * n + j] = sum;
        }
      check(what_);
      within_budget(some_options(), [&](const pass_options& o) {
        for_each(
            array<2>(), [](double& x) { x = folded(x); }, o);
      });
      for (double& x : model_[2]) x = folded(x);
    }
  }

  void steps() {
    if constexpr (std::is_same_v<A, layout_right> && std::is_same_v<C, layout_right>) {
      what_ = "sweep";
      std::array<std::size_t, N> ones{};
      ones.fill(1);
      const auto kernel = [](auto& out, const auto& in) {
        if constexpr (N == 1)
          out.value() = folded(in[-1] + 2 * in[0] + in[1]);
        else if constexpr (N == 2)
          for (auto j = out.lower(1); j < out.upper(1); ++j)
            out[j] = folded(in[-1][j] + in[0][j - 1] + 2 * in[0][j] + in[1][j + 1]);
        else
          for (auto j = out.lower(1); j < out.upper(1); ++j)
            for (auto l = out.lower(2); l < out.upper(2); ++l)
              out[j][l] = folded(in[-1][j][l] + in[0][j - 1][l] + 2 * in[0][j][l] + in[1][j][l + 1]);
      };
      const bool in_place = between(g_, 0, 1);
      const std::size_t count = between(g_, 0, 9);
      sweep_options options{.fuse = between(g_, 0, 1) * between(g_, 1, 9),
                            .threads = some_threads(),
                            .mark = between(g_, 0, 5) == 0,
                            .group = between(g_, 0, 1) * between(g_, 1, 5),
                            .width = between(g_, 0, 1) * between(g_, 1, 12),
                            .piece = between(g_, 0, 1) * between(g_, 1, 60)};
      std::size_t radius[N];
      std::copy(ones.begin(), ones.end(), radius);
      within_budget(options, [&](const sweep_options& o) {
        if (in_place)
          sweep(array<0>(), count, ooc::stencil(radius, kernel), o);
        else
          sweep(array<0>(), array<2>(), count, ooc::stencil(radius, kernel), o);
      });
      std::vector<double> now = model_[0];
      for (std::size_t s = 0; s < count; ++s) {
        std::vector<double> next = now;
        for_each_element<N>({{}, extents_}, extents_, [&](const coordinates<N>& c, std::size_t n) {
          for (std::size_t k = 0; k < N; ++k)
            if (c[k] < 1 || c[k] + 1 >= extents_[k]) return;
          const auto at = [&](std::size_t k, std::ptrdiff_t d) {
            coordinates<N> x = c;
            x[k] = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(x[k]) + d);
            return x;
          };
          const auto value = [&](const coordinates<N>& x) { return now[linear_index<N>(x, extents_)]; };
          if constexpr (N == 1) {
            next[n] = folded(value(at(0, -1)) + 2 * now[n] + value(at(0, 1)));
          } else {
            coordinates<N> corner = at(0, 1);
            ++corner[N - 1];
            next[n] = folded(value(at(0, -1)) + value(at(1, -1)) + 2 * now[n] + value(corner));
          }
        });
        now = std::move(next);
      }
      model_[in_place ? 0 : 2] = now;
    }
  }

  std::mt19937_64& g_;
  const test_store store_{store_kind::local};
  const coordinates<N> extents_;
  std::uint64_t budget_;  ///< beside the transfer buffers of the store
  std::array<array_options<double>, 3> options_;
  std::array<std::vector<double>, 3> model_;
  std::optional<runtime> runtime_;
  std::unique_ptr<arrays> now_;
  bool made_ = false;
  std::string what_ = "nothing yet";
};

template <std::size_t N, class A, class B, class C>
void run_at_random(std::mt19937_64& g) {
  random_algorithms<N, A, B, C>(g).run(9);
}

}  // namespace

TEST_CASE("random programs of algorithms compute what plain loops do, with any budget that they take") {
  const std::uint64_t seed = random_seed("any algorithm");
  INFO("seed " << seed);
  std::mt19937_64 g(seed);
  for (int n = rounds(2, 100); n > 0; --n) {
    run_at_random<1, layout_right, layout_right, layout_right>(g);
    run_at_random<1, layout_right, layout_tiled, layout_right>(g);
    run_at_random<2, layout_right, layout_right, layout_right>(g);
    run_at_random<2, layout_tiled, layout_right, layout_tiled>(g);
    run_at_random<3, layout_right, layout_tiled, layout_right>(g);
  }
}
