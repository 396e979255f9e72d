// What the sources of the compiled module share.
//
// The module is thin: it hands numbers, bytes and names to ooc::any_array and ooc::store; slices,
// data types and everything that Python code can do as well is in the package's Python sources.
//
// Threads: every function that may wait for a disk or a server lets go of the interpreter's lock
// (GIL).  A fault in a NumPy loop cannot: the thread that touched the array holds the lock while it
// waits.  So nothing that serves a fault may need the lock.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "oocarray/any_array.hpp"
#include "oocarray/commit.hpp"
#include "oocarray/error.hpp"
#include "oocarray/process_group.hpp"
#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"

namespace ooc::python {

namespace py = pybind11;

using without_gil = py::call_guard<py::gil_scoped_release>;

/// The runtime of the process.  It ends with close() only, never with an object of Python: at the
/// end of the interpreter views may still be touched, and exit() writes back what is modified.
class runtime_handle {
 public:
  explicit runtime_handle(const runtime_options& o) : runtime_(std::make_shared<runtime>(o)) {
    kept() = runtime_;
    owner() = ::getpid();
  }
  runtime& get() const {
    if (!runtime_) throw usage_error(errc::closed, "the runtime has been closed");
    check_process();
    return *runtime_;
  }
  std::weak_ptr<runtime> weak() const noexcept { return runtime_; }
  bool closed() const noexcept { return !runtime_; }
  void close() {
    if (!runtime_) return;
    check_process();
    runtime_.reset();
    const auto last = std::move(kept());  // goes here, without the GIL
    owner() = 0;
  }
  /// Throws usage_error (errc::busy) in a child of fork() whose parent had a runtime: every call could wait for ever.
  static void check_process();

 private:
  static std::shared_ptr<runtime>& kept() {
    static auto* const k = new std::shared_ptr<runtime>;
    return *k;
  }
  /// The process that has a runtime, in which this one may have been forked; 0: none.
  static std::atomic<pid_t>& owner() {
    static std::atomic<pid_t> o{0};
    return o;
  }
  std::shared_ptr<runtime> runtime_;
};

/// f() without the GIL.
template <class F>
auto released(F f) {
  const py::gil_scoped_release r;
  return f();
}

/// As Python has text; a name in a store is any bytes, and what is not UTF-8 becomes surrogates, as
/// in `os`.
py::str text(const std::string& bytes);
py::dict text(const std::map<std::string, std::string>& all);
/// (number, nanoseconds since 1970, attributes), or None.
py::object commit_as_tuple(const std::optional<commit_info>& commit);

void bind_errors(py::module_& m);
void bind_store(py::module_& m);
void bind_array(py::module_& m);
void bind_order(py::module_& m);
void bind_movement(py::module_& m);
void bind_passes(py::module_& m);
void bind_pieces(py::module_& m);
void bind_sweep(py::module_& m);
void bind_product(py::module_& m);
void bind_sparse(py::module_& m);
void bind_elements(py::module_& m);

}  // namespace ooc::python
