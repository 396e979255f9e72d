// Sweeps with a kernel in Python, which is given slabs as NumPy arrays.
#include <cstring>
#include <limits>

#include "algorithm_call.hpp"
#include "oocarray/detail/sweep_engine.hpp"

namespace ooc::python {

namespace {

/// What the program calls; each may be None but for the kernel.
struct functions_of_program {
  py::object kernel, edges, reduce, after;
};

/// kernel(out, slabs): of each field the part of a slab to be computed, and of each field and
/// coefficient the same part of the 2 r + 1 slabs around, wider by the radius in each other dimension.
/// edges(index, out, slabs): the same for a whole slab.  reduce: a ufunc, which combines all numbers that the
/// kernel has returned in a step, in the order of the slabs and of their parts.
class kernel_program final : public detail::sweep_program {
 public:
  kernel_program(algorithm_call& call, const detail::sweep_request& r, std::vector<py::dtype> types,
                 const functions_of_program& functions)
      : call_(call), request_(r), types_(std::move(types)), functions_(functions) {}
  std::vector<double> take_values() { return std::move(values_); }

  void compute(const detail::sweep_piece& p) override {
    call_.call([&] {
      const py::object returned = functions_.kernel(outputs(p), inputs(p, true));
      if (p.reported) keep(p, returned);
    });
  }
  void complete(const detail::sweep_piece& p) override {
    call_.call([&] { functions_.edges(p.index, outputs(p), inputs(p, false)); });
  }
  void begin_values(std::size_t slots, bool) override {
    slots_.resize(slots);
    of_step_.clear();
  }
  void fold(std::size_t slot, std::size_t slabs, std::size_t pieces) override {
    const auto first = slots_.begin() + static_cast<std::ptrdiff_t>(slot);
    of_step_.insert(of_step_.end(), first, first + static_cast<std::ptrdiff_t>(slabs * pieces));
  }
  std::vector<std::byte> folded() override {
    std::vector<std::byte> b(of_step_.size() * sizeof(double));
    if (!b.empty()) std::memcpy(b.data(), of_step_.data(), b.size());
    return b;
  }
  void combine(const std::vector<std::vector<std::byte>>& of_ranks) override {
    std::vector<double> all;
    for (const std::vector<std::byte>& of : of_ranks) {
      const std::size_t before = all.size();
      all.resize(before + of.size() / sizeof(double));
      if (!of.empty()) std::memcpy(all.data() + before, of.data(), of.size());
    }
    call_.call([&] {
      if (all.empty() && functions_.reduce.attr("identity").is_none()) {  // np.maximum of nothing
        values_.push_back(std::numeric_limits<double>::quiet_NaN());
        return;
      }
      const py::array_t<double> numbers(static_cast<py::ssize_t>(all.size()), all.data());
      values_.push_back(functions_.reduce.attr("reduce")(numbers).cast<double>());
    });
  }
  bool report(std::size_t step) override {
    if (functions_.after.is_none()) return true;
    bool go_on = true;
    call_.call([&] {
      const py::object answer = request_.values ? functions_.after(step, values_.back()) : functions_.after(step);
      go_on = !answer.is(py::bool_(false));
    });
    return go_on;
  }

 private:
  /// One number for the part of a slab, or (N = 1) one for each element.
  void keep(const detail::sweep_piece& p, const py::object& returned) {
    const auto numbers = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(returned);
    if (!numbers || returned.is_none())
      throw py::type_error("the kernel of a sweep with reduce= returned " + py::repr(returned).cast<std::string>() +
                           ", which is no number");
    const auto size = static_cast<std::size_t>(numbers.size());
    if (size != 1 && size != p.count)
      throw py::value_error("the kernel of a sweep with reduce= returned " + std::to_string(size) +
                            " numbers: it returns one" +
                            (p.count > 1 ? ", or " + std::to_string(p.count) + ", one for each element" : ""));
    for (std::size_t i = 0; i < p.count; ++i) slots_[p.slot + i] = numbers.data()[size == 1 ? 0 : i];
  }
  std::size_t rank() const noexcept { return request_.radius.size(); }
  /// Of a field, or of a coefficient, which come after them.
  std::size_t size_of(std::size_t number) const noexcept {
    const std::size_t count = request_.fields.size();
    return number < count ? request_.fields[number].element_size : request_.coefficients[number - count].element_size;
  }

  /// `of` may be null: there is no such slab.  `more`: by the radius on either side.
  py::object part(const detail::sweep_piece& p, const std::byte* of, std::size_t number, const std::ptrdiff_t* strides,
                  bool more, bool writable) const {
    if (!of) return py::none();
    const std::size_t size = size_of(number);
    if (rank() == 1) return call_.piece(0, types_[number], of, {p.count}, {size}, writable);
    sizes shape, steps;
    std::ptrdiff_t first = 0;
    for (std::size_t k = 1; k < rank(); ++k) {
      const auto r = static_cast<std::ptrdiff_t>(more ? request_.radius[k] : 0);
      first += (p.lower[k] - r) * strides[k];
      shape.push_back(static_cast<std::size_t>(p.upper[k] - p.lower[k] + 2 * r));
      steps.push_back(static_cast<std::size_t>(strides[k]) * size);
    }
    return call_.piece(0, types_[number], of + first * static_cast<std::ptrdiff_t>(size), shape, steps, writable);
  }

  py::tuple outputs(const detail::sweep_piece& p) const {
    py::tuple all(request_.fields.size());
    for (std::size_t f = 0; f < all.size(); ++f) all[f] = part(p, p.out[f], f, p.out_strides, false, true);
    return all;
  }

  /// In the order 0, 1, ..., r, -r, ..., -1, so that [d] is d places further on in a tuple of Python.
  py::tuple inputs(const detail::sweep_piece& p, bool more) const {
    const std::size_t r = request_.radius[0], around = 2 * r + 1;
    py::tuple all(types_.size());
    for (std::size_t n = 0; n < all.size(); ++n) {
      const std::byte* const* const slabs = p.in + n * around;
      py::tuple of(around);
      for (std::size_t k = 0; k < around; ++k) {
        // N = 1: slabs follow each other from the middle one on.
        const std::byte* const slab =
            rank() == 1 ? slabs[r] + (static_cast<std::ptrdiff_t>(k) - static_cast<std::ptrdiff_t>(r)) *
                                         static_cast<std::ptrdiff_t>(size_of(n))
                        : slabs[k];
        of[(k + r + 1) % around] = part(p, slab, n, p.in_strides, more, false);
      }
      all[n] = std::move(of);
    }
    return all;
  }

  algorithm_call& call_;
  const detail::sweep_request& request_;
  const std::vector<py::dtype> types_;  ///< of fields, then of coefficients
  const functions_of_program& functions_;
  std::vector<double> slots_;    ///< of the parts that are being computed
  std::vector<double> of_step_;  ///< all of one step
  std::vector<double> values_;   ///< of the steps that were reported
};

py::dict sweep(const std::vector<array_handle>& from, const std::vector<array_handle>& to,
               const std::vector<array_handle>& coefficients, std::vector<py::dtype> types, const sizes& radius,
               const std::vector<bool>& periodic, std::size_t steps, std::size_t every, const py::dict& functions,
               const py::dict& options) {
  std::vector<array_handle> all = from;
  all.insert(all.end(), to.begin(), to.end());
  all.insert(all.end(), coefficients.begin(), coefficients.end());
  algorithm_call call(options, all);
  const auto function = [&](const char* name) { return option<py::object>(functions, name, py::none()); };
  const functions_of_program of_program{function("kernel"), function("edges"), function("reduce"), function("after")};
  detail::sweep_request r;
  for (std::size_t f = 0; f < from.size(); ++f)
    r.fields.push_back({&from[f].get().core(), &to[f].get().core(), from[f].get().element_size()});
  for (const array_handle& c : coefficients) r.coefficients.push_back({&c.get().core(), c.get().element_size()});
  r.radius = radius;
  for (const bool p : periodic) r.boundaries.push_back(p ? boundary::periodic : boundary::fixed);
  r.steps = steps;
  r.every = every;
  r.completes = !of_program.edges.is_none();
  r.values = !of_program.reduce.is_none();
  r.keeps_former = option(options, "keeps_former", false);
  r.options = {.fuse = option<std::size_t>(options, "fuse", 0),
               .threads = call.threads(),
               .mark = call.mark(),
               .width = option<std::size_t>(options, "width", 0),
               .piece = option<std::size_t>(options, "piece", 0),
               .commit_every = option<std::size_t>(options, "commit_every", 0),
               .steps_before = option<std::size_t>(options, "steps_before", 0),
               .progress = [&](const pass_progress& p) { return call.tell(p); },
               .plan = call.only_plans()};
  kernel_program program(call, r, std::move(types), of_program);
  const sweep_statistics s = call.run([&] { return detail::run_sweep(r, program); });
  py::dict d = figures(s);
  d["steps"] = s.steps;
  d["fuse"] = s.fuse;
  d["parts"] = s.parts;
  if (r.values) d["values"] = program.take_values();
  return d;
}

}  // namespace

void bind_sweep(py::module_& m) { m.def("sweep", &sweep); }

}  // namespace ooc::python
