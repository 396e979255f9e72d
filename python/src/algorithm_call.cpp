#include "algorithm_call.hpp"

#include <chrono>
#include <exception>
#include <thread>

namespace ooc::python {

algorithm_call::algorithm_call(const py::dict& options, const std::vector<array_handle>& arrays)
    : threads_(option<unsigned>(options, "threads", 0)),
      mark_(option(options, "mark", true)),
      memory_(option<std::uint64_t>(options, "memory", 0)),
      plan_(option(options, "plan", false)),
      progress_(option<py::object>(options, "progress", py::none())) {
  for (const array_handle& a : arrays) {
    if (a.held()->closing || !a.held()->array->is_open())
      throw usage_error(errc::closed, "array '" + a.held()->array->path() + "' has been closed");
    of_ranks_ = of_ranks_ || a.held()->of_ranks;
    kept_.push_back(py::cast(std::make_unique<memory_export>(a.held())));
    // The interpreter may have installed a handler meanwhile.
    if (const auto rt = a.held()->of.lock()) rt->reclaim_faults();
  }
}

void algorithm_call::run_apart(const std::function<void()>& f) {
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      f();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  {
    const py::gil_scoped_release without_lock;
    if (of_ranks_) {
      work();
    } else {
      std::thread worker([&] {
        work();
        const std::lock_guard lock(mutex_);
        ended_ = true;
        changed_.notify_all();
      });
      wait();
      worker.join();
    }
  }
  if (raised_) {
    raised_->restore();
    throw py::error_already_set();
  }
  if (failure) std::rethrow_exception(failure);
}

void algorithm_call::wait() {
  constexpr auto until_signals_are_looked_for = std::chrono::milliseconds(50);
  std::unique_lock lock(mutex_);
  while (!ended_) {
    changed_.wait_for(lock, until_signals_are_looked_for, [&] { return ended_ || news_; });
    if (ended_) return;
    const std::optional<pass_progress> now = news_;
    lock.unlock();
    {
      const py::gil_scoped_acquire with_lock;
      try {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (now && !stopped_) progress_(now->done, now->all);
      } catch (py::error_already_set& e) {
        fail(e);
      }
    }
    lock.lock();
    if (now) {
      news_.reset();
      changed_.notify_all();
    }
  }
}

bool algorithm_call::tell(const pass_progress& p) {
  if (progress_.is_none() || stopped_) return !stopped_;
  if (of_ranks_) {
    const py::gil_scoped_acquire with_lock;
    try {
      progress_(p.done, p.all);
    } catch (py::error_already_set& e) {
      fail(e);
    }
  } else {
    std::unique_lock lock(mutex_);
    news_ = p;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !news_; });
  }
  return !stopped_;
}

void algorithm_call::fail(py::error_already_set& e) {
  // Pieces that variables of its frames refer to go when the algorithm ends, and who shows the exception must not look.
  if (e.trace()) py::module_::import("traceback").attr("clear_frames")(e.trace());
  if (!raised_) raised_ = std::make_unique<py::error_already_set>(std::move(e));
  stopped_ = true;
}

py::array algorithm_call::piece(std::size_t k, const py::dtype& type, const std::byte* data, const sizes& shape,
                                const sizes& strides, bool writable) const {
  py::array a(type, shape, strides, data, kept_[k]);
  if (!writable) a.attr("flags").attr("writeable") = false;
  return a;
}

py::dict figures(const pass_statistics& s) {
  py::dict d;
  d["passes"] = s.passes;
  d["memory"] = s.memory;
  d["bytes_read"] = s.bytes_read;
  d["bytes_written"] = s.bytes_written;
  d["over_bound"] = s.over_bound();
  return d;
}

}  // namespace ooc::python
