// Many elements by their indices.
#include <array>

#include "array_handle.hpp"
#include "numbers.hpp"
#include "oocarray/detail/resident_element.hpp"

namespace ooc::python {

namespace {

/// First called while the module is made, before there are threads.
PyTypeObject* integer_of_numpy() {
  static PyObject* const type = py::object(py::module_::import("numpy").attr("integer")).release().ptr();
  return reinterpret_cast<PyTypeObject*>(type);
}

/// An index in Python, from 0 on; false where it is none, or outside.
bool is_index(PyObject* given, std::size_t extent, std::size_t& i) {
  if (!PyLong_CheckExact(given) && !PyObject_TypeCheck(given, integer_of_numpy())) return false;
  const Py_ssize_t n = PyNumber_AsSsize_t(given, PyExc_IndexError);
  if (n == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;  // too large, or a timedelta64
  }
  i = static_cast<std::size_t>(n < 0 ? n + static_cast<Py_ssize_t>(extent) : n);
  return i < extent;
}

/// The place of one element of `a`, whose dimensions `key` names in their order; nullptr: it is something else.
const std::byte* place_of(const any_array& a, PyObject* key) {
  const bool many = PyTuple_CheckExact(key);
  if (a.rank() != (many ? static_cast<std::size_t>(PyTuple_GET_SIZE(key)) : 1)) return nullptr;
  const sizes extents = a.extents(), strides = a.strides();
  const std::byte* place = a.data();
  for (std::size_t d = 0; d < extents.size(); ++d) {
    std::size_t i = 0;
    if (!is_index(many ? PyTuple_GET_ITEM(key, static_cast<Py_ssize_t>(d)) : key, extents[d], i)) return nullptr;
    place += i * strides[d];
  }
  return place;
}

/// One element that is in memory, as a value of NumPy; None where it is not, and for what is no index of an element.
/// Touches nothing that could be a fault: no view need be made, no handler of another library be looked for.
py::object element(const array_handle& a, const py::handle& key, const py::dtype& type) {
  const any_array& array = a.get();
  if (a.state->moving || !array.is_open() || array.layout() != any_array::memory_layout::right) return py::none();
  const std::byte* const place = place_of(array, key.ptr());
  if (!place || !detail::is_mapped(array.core(), place)) return py::none();
  return py::object(py::array(type, sizes{}, sizes{}, place)[py::tuple()]);
}

using indices = py::array_t<std::size_t, py::array::c_style>;

detail::element_indices listed(const indices& i) { return {i.data(), static_cast<std::size_t>(i.size()), 1}; }

void gather(const array_handle& a, const indices& i, py::array& out) {
  const detail::element_indices from = listed(i);
  auto* const to = static_cast<std::byte*>(out.mutable_data());
  const auto n = static_cast<std::size_t>(out.size());
  in_use(a, [&](any_array& array) { array.core().elements().gather(from, to, n); });
}

void scatter(const array_handle& a, const indices& i, const py::array& values) {
  const detail::element_indices to = listed(i);
  const auto* const from = static_cast<const std::byte*>(values.data());
  const auto n = static_cast<std::size_t>(values.size());
  in_use(a, [&](any_array& array) { array.core().elements().scatter(to, from, n); });
}

/// `values`: as many as the box has elements, of the array's type; C-contiguous.
void write_box(const array_handle& a, const sizes& lower, const sizes& upper, const py::array& values) {
  const auto* const from = static_cast<const std::byte*>(values.data());
  in_use(a, [&](any_array& array) { array.core().write({lower, upper}, from); });
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
  const auto op =
      with_number(a.get().element_type(), [&]<class T>(std::type_identity<T>) { return operation<T>(how); });
  in_use(a, [&](any_array& array) { array.core().elements().accumulate(to, from, n, op); });
}

}  // namespace

void bind_elements(py::module_& m) {
  integer_of_numpy();
  m.def("element", &element);
  m.def("gather", &gather);
  m.def("scatter", &scatter);
  m.def("accumulate", &accumulate);
  m.def("write", &write_box);
}

}  // namespace ooc::python
