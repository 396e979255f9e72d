// Reductions, sums up to each element, and histograms of numbers: without Python in the loop.
#include <algorithm>
#include <cmath>

#include "algorithm_call.hpp"
#include "numbers.hpp"
#include "oocarray/algorithm/elementwise.hpp"

namespace ooc::python {

namespace {

struct plus {
  template <class T>
  T operator()(const T& x, const T& y) const noexcept {
    return static_cast<T>(x + y);
  }
};
/// What is no number stays, as in numpy.minimum and numpy.maximum.
struct minimum {
  template <class T>
  T operator()(const T& x, const T& y) const noexcept {
    return x < y || x != x ? x : y;
  }
};
struct maximum {
  template <class T>
  T operator()(const T& x, const T& y) const noexcept {
    return x > y || x != x ? x : y;
  }
};

detail::span_request request(const char* verb, algorithm_call& call, std::vector<detail::span_array> arrays) {
  detail::span_request r{.verb = verb, .options = call.options<pass_options>()};
  r.arrays = std::move(arrays);
  return r;
}

detail::span_array in_pass(const array_handle& a, bool read, bool written) {
  return {&a.get().core(), a.get().element_size(), read, written};
}

template <class T, class Value, class Op>
py::object reduced(algorithm_call& call, const array_handle& a, Value identity, Op op) {
  const auto f = [](const T& x) { return static_cast<Value>(x); };
  return py::cast(call.run([&] {
    return static_cast<Value>(detail::reduce_spans<0, T>(request("reduction", call, {in_pass(a, true, false)}),
                                                         a.get().size(), identity, op, f));
  }));
}

py::object reduce(const array_handle& a, const std::string& how, const py::dict& options) {
  algorithm_call call(options, {a});
  return with_number(a.get().element_type(), [&]<class T>(std::type_identity<T>) -> py::object {
    if (how == "add") return reduced<T>(call, a, typename sum_of<T>::type{}, plus());
    if constexpr (is_complex<T>) {
      throw usage_error(errc::type_mismatch, "complex numbers have no least and no greatest one");
    } else {
      // Any element does to begin with: the operation is idempotent.
      using limits = std::numeric_limits<T>;
      constexpr T highest = limits::has_infinity ? limits::infinity() : limits::max();
      constexpr T lowest = limits::has_infinity ? -limits::infinity() : limits::lowest();
      return how == "minimum" ? reduced<T>(call, a, highest, minimum()) : reduced<T>(call, a, lowest, maximum());
    }
  });
}

/// The sum of conj(x) y over the elements of a and b.
py::object inner(const array_handle& a, const array_handle& b, const py::dict& options) {
  algorithm_call call(options, {a, b});
  return with_number(a.get().element_type(), [&]<class T>(std::type_identity<T>) -> py::object {
    using value = typename sum_of<T>::type;
    const auto f = [](const T& x, const T& y) {
      if constexpr (is_complex<T>)
        return std::conj(static_cast<value>(x)) * static_cast<value>(y);
      else
        return static_cast<value>(static_cast<value>(x) * static_cast<value>(y));
    };
    plus op;
    return py::cast(call.run([&] {
      return static_cast<value>(detail::reduce_spans<0, T, T>(
          request("inner product", call, {in_pass(a, true, false), in_pass(b, true, false)}), a.get().size(), value{},
          op, f));
    }));
  });
}

/// b has the type of a, or that of its sums.
py::dict cumulative_sum(const array_handle& a, const array_handle& b, const py::dict& options) {
  algorithm_call call(options, {a, b});
  const bool same = a.get().element_type() == b.get().element_type();
  return with_number(a.get().element_type(), [&]<class T>(std::type_identity<T>) {
    plus op;
    const auto r = request("cumulative sum", call, {in_pass(a, true, false), in_pass(b, false, true)});
    return figures(call.run([&] {
      return same ? detail::scan_spans<T, T>(r, op) : detail::scan_spans<T, typename sum_of<T>::type>(r, op);
    }));
  });
}

/// The bin of a number, as numpy.histogram chooses it: bins are [edge, next edge), the last one closed.
class bin_of {
 public:
  bin_of(const std::vector<double>& edges, bool even)
      : edges_(edges),
        bins_(edges.size() - 1),
        scale_(even ? static_cast<double>(bins_) / (edges.back() - edges.front()) : 0) {
    if (!std::isfinite(scale_)) scale_ = 0;  // a narrow range: its edges are searched
  }

  template <class T>
  std::size_t operator()(const T& x) const noexcept {
    const auto v = static_cast<double>(x);
    if (!(v >= edges_.front() && v <= edges_.back())) return bins_;
    if (v == edges_.back()) return bins_ - 1;
    if (scale_ == 0)
      return static_cast<std::size_t>(std::upper_bound(edges_.begin(), edges_.end(), v) - edges_.begin()) - 1;
    auto k = std::min(static_cast<std::size_t>((v - edges_.front()) * scale_), bins_ - 1);
    if (v < edges_[k]) --k;
    if (v >= edges_[k + 1]) ++k;
    return k;
  }

 private:
  const std::vector<double>& edges_;
  const std::size_t bins_;
  double scale_;
};

std::vector<std::uint64_t> histogram(const array_handle& a, const std::vector<double>& edges, bool even,
                                     const py::dict& options) {
  algorithm_call call(options, {a});
  return with_number(a.get().element_type(), [&]<class T>(std::type_identity<T>) -> std::vector<std::uint64_t> {
    if constexpr (is_complex<T>) {
      throw usage_error(errc::type_mismatch, "complex numbers have no order, and so no histogram");
    } else {
      const bin_of f(edges, even);
      return call.run([&] {
        return detail::count_spans<T>(request("histogram", call, {in_pass(a, true, false)}), edges.size() - 1, f)
            .value.counts;
      });
    }
  });
}

}  // namespace

void bind_passes(py::module_& m) {
  m.def("reduce", &reduce);
  m.def("inner", &inner);
  m.def("cumulative_sum", &cumulative_sum);
  m.def("histogram", &histogram);
}

}  // namespace ooc::python
