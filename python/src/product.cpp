// Products of matrices, through Eigen where the package was built with it.
#include "algorithm_call.hpp"

#ifdef OOCARRAY_PYTHON_WITH_EIGEN
#include "numbers.hpp"
#include "oocarray/algorithm/multiply.hpp"

namespace ooc::python {

namespace {

/// An array of two dimensions, or a C-contiguous matrix of NumPy.
detail::matrix_operand operand(const py::object& x) {
  detail::matrix_operand m;
  if (py::isinstance<array_handle>(x)) {
    any_array& a = x.cast<array_handle&>().get();
    m.array = &a.core();
    m.rows = a.extents().at(0);
    m.columns = a.extents().at(1);
  } else {
    const auto a = x.cast<py::array>();
    m.memory = static_cast<std::byte*>(const_cast<void*>(a.data()));
    m.rows = static_cast<std::size_t>(a.shape(0));
    m.columns = static_cast<std::size_t>(a.shape(1));
  }
  return m;
}

/// c = a b; the element type is that of a.
py::dict multiply(const array_handle& a, const py::object& b, const py::object& c, const py::dict& options) {
  std::vector<array_handle> arrays{a};
  for (const py::object& x : {b, c})
    if (py::isinstance<array_handle>(x)) arrays.push_back(x.cast<array_handle>());
  algorithm_call call(options, arrays);
  const auto from = operand(py::cast(a)), by = operand(b), to = operand(c);
  return with_number(a.get().element_type(), [&]<class T>(std::type_identity<T>) -> py::dict {
    if constexpr (detail::multiplied_element<T>) {
      const auto o = call.options<multiply_options>();
      return figures(call.run([&] { return detail::run_multiply(from, by, to, detail::eigen_kernel<T>(), o); }));
    } else {
      throw usage_error(errc::type_mismatch, "products are of float32, float64, complex64 and complex128");
    }
  });
}

}  // namespace

void bind_product(py::module_& m) { m.def("multiply", &multiply); }

}  // namespace ooc::python

#else

namespace ooc::python {

void bind_product(py::module_&) {}

}  // namespace ooc::python

#endif
