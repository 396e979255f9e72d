// Products and factorisations of matrices, and Fourier transforms, through Eigen where the package was built with it.
#include "algorithm_call.hpp"

#ifdef OOCARRAY_PYTHON_WITH_EIGEN
#include <dlfcn.h>

#include <string_view>

#include "kernels.hpp"

namespace ooc::python {

extern "C" const kernels* oocarray_kernels();

namespace {

#ifdef OOCARRAY_PYTHON_KERNELS_V3
/// Beside this module.
const kernels& load_kernels(const std::string& name) {
  ::Dl_info here{};
  ::dladdr(reinterpret_cast<const void*>(&oocarray_kernels), &here);
  const std::string self = here.dli_fname == nullptr ? "" : here.dli_fname;
  const std::string path = self.substr(0, self.rfind('/') + 1) + name;
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const f = module == nullptr ? nullptr : ::dlsym(module, "oocarray_kernels_v3");
  if (f == nullptr)
    throw usage_error(errc::invalid_request,
                      std::string("a part of the package is missing, install it again: ") + ::dlerror());
  return *reinterpret_cast<const kernels* (*)()>(f)();
}
#endif

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

std::vector<array_handle> arrays_of(std::initializer_list<py::object> all) {
  std::vector<array_handle> arrays;
  for (const py::object& x : all)
    if (py::isinstance<array_handle>(x)) arrays.push_back(x.cast<array_handle>());
  return arrays;
}

/// What `make` gives, which is null for a type that has no such kernel.
template <class Kernel>
Kernel required(Kernel made) {
  if (made == nullptr)
    throw usage_error(errc::type_mismatch, "matrices are of float32, float64, complex64 or complex128");
  return made;
}

/// c = a b; the element type is that of a.
py::dict multiply(const array_handle& a, const py::object& b, const py::object& c, const py::dict& options) {
  algorithm_call call(options, arrays_of({py::cast(a), b, c}));
  const auto from = operand(py::cast(a)), by = operand(b), to = operand(c);
  const auto kernel = required(best_kernels().product(a.get().element_type()));
  const auto o = call.options<multiply_options>();
  return figures(call.run([&] { return detail::run_multiply(from, by, to, *kernel, o); }));
}

factor_method method_of(std::string_view name) {
  if (name == "cholesky") return factor_method::cholesky;
  if (name == "lu") return factor_method::lu;
  if (name == "qr") return factor_method::qr;
  throw usage_error(errc::invalid_request, "there is no factorisation '" + std::string(name) + "'");
}

/// `numbers`: contiguous; pivots of 8 bytes, or tau of the elements' type; of Cholesky's empty.
std::unique_ptr<detail::factor_kernel> factor_kernel_of(const std::string& method, const array_handle& a,
                                                        const py::array& numbers) {
  std::byte* const data = static_cast<std::byte*>(const_cast<void*>(numbers.data()));
  return required(best_kernels().factors(method_of(method), a.get().element_type(),
                                         {data, static_cast<std::size_t>(numbers.nbytes())}));
}

/// `to`: may be `from`.
py::dict factorise(const std::string& method, const array_handle& from, const array_handle& to,
                   const py::array& numbers, const py::dict& options) {
  algorithm_call call(options, arrays_of({py::cast(from), py::cast(to)}));
  const auto kernel = factor_kernel_of(method, from, numbers);
  const auto o = call.options<factor_options>();
  detail::array_core &source = from.get().core(), &target = to.get().core();
  return figures(call.run([&] { return detail::run_factorisation(method.c_str(), source, target, *kernel, o); }));
}

/// `vectors`: the rows of an array, or of a C-contiguous matrix of NumPy.  `what`: solutions, or products with Q or its
/// adjoint; of QR by as many columns as there are numbers.
py::dict use_factors(const std::string& method, const array_handle& f, const py::array& numbers,
                     const py::object& vectors, const std::string& what, const py::dict& options) {
  algorithm_call call(options, arrays_of({py::cast(f), vectors}));
  const auto kernel = factor_kernel_of(method, f, numbers);
  const auto o = call.options<factor_options>();
  const detail::matrix_operand m = operand(vectors);
  const detail::factor_vectors v{m.array, m.memory, m.rows, m.columns};
  detail::array_core& factors = f.get().core();
  const std::size_t columns =
      method_of(method) == factor_method::qr ? static_cast<std::size_t>(numbers.size()) : factors.facts().extents[0];
  const auto take = [&](std::initializer_list<detail::factor_step> steps) {
    return figures(
        call.run([&] { return detail::run_factor_steps(what.c_str(), factors, columns, *kernel, v, steps, o); }));
  };
  using step = detail::factor_step;
  if (what == "product with Q") return take({step::orthogonal});
  if (what == "product with the adjoint of Q") return take({step::forward});
  return take({step::forward, step::back});
}

/// `to`: complex, of the precision of `from`; may be the same.
py::dict fft(const array_handle& from, const array_handle& to, bool inverse, double scale, const py::dict& options) {
  algorithm_call call(options, {from, to});
  const std::string type = from.get().element_type(), complex = type == "f4" || type == "c8" ? "c8" : "c16";
  const auto kernel = best_kernels().lines(type, inverse, scale);
  if (kernel == nullptr || to.get().element_type() != complex)
    throw usage_error(
        errc::type_mismatch,
        "transforms are of float32 or complex64 to complex64, and of float64 or complex128 to complex128");
  const auto o = call.options<pass_options>();
  detail::array_core &source = from.get().core(), &target = to.get().core();
  const char* const name = inverse ? "inverse Fourier transform" : "Fourier transform";
  return figures(call.run([&] { return detail::run_fft(name, source, target, *kernel, o); }));
}

}  // namespace

const kernels& best_kernels() {
#ifdef OOCARRAY_PYTHON_KERNELS_V3
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    static const kernels& fast = load_kernels(OOCARRAY_PYTHON_KERNELS_V3);
    return fast;
  }
#endif
  return *oocarray_kernels();
}

void bind_product(py::module_& m) {
  m.def("multiply", &multiply);
  m.def("factorise", &factorise);
  m.def("use_factors", &use_factors);
  m.def("fft", &fft);
}

}  // namespace ooc::python

#else

namespace ooc::python {

void bind_product(py::module_&) {}

}  // namespace ooc::python

#endif
