// Sorting, and looking up in what is sorted.
#include "algorithm_call.hpp"
#include "element_order.hpp"

namespace ooc::python {

namespace {

using fields = std::vector<std::tuple<char, std::size_t, std::size_t, std::size_t>>;

element_order order_of(const fields& given, bool descending) {
  std::vector<key_field> all;
  for (const auto& [kind, offset, in_key, size] : given) all.push_back({kind, offset, in_key, size});
  return {std::move(all), descending};
}

sort_options options_of(algorithm_call& call) {
  auto o = call.options<sort_options>();
  o.flat = true;  // Python has asked whether that is meant
  return o;
}

py::dict sort(const array_handle& a, const array_handle& b, const fields& by, bool descending,
              const py::dict& options) {
  algorithm_call call(options, {a, b});
  const element_order order = order_of(by, descending);
  const auto program = program_for(order, a.get().element_size());
  const sort_statistics s =
      call.run([&] { return detail::run_sort(a.get().core(), b.get().core(), *program, options_of(call)); });
  py::dict d = figures(s);
  d["runs"] = s.runs;
  d["merged"] = s.merged;
  d["temporary_bytes"] = s.temporary_bytes;
  return d;
}

bool is_sorted(const array_handle& a, const fields& by, bool descending, const py::dict& options) {
  algorithm_call call(options, {a});
  const element_order order = order_of(by, descending);
  const auto program = program_for(order, a.get().element_size());
  return call.run([&] { return detail::run_is_sorted(a.get().core(), *program, options_of(call)); });
}

/// `places`: as many 64-bit integers as there are keys.
void search(const array_handle& a, const fields& by, bool descending, const py::bytes& keys, std::size_t key_size,
            bool after_equal, py::array& places, const py::dict& options) {
  algorithm_call call(options, {a});
  const element_order order = order_of(by, descending);
  const std::string_view packed = keys;
  const auto count = packed.size() / key_size;
  auto* const out = static_cast<std::int64_t*>(places.mutable_data());
  call.run([&] {
    key_search program(order, a.get().element_size(), reinterpret_cast<const std::byte*>(packed.data()), count,
                       key_size, after_equal);
    detail::run_search(a.get().core(), program, options_of(call));
    std::copy(program.places().begin(), program.places().end(), out);
    return true;
  });
}

}  // namespace

void bind_order(py::module_& m) {
  m.def("sort", &sort);
  m.def("is_sorted", &is_sorted);
  m.def("search", &search);
}

}  // namespace ooc::python
