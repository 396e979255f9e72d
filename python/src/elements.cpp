// Many elements by their indices.
#include <array>

#include "array_handle.hpp"
#include "numbers.hpp"

namespace ooc::python {

namespace {

using indices = py::array_t<std::size_t, py::array::c_style>;

detail::element_indices listed(const indices& i) {
  return {i.data(), static_cast<std::size_t>(i.size()), 1};
}

void gather(const array_handle& a, const indices& i, py::array& out) {
  const detail::element_indices from = listed(i);
  auto* const to = static_cast<std::byte*>(out.mutable_data());
  const auto n = static_cast<std::size_t>(out.size());
  const memory_export in_use(a.held());  // another thread cannot close the array meanwhile
  const py::gil_scoped_release r;
  a.get().core().elements().gather(from, to, n);
}

void scatter(const array_handle& a, const indices& i, const py::array& values) {
  const detail::element_indices to = listed(i);
  const auto* const from = static_cast<const std::byte*>(values.data());
  const auto n = static_cast<std::size_t>(values.size());
  const memory_export in_use(a.held());  // another thread cannot close the array meanwhile
  const py::gil_scoped_release r;
  a.get().core().elements().scatter(to, from, n);
}

template <class T>
detail::element_operation operation(const std::string& how) {
  if (how == "add")
    return {[](void*, std::byte* e, const std::byte* v) {
              T& x = *reinterpret_cast<T*>(e);
              x = static_cast<T>(x + *reinterpret_cast<const T*>(v));
            },
            nullptr};
  if constexpr (is_complex<T>) {
    throw usage_error(errc::type_mismatch, "complex numbers have no least and no greatest one");
  } else {
    if (how == "minimum")
      return {[](void*, std::byte* e, const std::byte* v) {
                T& x = *reinterpret_cast<T*>(e);
                const T& y = *reinterpret_cast<const T*>(v);
                x = x < y || x != x ? x : y;
              },
              nullptr};
    return {[](void*, std::byte* e, const std::byte* v) {
              T& x = *reinterpret_cast<T*>(e);
              const T& y = *reinterpret_cast<const T*>(v);
              x = x > y || x != x ? x : y;
            },
            nullptr};
  }
}

void accumulate(const array_handle& a, const indices& i, const py::array& values, const std::string& how) {
  const detail::element_indices to = listed(i);
  const auto* const from = static_cast<const std::byte*>(values.data());
  const auto n = static_cast<std::size_t>(values.size());
  const auto op = with_number(a.get().element_type(),
                              [&]<class T>(std::type_identity<T>) { return operation<T>(how); });
  const memory_export in_use(a.held());  // another thread cannot close the array meanwhile
  const py::gil_scoped_release r;
  a.get().core().elements().accumulate(to, from, n, op);
}

}  // namespace

void bind_elements(py::module_& m) {
  m.def("gather", &gather);
  m.def("scatter", &scatter);
  m.def("accumulate", &accumulate);
}

}  // namespace ooc::python
