// One call of an algorithm from Python: its options, Ctrl-C, and what functions of the program raise.
//
// The algorithm runs in a thread of its own, without the interpreter's lock (GIL).  The thread that
// has called waits meanwhile: it tells the program's `progress`, and looks for signals, whose
// handlers Python runs in that thread alone.  What either raises ends the algorithm, and comes out of
// run().  An array that ranks share is gone over by the calling thread itself, because it alone may
// call MPI; then signals wait until the algorithm ends.
//
// Owner: the binding.  Threads: made, run() and destroyed by one, with the GIL; call() by any of the
// algorithm's, without.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "array_handle.hpp"
#include "oocarray/algorithm/pass.hpp"

namespace ooc::python {

class algorithm_call {
 public:
  /// `options`: threads, mark, memory, progress, plan.  The arrays cannot be closed until this goes.
  algorithm_call(const py::dict& options, const std::vector<array_handle>& arrays);

  /// f(), which returns something.
  template <class F>
  auto run(F f) {
    std::optional<decltype(f())> result;
    run_apart([&] { result.emplace(f()); });
    return std::move(*result);
  }

  /// f() with the GIL; what it raises is kept for run(), and the algorithm ends.
  template <class F>
  void call(F f) {
    if (!stopped_) {
      const py::gil_scoped_acquire with_lock;
      try {
        f();
        return;
      } catch (py::error_already_set& e) {
        fail(e);
      }
    }
    throw error(std::make_error_code(std::errc::operation_canceled), "ended by the program");
  }

  /// Array number k's memory, in a piece that NumPy sees; with the GIL.
  py::array piece(std::size_t k, const py::dtype& type, const std::byte* data, const sizes& shape, const sizes& strides,
                  bool writable) const;

  bool of_ranks() const noexcept { return of_ranks_; }
  template <class Options>
  Options options() {
    Options o;
    o.threads = threads_;
    o.mark = mark_;
    o.memory = memory_;
    o.plan = plan_;
    o.progress = [this](const pass_progress& p) { return tell(p); };
    return o;
  }
  unsigned threads() const noexcept { return threads_; }
  bool mark() const noexcept { return mark_; }
  bool only_plans() const noexcept { return plan_; }
  /// Tells the program how far it is; false where the algorithm is to end.
  bool tell(const pass_progress& p);

 private:
  void run_apart(const std::function<void()>& f);
  void wait();
  void fail(py::error_already_set& e);

  const unsigned threads_;
  const bool mark_;
  const std::uint64_t memory_;
  const bool plan_;
  const py::object progress_;
  std::vector<py::object> kept_;  ///< exports, one for each array
  bool of_ranks_ = false;

  std::atomic<bool> stopped_{false};
  std::unique_ptr<py::error_already_set> raised_;  ///< changed with the GIL

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<pass_progress> news_;  ///< the calling thread has not told the program yet
  bool ended_ = false;
};

/// What an algorithm did, as a dict.
py::dict figures(const pass_statistics& s);

}  // namespace ooc::python
