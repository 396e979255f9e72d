// What programs write with the library, compiled with the warnings that they may compile with; see
// check_warnings.cmake.  Nobody runs it: it is about types, and instances of templates.
#include <array>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// ... and all public headers, which the script includes before.

using namespace ooc::literals;

namespace {

struct particle {
  float x, y, z;
  std::int16_t kind;
};

template <class T, class Layout>
T elements(ooc::runtime& rt, const ooc::store& s, const std::string& path) {
  ooc::ooc_array<T, 3, Layout> a{rt, s, path + "/a", ooc::create_or_open, {20, 30, 40}, {.block = 64_KiB, .fill = T{}}};
  const ooc::ooc_array<T, 3, Layout> b{rt, s, path + "/b", ooc::open_read_only};
  ooc::ooc_array<T, 3, Layout> moved = std::move(a);
  a = std::move(moved);
  a[1] = b[2];
  a[2][3] = b[2][3];
  auto plane = a[3];
  plane = a[4];
  plane.assign(b[0]);
  a[1][2][3] = b(1, 2, 3);
  a.at(0, 0, 1) = b.at(0, 0, 2);
  a.element({0, 1, 2}) = b.element({1, 1, 1});
  for (const T& x : b) a(0, 0, 0) = x;
  for (auto t : a.tiles(ooc::access_mode::write)) t(0, 0, 0) = T{};
  if constexpr (Layout::contiguous) {
    a.slice({{0, 0, 0}, {2, 2, 2}}) = b.slice({{1, 1, 1}, {3, 3, 3}});
    a.span()[0] = b.data()[1];
  }
  std::vector<T> out(2);
  const std::vector<std::size_t> indices{1, 2};
  b.gather(indices, out);
  a.scatter(indices, out);
  a.overwrite(a.whole());
  a.prefetch({{0, 0, 0}, {1, 1, 1}});
  const auto pinned = a.pin(a.local_box());
  for (const auto row : pinned.rows()) row.front() = T{};
  a.resize(10);
  a.writeback(ooc::durable);
  a.sync();
  a.set_attribute("unit", "m");
  return a[0][0][0];
}

template <class T>
double passes(ooc::ooc_array<T, 2>& a, ooc::ooc_array<T, 2>& b, ooc::ooc_array<T, 1>& keys) {
  ooc::for_each(a, [](T& x) { x = static_cast<T>(1 / x); });
  ooc::transform(a, b, [](T x) { return x; });
  const T sum = ooc::reduce(a, T{});
  if (ooc::reduce(a, T{}) > 0) std::puts("positive");
  T assigned{};
  assigned = ooc::transform_reduce(a, b, T{});
  const double mixed =
      0.5 * ooc::reduce(a, 0.0) + ooc::transform_reduce(a, 0.0, std::plus<>(), [](T x) { return 2.0 * x; });
  std::printf("%f\n", ooc::reduce(a, 0.0).value);
  const auto counts = ooc::histogram(a, T{0}, T{9}, 10);
  const ooc::histogram_counts same = counts;
  ooc::inclusive_scan(a, b);
  ooc::exclusive_scan(a, b, T{1});
  ooc::fill(a, T{2});
  ooc::generate(a, [](std::size_t i, std::size_t j) { return static_cast<T>(i * j); });
  ooc::for_each(a, [](T& x, std::size_t i, std::size_t) { x = static_cast<T>(i); });
  const auto [largest, at] = ooc::max_element(a).value;
  if (largest > ooc::min_element(b).value.value) a(at[0], at[1]) = T{};
  ooc::copy(a, {{0, 0}, {9, 9}}, b, {5, 5});
  ooc::transpose(a, b);
  ooc::sort(keys);
  ooc::sort(keys, std::greater<>());
  return static_cast<double>(sum + assigned) + mixed + static_cast<double>(same.outside);
}

double sweeps(ooc::ooc_array<double, 2>& a, ooc::ooc_array<double, 2>& b, ooc::ooc_array<double, 3>& v) {
  auto jacobi = ooc::stencil({1, 1}, [](auto& out, const auto& in) {
    double change = 0;
    for (auto j = out.lower(1); j < out.upper(1); ++j) {
      out[j] = 0.25 * (in[-1][j] + in[1][j] + in[0][j - 1] + in[0][j + 1]);
      change += out[j] - in[0][j];
    }
    return change;
  });
  jacobi.boundaries[1] = ooc::boundary::periodic;
  ooc::sweep(a, 10,
             jacobi.periodic(0).reduce(0.0, std::plus<>()).after(2, [](std::size_t, double norm) { return norm > 0; }));
  ooc::sweep(std::as_const(a), b, 10, jacobi, {.fuse = 4});
  ooc::sweep(v, 3, ooc::stencil({1, 1, 1}, [](auto& out, const auto& in) {
               for (auto j = out.lower(1); j < out.upper(1); ++j)
                 for (auto k = out.lower(2); k < out.upper(2); ++k) out[j][k] = in[1][j][k];
             }));
  ooc::sweep(std::tie(a, b), 10, ooc::stencil({1, 1}, [](auto& out, const auto& in) {
               auto [u1, v1] = out;
               const auto& [u0, v0] = in;
               for (auto j = out.lower(1); j < out.upper(1); ++j) u1[j] = v0[0][j], v1[j] = u0[-1][j];
             }));
  ooc::multiply(a, b, a);
  return (ooc::eigen_map(a) * ooc::eigen_map(b)).sum();
}

}  // namespace

int main() {
  ooc::runtime rt{{.memory = 512_MiB}};
  const auto s = ooc::store::open("local:/var/tmp/store");
  ooc::ooc_array<double, 2> a{rt, s, "a", ooc::create, {10, 10}}, b{rt, s, "b", ooc::create, {10, 10}};
  ooc::ooc_array<std::int32_t, 2> p{rt, s, "p", ooc::create, {10, 10}}, q{rt, s, "q", ooc::create, {10, 10}};
  ooc::ooc_array<double, 1> k{rt, s, "k", ooc::create, {100}};
  ooc::ooc_array<std::int32_t, 1> l{rt, s, "l", ooc::create, {100}};
  ooc::ooc_array<double, 3> v{rt, s, "v", ooc::create, {10, 10, 10}};
  auto raw = ooc::open_file<float, 1>(rt, "/data/b.raw", ooc::open, {.extents = {100}, .offset = 512});
  ooc::any_array any{rt, s, "a", ooc::open_read_only};
  elements<double, ooc::layout_right>(rt, s, "doubles");
  elements<std::int16_t, ooc::layout_tiled>(rt, s, "shorts");
  elements<std::uint8_t, ooc::layout_right>(rt, s, "bytes");
  elements<std::complex<float>, ooc::layout_tiled>(rt, s, "complex");
  elements<particle, ooc::layout_right>(rt, s, "particles");
  const double all = passes(a, b, k) + passes(p, q, l) + sweeps(a, b, v) + static_cast<double>(raw[0]);
  return all > 0 ? 0 : static_cast<int>(any.rank());
}
