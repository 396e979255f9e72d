// Jacobi's iteration for Laplace's equation on a plate with given edges:
//
//     b_ij = (a_(i-1)j + a_(i+1)j + a_i(j-1) + a_i(j+1)) / 4 ,   then a and b change places
//
// on n x n points, twice as many as memory need hold.  plate.hpp says what the plate looks like
// after any number of iterations; the largest deviation from that is checked over all points.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/command_line.hpp"
#include "common/plain_array.hpp"
#include "common/progress_bar.hpp"
#include "common/report.hpp"
#include "common/run.hpp"
#include "common/store_files.hpp"
#include "jacobi/picture.hpp"
#include "jacobi/plate.hpp"
#include "oocarray/ooc_array.hpp"

namespace {

template <class T>
T quarter(T sum) {
  if constexpr (std::is_integral_v<T>)
    return sum / 4;
  else
    return sum * T(0.25);
}

/// The program: the same for arrays in memory, mapped files and arrays out of core.  Returns the
/// residual: the largest change of a point.
template <class T, class Plate>
T sweep(const Plate& a, Plate& b, std::size_t n, examples::progress_bar& bar) {
  T residual = 0;
  for (std::size_t i = 1; i + 1 < n; ++i) {
#pragma omp simd reduction(max : residual)
    for (std::size_t j = 1; j < n - 1; ++j) {
      const T u = quarter<T>(a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
      residual = std::max(residual, std::abs(u - a[i][j]));
      b[i][j] = u;
    }
    bar.step();
  }
  return residual;
}

struct options : examples::common_options {
  bool no_overwrite = false;
  std::string picture;
};

/// Both plates begin with the right edges, which no sweep touches.
template <class Exact, class Plate>
void start(const Exact& exact, Plate& a, Plate& b, std::size_t n, examples::progress_bar& bar) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) b[i][j] = a[i][j] = exact(i, j);
    bar.step();
  }
}

template <class Exact, class Plate>
double largest_error(const Exact& exact, const Plate& a, std::size_t n, examples::progress_bar& bar) {
  double error = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      error = std::max(error, std::abs(static_cast<double>(a[i][j]) - exact(i, j)));
    bar.step();
  }
  return error;
}

/// `load` is called between start and iterations (rivals), `promise` before every sweep.
template <class Exact, class Plate, class Load, class Promise>
int solve(Plate* a, Plate* b, const options& o, examples::report& r, Load load, Promise promise) {
  using T = typename Exact::value_type;
  const std::size_t n = o.size;
  Exact exact(n, o.iterations);
  r.phase("create", [&] {
    examples::progress_bar bar("creating", n, 2 * n * sizeof(T), o.quiet);
    start(exact, *a, *b, n, bar);
    a->writeback();
    b->writeback();
  });
  load();
  r.phase("compute", [&] {
    examples::progress_bar bar("iterating", (n - 2) * o.iterations, 2 * n * sizeof(T), o.quiet);
    for (std::uint64_t k = 1; k <= o.iterations; ++k) {
      promise(*b);
      const T residual = sweep<T>(std::as_const(*a), *b, n, bar);
      std::swap(a, b);
      bar.make_way();
      std::printf("iteration %4llu   residual %.6e\n", static_cast<unsigned long long>(k),
                  static_cast<double>(residual));
      r.set("residual", static_cast<double>(residual));
    }
    a->writeback();
  });
  exact.set_iteration(o.iterations);
  const double error = r.phase("check", [&] {
    examples::progress_bar bar("checking", n, n * sizeof(T), o.quiet);
    return largest_error(exact, std::as_const(*a), n, bar);
  });
  if (!o.picture.empty()) jacobi::write_picture(o.picture, std::as_const(*a), n);

  const double bytes = 2.0 * sizeof(T) * static_cast<double>(n) * static_cast<double>(n);
  r.rate("compute", bytes * static_cast<double>(o.iterations));
  r.set("elements", std::uint64_t{2} * n * n);
  r.set("bytes", static_cast<std::uint64_t>(bytes));
  r.set("n", std::uint64_t{n});
  r.set("iterations", o.iterations);
  r.set("error", error);
  std::printf("n = %zu, largest error %.3e (rounding allows %.3e)\n", n, error, exact.tolerance(o.iterations));
  return r.finish(error <= exact.tolerance(o.iterations));
}

template <class Exact>
int out_of_core(const options& o) {
  using T = typename Exact::value_type;
  ooc::runtime rt{{.memory = o.memory}};
  examples::report r("jacobi", o.json, &rt);
  const ooc::store store = o.open_store();
  examples::store_files files(store, o.keep);
  const std::size_t n = o.size;
  ooc::ooc_array<T, 2> a{rt, store, files.fresh("jacobi.a"), ooc::create, {n, n}};
  ooc::ooc_array<T, 2> b{rt, store, files.fresh("jacobi.b"), ooc::create, {n, n}};
  a.overwrite({{0, 0}, {n, n}});
  b.overwrite({{0, 0}, {n, n}});
  return solve<Exact>(&a, &b, o, r, [] {}, [&](auto& target) {
    if (!o.no_overwrite) target.overwrite({{1, 1}, {n - 1, n - 1}});
  });
}

template <class Exact>
int plain(const options& o) {
  using T = typename Exact::value_type;
  examples::report r("jacobi", o.json, nullptr);
  const examples::rival_folder folder(o.store);
  const std::size_t n = o.size;
  using plate = examples::plain_array<T, 2>;
  const auto create = [&](const char* name) {
    return plate(examples::plain_memory::create(folder / name, n * n * sizeof(T)), std::array{n, n});
  };
  plate a = create("a"), b = create("b");
  const auto load = [&] {
    if (o.vm != "anonymous") return;
    r.phase("load", [&] {
      a = plate(examples::plain_memory::read_from(folder / "a"), std::array{n, n});
      b = plate(examples::plain_memory::read_from(folder / "b"), std::array{n, n});
    });
  };
  return solve<Exact>(&a, &b, o, r, load, [](auto&) {});
}

template <class Exact>
int run_with(const options& o) {
  return o.vm == "none" ? out_of_core<Exact>(o) : plain<Exact>(o);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run("jacobi", [&] {
    options o;
    o.size = 2048;
    o.iterations = 10;
    examples::command_line c("jacobi", "Laplace's equation on an n x n plate by Jacobi's iteration.");
    c.count("size", o.size, 4, 1 << 22, "n, points on a side");
    c.count("iterations", o.iterations, 1, 1'000'000, "iterations");
    c.choice("type", o.type, {"f8", "i4"}, "doubles, or the papers' integers");
    c.flag("no-overwrite", o.no_overwrite, "do not promise that a sweep overwrites its target");
    c.text("picture", o.picture, "write the plate at the end as a PNG, at most 1024 points wide");
    o.add_to(c);
    if (!c.parse(argc, argv)) return 0;
    if (o.type == "f8") return run_with<jacobi::heated_plate>(o);
    if (o.iterations > jacobi::integer_plate::max_iterations)
      throw examples::bad_option("--iterations " + std::to_string(o.iterations) +
                                 " with --type i4: the known answer is exact for at most " +
                                 std::to_string(jacobi::integer_plate::max_iterations) +
                                 "; use fewer, or --type f8");
    o.size = jacobi::integer_plate::size_for(o.size);
    return run_with<jacobi::integer_plate>(o);
  });
}
