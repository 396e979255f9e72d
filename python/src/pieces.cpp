// Passes over arrays with a function of Python, which is given contiguous pieces as NumPy arrays.
#include "algorithm_call.hpp"
#include "oocarray/detail/span_engine.hpp"

namespace ooc::python {

namespace {

struct array_in_pass {
  array_handle array;
  py::dtype type;
  bool read, written;
};

/// Whoever computes must not wait for a disk with the GIL.
void bring_in(const std::byte* first, std::size_t bytes) {
  constexpr std::size_t page = 4096;
  for (std::size_t k = 0; k < bytes; k += page) static_cast<void>(*static_cast<const volatile std::byte*>(first + k));
  if (bytes != 0) static_cast<void>(*static_cast<const volatile std::byte*>(first + bytes - 1));
}

/// f(pieces of the inputs..., pieces of the outputs) for each run of elements.
class function_program final : public detail::span_program {
 public:
  function_program(algorithm_call& call, const std::vector<array_in_pass>& arrays, const py::object& f)
      : call_(call), arrays_(arrays), f_(f) {}

  void run(std::size_t piece, unsigned, std::byte* const* p, std::size_t count, const std::size_t*) override {
    for (std::size_t k = 0; k < arrays_.size(); ++k)
      if (arrays_[k].read) bring_in(p[k], count * size_of(k));
    call_.call([&] {
      py::list all;
      for (std::size_t k = 0; k < arrays_.size(); ++k)
        all.append(call_.piece(k, arrays_[k].type, p[k], {count}, {size_of(k)}, arrays_[k].written));
      f_(piece, all);
    });
  }

 private:
  std::size_t size_of(std::size_t k) const { return arrays_[k].array.get().element_size(); }

  algorithm_call& call_;
  const std::vector<array_in_pass>& arrays_;
  const py::object& f_;
};

/// f(number of the piece, [arrays]): pieces of one array follow each other by their numbers; all runs of
/// one piece are given by one thread, in order.
py::dict pass(const char* verb, const py::list& given, const py::object& f, bool fixed, const py::dict& options) {
  std::vector<array_in_pass> arrays;
  std::vector<array_handle> handles;
  for (const py::handle g : given) {
    const auto [a, type, read, written] = g.cast<std::tuple<array_handle, py::dtype, bool, bool>>();
    arrays.push_back({a, type, read, written});
    handles.push_back(a);
  }
  algorithm_call call(options, handles);
  detail::span_request r{.verb = verb, .options = call.options<pass_options>()};
  if (fixed) r.rule = detail::piece_rule::fixed;
  for (const array_in_pass& a : arrays)
    r.arrays.push_back({&a.array.get().core(), a.array.get().element_size(), a.read, a.written});
  function_program program(call, arrays, f);
  return figures(call.run([&] {
    detail::span_run run(r);
    run.begin();
    run.pass(program);
    return run.finish();
  }));
}

}  // namespace

void bind_pieces(py::module_& m) { m.def("pass_", &pass); }

}  // namespace ooc::python
