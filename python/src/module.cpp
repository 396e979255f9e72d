#include <chrono>
#include <string_view>

#include "bindings.hpp"
#include "oocarray/detail/chunk_memory.hpp"

namespace ooc::python {

namespace {

py::dict counts(const runtime_stats& s) {
  py::dict d;
  d["hits"] = s.hits;
  d["faults"] = s.faults;
  d["soft_faults"] = s.soft_faults;
  d["write_faults"] = s.write_faults;
  d["evictions"] = s.evictions;
  d["bytes_evicted"] = s.bytes_evicted;
  d["read_ahead_blocks"] = s.read_ahead_blocks;
  d["read_ahead_hits"] = s.read_ahead_hits;
  d["read_ahead_waste"] = s.read_ahead_waste;
  d["loads_avoided"] = s.loads_avoided;
  d["bytes_read"] = s.bytes_read;
  d["bytes_reread"] = s.bytes_reread;
  d["bytes_written"] = s.bytes_written;
  d["read_wait_seconds"] = static_cast<double>(s.read_wait_ns) / 1e9;
  d["write_wait_seconds"] = static_cast<double>(s.write_wait_ns) / 1e9;
  d["budget_bytes"] = s.budget_bytes;
  d["resident_bytes"] = s.resident_bytes;
  return d;
}

void bind_runtime(py::module_& m) {
  py::class_<runtime_handle>(m, "Runtime")
      .def(py::init([](std::uint64_t memory, std::uint64_t block, unsigned read_ahead, double end_deadline,
                       bool write_back_on_signals) {
             runtime_options o;
             o.memory = memory;
             o.block = block;
             o.read_ahead = read_ahead;
             o.end_deadline = std::chrono::milliseconds(static_cast<long>(end_deadline * 1000));
             o.write_back_on_signals = write_back_on_signals;
             return std::make_unique<runtime_handle>(o);
           }),
           py::arg("memory"), py::arg("block"), py::arg("read_ahead"), py::arg("end_deadline"),
           py::arg("write_back_on_signals"))
      .def("stats", [](const runtime_handle& r) { return counts(r.get().stats()); })
      .def("report", [](const runtime_handle& r) { return r.get().report(); })
      .def("reclaim_faults", [](const runtime_handle& r) { r.get().reclaim_faults(); })
      .def("closed", &runtime_handle::closed)
      .def("close", &runtime_handle::close, without_gil());
  m.def("check_process", &runtime_handle::check_process);
  m.def("check_chunk_memory", [](const std::string& what, const std::string& extents, std::uint64_t bytes,
                                 std::uint64_t needed, const std::string& remedy) {
    detail::check_chunk_memory({what, extents, bytes, needed, remedy}, detail::available_memory());
  });
}

}  // namespace

void runtime_handle::check_process() {
  if (const pid_t o = owner(); o != 0 && o != ::getpid())
    throw usage_error(
        errc::busy,
        "this process is a forked child, and its parent had arrays open, which stay with it: close the runtime before "
        "(oocarray.runtime().close()), or start workers otherwise and open the array in each: "
        "multiprocessing.get_context('spawn') or 'forkserver', DataLoader(..., multiprocessing_context='spawn') of "
        "PyTorch, or threads");
}

py::str text(const std::string& bytes) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

py::dict text(const std::map<std::string, std::string>& all) {
  py::dict d;
  for (const auto& [key, value] : all) d[text(key)] = text(value);
  return d;
}

py::object commit_as_tuple(const std::optional<commit_info>& commit) {
  if (!commit) return py::none();
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(commit->time.time_since_epoch());
  return py::make_tuple(commit->number, since.count(), text(commit->attributes));
}

// Python makes the exception, so that it has the classes of Python: see _errors.py.
void bind_errors(py::module_& m) {
  static auto* const make = new py::object(py::none());
  m.def("set_error_maker", [](py::object f) { *make = std::move(f); });
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const error& e) {
      // By name: oocarray._mpi has a category of its own.
      const bool ours = std::string_view(e.code().category().name()) == error_category().name();
      try {
        const py::object made = (*make)(ours ? "ooc" : "errno", e.code().value(), text(e.what()));
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
      } catch (py::error_already_set& failed) {
        failed.restore();
      }
    }
  });
}

}  // namespace ooc::python

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiled part of the package oocarray.";
  // Here, by one thread: pybind11 imports NumPy's C API at its first use, in a static variable that another thread
  // would wait for with the interpreter's lock, which the import lets go of and needs again.
  static_cast<void>(pybind11::detail::npy_api::get());
  ooc::python::bind_errors(m);
  ooc::python::bind_runtime(m);
  ooc::python::bind_store(m);
  ooc::python::bind_array(m);
  ooc::python::bind_order(m);
  ooc::python::bind_movement(m);
  ooc::python::bind_passes(m);
  ooc::python::bind_pieces(m);
  ooc::python::bind_sweep(m);
  ooc::python::bind_product(m);
  ooc::python::bind_sparse(m);
  ooc::python::bind_elements(m);
}
