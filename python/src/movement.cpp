// Copies and transpositions; elements keep their type here.
#include "algorithm_call.hpp"
#include "oocarray/detail/copy_engine.hpp"

namespace ooc::python {

namespace {

/// Element from_lower + s of a becomes element to_lower + d of b, where d[k] = s[permutation[k]].
py::dict move_box(const array_handle& a, const array_handle& b, bool transposed, sizes from_lower, sizes to_lower,
                  sizes extents, sizes permutation, const py::dict& options) {
  algorithm_call call(options, {a, b});
  detail::copy_request r;
  r.verb = transposed ? "transposition" : "copy";
  r.from = &a.get().core();
  r.to = &b.get().core();
  r.from_size = r.to_size = a.get().element_size();
  r.from_lower = std::move(from_lower);
  r.to_lower = std::move(to_lower);
  r.extents = std::move(extents);
  r.permutation = std::move(permutation);
  r.kernel = detail::kernel_for_bytes(r.from_size);
  r.options = call.options<pass_options>();
  return figures(call.run([&] { return detail::run_copy(r); }));
}

}  // namespace

void bind_movement(py::module_& m) { m.def("move_box", &move_box); }

}  // namespace ooc::python
