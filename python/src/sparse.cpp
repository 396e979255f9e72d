// Products of sparse matrices, three arrays, and vectors of NumPy.
#include "oocarray/algorithm/sparse.hpp"

#include "algorithm_call.hpp"

namespace ooc::python {

namespace {

template <class F>
auto with_index(const std::string& type, F f) {
  if (type == "i4") return f(std::type_identity<std::int32_t>());
  if (type == "i8") return f(std::type_identity<std::int64_t>());
  throw usage_error(errc::type_mismatch, "columns and beginnings of rows are of type i4 or i8, not " + type);
}
template <class F>
auto with_product(const std::string& type, F f) {
  if (type == "f4") return f(std::type_identity<float>());
  if (type == "f8") return f(std::type_identity<double>());
  if (type == "c8") return f(std::type_identity<std::complex<float>>());
  if (type == "c16") return f(std::type_identity<std::complex<double>>());
  throw usage_error(errc::type_mismatch, "products are of f4, f8, c8 and c16, not of " + type);
}

/// y = A x; x and y are C-contiguous, of the type of the values.
py::dict multiply_sparse(const array_handle& values, const array_handle& columns, const array_handle& rows,
                         const py::array& x, py::array& y, const py::dict& options) {
  algorithm_call call(options, {values, columns, rows});
  const detail::sparse_arrays a{&values.get().core(), &columns.get().core(), &rows.get().core(), values.get().size(),
                                rows.get().size() - 1};
  const auto* const from = static_cast<const std::byte*>(x.data());
  auto* const to = static_cast<std::byte*>(y.mutable_data());
  const auto in_x = static_cast<std::size_t>(x.size()), in_y = static_cast<std::size_t>(y.size());
  const auto o = call.options<pass_options>();
  return figures(call.run([&] {
    return with_product(values.get().element_type(), [&]<class T>(std::type_identity<T>) {
      return with_index(columns.get().element_type(), [&]<class Column>(std::type_identity<Column>) {
        return with_index(rows.get().element_type(), [&]<class Row>(std::type_identity<Row>) {
          return detail::run_sparse_product<T, Column, Row>(a, reinterpret_cast<const Row*>(rows.get().data()),
                                                            {reinterpret_cast<const T*>(from), in_x},
                                                            {reinterpret_cast<T*>(to), in_y}, o);
        });
      });
    });
  }));
}

}  // namespace

void bind_sparse(py::module_& m) { m.def("multiply_sparse", &multiply_sparse); }

}  // namespace ooc::python
