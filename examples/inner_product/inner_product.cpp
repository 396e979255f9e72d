// The inner product of two vectors larger than memory:
//
//     s = sum_i x_i y_i ,   i = 0 ... n - 1
//
// with the elements of the papers (32-bit integers, a 64-bit sum) or doubles.  The data are
// x_i = i mod 64 and y_i = i mod 61.  64 and 61 have no common factor, so a period of 64 * 61
// elements runs through every pair once, and its sum is (0 + ... + 63) * (0 + ... + 60): the answer
// is known, and every partial sum is an integer below 2^53, so it is exact in any order.
//
// On ranks, each sums over its part, and MPI_Allreduce adds the parts.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>
#include <utility>

#include "harness/command_line.hpp"
#include "harness/plain_array.hpp"
#include "harness/progress_bar.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "harness/store_files.hpp"
#include "inner_product/source.hpp"
#include "oocarray/ooc_array.hpp"

namespace {

constexpr std::uint64_t p = 64, q = 61;

template <class T>
struct sum_of {
  using type = T;
};
template <>
struct sum_of<std::int32_t> {
  using type = std::int64_t;
};

/// The program: the same for arrays in memory, mapped files and arrays out of core.
template <class T, class Vector>
typename sum_of<T>::type inner_product(const Vector& x, const Vector& y, std::size_t first, std::size_t last) {
  typename sum_of<T>::type s = 0;
#pragma omp simd reduction(+ : s)
  for (std::size_t i = first; i < last; ++i) s += typename sum_of<T>::type{x[i]} * y[i];
  return s;
}

double known_answer(std::uint64_t n) {
  const std::uint64_t periods = n / (p * q);
  std::uint64_t s = periods * (p * (p - 1) / 2) * (q * (q - 1) / 2);
  for (std::uint64_t i = periods * p * q; i < n; ++i) s += (i % p) * (i % q);
  return static_cast<double>(s);
}

struct options : examples::common_options {
  std::string x, y;  ///< .npy files or store paths; empty: made here
};

/// Slices of the vectors between two steps of the progress bar.
constexpr std::size_t slice = std::size_t{1} << 22;

template <class T, class Vector>
void fill(Vector& x, Vector& y, examples::progress_bar& bar) {
  const auto [begin, end] = x.local_rows();
  for (std::size_t first = begin; first < end; first += slice) {
    const std::size_t last = std::min(end, first + slice);
    for (std::size_t i = first; i < last; ++i) x[i] = static_cast<T>(i % p);
    for (std::size_t i = first; i < last; ++i) y[i] = static_cast<T>(i % q);
    bar.step(last - first);
  }
}

/// `off`: how far from the known answer rounding may be; 0 for the data made here.
template <class T, class Vector>
int compute(const Vector& x, const Vector& y, std::size_t n, double known, double off, const options& o,
            examples::report& r, const examples::ranks& all) {
  double s = 0;
  r.phase("compute", [&] {
    const auto [begin, end] = x.local_rows();
    examples::progress_bar bar("inner product", (end - begin) * o.iterations, 2 * sizeof(T), o.quiet);
    for (std::uint64_t k = 0; k < o.iterations; ++k) {
      typename sum_of<T>::type sum = 0;
      for (std::size_t first = begin; first < end; first += slice) {
        const std::size_t last = std::min(end, first + slice);
        sum += inner_product<T>(x, y, first, last);
        bar.step(last - first);
      }
      s = all.sum(static_cast<double>(sum));
    }
  });
  const double bytes = 2.0 * sizeof(T) * static_cast<double>(n);
  r.rate("compute", bytes * static_cast<double>(o.iterations));
  r.set("elements", std::uint64_t{n});
  r.set("bytes", static_cast<std::uint64_t>(bytes));
  r.set("result", s);
  r.set("known", known);
  r.set("error", s - known);
  std::printf("n = %zu, s = %.17g, known %.17g\n", n, s, known);
  return r.finish(std::abs(s - known) <= off);
}

template <class T>
int out_of_core(const options& o, const examples::ranks& all) {
  ooc::runtime rt{{.memory = o.memory}};
  examples::report r("inner_product", o.json, &rt, all);
  const ooc::store store = o.open_store(all);
  examples::store_files files(store, o, all);
  const std::size_t n = o.size;
  const ooc::array_options<T> options{.group = all.group(), .owner_computes = all.size() > 1};
  auto x = files.array<T, 1>(rt, "inner_product.x", {n}, options);
  auto y = files.array<T, 1>(rt, "inner_product.y", {n}, options);
  if (o.creates())
    r.phase("create", [&] {
      examples::progress_bar bar("creating", x.local_box().size(), 2 * sizeof(T), o.quiet);
      x.overwrite({{0}, {n}});
      y.overwrite({{0}, {n}});
      fill<T>(x, y, bar);
      x.sync();
      y.sync();
    });
  if (!o.computes()) return r.finish_without_result();
  return compute<T>(std::as_const(x), std::as_const(y), n, known_answer(n), 0, o, r, all);
}

template <class T>
int plain(const options& o, const examples::ranks& all) {
  examples::report r("inner_product", o.json, nullptr, all);
  const examples::rival_folder folder(o, "inner_product", all);
  const std::size_t n = o.size;
  using vector = examples::plain_array<T, 1>;
  vector x(folder.map("x", n * sizeof(T)), {n}, all), y(folder.map("y", n * sizeof(T)), {n}, all);
  if (o.creates())
    r.phase("create", [&] {
      examples::progress_bar bar("creating", n / static_cast<std::size_t>(all.size()), 2 * sizeof(T), o.quiet);
      fill<T>(x, y, bar);
      x.writeback();
      y.writeback();
      x.sync();
    });
  if (!o.computes()) return r.finish_without_result();
  if (o.vm == "anonymous")
    r.phase("load", [&] {
      x = vector::read_from(folder / "x", {n}, all);
      y = vector::read_from(folder / "y", {n}, all);
    });
  return compute<T>(x, y, n, known_answer(n), 0, o, r, all);
}

/// Vectors that exist: .npy files, imported first, or arrays of the store.  The answer is checked
/// against a sum over the same bytes read as a stream.
template <class T>
int given(const options& o, const examples::ranks& all) {
  const inner_product_example::source from_x(o.x), from_y(o.y);
  from_x.check<T>();
  from_y.check<T>();
  ooc::runtime rt{{.memory = o.memory}};
  examples::report r("inner_product", o.json, &rt, all);
  const ooc::store store = o.open_store(all);
  examples::store_files files(store, o, all);
  const auto path = [&](const inner_product_example::source& from, const char* name) {
    if (!from.is_npy()) return from.path();
    files.fresh(name);
    r.phase(std::string("import ") + name, [&] {
      if (all.leads()) from.import_to<T>(rt, store, name, o.quiet);
    });
    return std::string(name);
  };
  const ooc::ooc_array<T, 1> x{
      rt, store, path(from_x, "inner_product.imported.x"), ooc::open_read_only, {.group = all.group()}};
  const ooc::ooc_array<T, 1> y{
      rt, store, path(from_y, "inner_product.imported.y"), ooc::open_read_only, {.group = all.group()}};
  const std::size_t n = x.extent(0);
  if (n != y.extent(0))
    throw examples::bad_option("--x has " + std::to_string(n) + " elements, --y " + std::to_string(y.extent(0)) +
                               "; give vectors of one length");
  const auto known = r.phase("stream", [&] { return inner_product_example::streamed<T>(from_x, from_y, store, n); });
  const double rounding = std::is_integral_v<T> ? 0.0 : known.moduli * 2.3e-16 * static_cast<double>(n);
  return compute<T>(x, y, n, static_cast<double>(known.sum), rounding, o, r, all);
}

template <class T>
int run_with(const options& o, const examples::ranks& all) {
  if (!o.x.empty()) return given<T>(o, all);
  return o.vm == "none" ? out_of_core<T>(o, all) : plain<T>(o, all);
}

}  // namespace

int main(int count, char** arguments) {
  return examples::run("inner_product", count, arguments, [](int argc, char** argv, const examples::ranks& all) {
    options o;
    o.size = 16 << 20;
    examples::command_line c("inner_product", "s = sum_i x_i y_i of two vectors out of core.");
    c.count("size", o.size, 1, std::uint64_t{1} << 42, "elements of a vector");
    c.count("iterations", o.iterations, 1, 1'000'000, "how often to compute it");
    c.choice("type", o.type, {"f8", "i4"}, "doubles, or the papers' integers with a 64-bit sum");
    c.text("x", o.x, "vector x: FILE.npy, imported into the store, or store:PATH");
    c.text("y", o.y, "vector y, likewise");
    o.add_to(c);
    if (!c.parse(argc, argv)) return 0;
    if (o.x.empty() != o.y.empty()) throw examples::bad_option("--x and --y belong together: give both, or neither");
    if (!o.x.empty() && o.vm != "none")
      throw examples::bad_option("--vm " + o.vm + ": works on data made here; leave out --x and --y");
    if (!o.x.empty() && o.stage != "all")
      throw examples::bad_option("--stage " + o.stage + ": is about data made here; leave out --x and --y");
    o.quiet = o.quiet || !all.leads();
    return o.type == "f8" ? run_with<double>(o, all) : run_with<std::int32_t>(o, all);
  });
}
