// Arrays as Python holds them: who keeps them open, and who looks into their memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "bindings.hpp"

namespace ooc::python {

/// An array and who looks into its memory.  Arrays of Python and exports share it.
struct array_state {
  array_state(std::weak_ptr<runtime> rt, any_array a, std::string store_uuid, const any_array::options_type& o)
      : of(std::move(rt)),
        array(std::make_unique<any_array>(std::move(a))),
        uuid(std::move(store_uuid)),
        of_ranks(o.group != nullptr),
        shared(o.shared) {}
  /// Writes back, for which the interpreter need not wait.
  ~array_state() {
    if (Py_IsInitialized() && PyGILState_Check()) {
      const py::gil_scoped_release r;
      array.reset();
    }
  }
  any_array& get() const {
    runtime_handle::check_process();
    return *array;
  }
  /// Throws usage_error, errc::closed or errc::busy, where another thread takes memory away just now.
  void check_at_rest() const {
    check_not_closing();
    if (moving)
      throw usage_error(errc::busy, "array '" + array->path() +
                                        "' is being resized or rolled back by another thread; use it afterwards");
  }
  void check_not_closing() const {
    if (closing) throw usage_error(errc::closed, "array '" + array->path() + "' is being closed");
  }

  std::weak_ptr<runtime> of;
  std::unique_ptr<any_array> array;
  const std::string uuid;               ///< of the store; empty for a file in place
  const bool of_ranks;                  ///< it was opened with a group
  const bool shared;                    ///< the option
  std::atomic<std::size_t> exports{0};  ///< changed with the GIL, as the following
  std::size_t calls = 0;                ///< those of the exports that in_use() has
  bool closing = false;
  bool moving = false;  ///< resize() or roll_back(): elements come to other places
};

/// What a view of NumPy keeps alive, its `base`, and a call that lets go of the GIL holds: close() refuses meanwhile.
class memory_export {
 public:
  explicit memory_export(std::shared_ptr<array_state> s) : state_(std::move(s)) {
    state_->check_at_rest();
    ++state_->exports;
  }
  ~memory_export() { --state_->exports; }
  memory_export(const memory_export&) = delete;
  memory_export& operator=(const memory_export&) = delete;

 private:
  std::shared_ptr<array_state> state_;
};

/// What an Array of Python has.  Several may share an array: each is closed by itself, and with the last one the array.
struct array_handle {
  /// Throws usage_error (errc::closed) once let_go() was called.
  const std::shared_ptr<array_state>& held() const {
    if (!state) throw usage_error(errc::closed, "array '" + path + "' has been closed");
    return state;
  }
  /// The same, also where another thread is closing it.
  any_array& get() const {
    held()->check_not_closing();
    return state->get();
  }
  /// Leaves the array to the others.
  void let_go() {
    path = held()->array->path();
    state.reset();
  }

  std::shared_ptr<array_state> state;  ///< empty: let go
  std::string path = {};               ///< then
};

/// f(array) without the GIL; another thread cannot close the array meanwhile.
template <class F>
auto in_use(const array_handle& a, F f) {
  struct counted {
    explicit counted(const std::shared_ptr<array_state>& s) : state(s), kept(s) { ++state->calls; }
    ~counted() { --state->calls; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;

    const std::shared_ptr<array_state> state;
    const memory_export kept;
  };
  const counted call(a.held());
  any_array& array = a.get();
  const py::gil_scoped_release r;
  return f(array);
}

using sizes = std::vector<std::size_t>;

template <class Value>
Value option(const py::dict& d, const char* name, Value otherwise) {
  return d.contains(name) ? d[name].cast<Value>() : otherwise;
}

}  // namespace ooc::python
