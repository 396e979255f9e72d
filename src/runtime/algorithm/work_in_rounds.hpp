// Threads that work in rounds (task_rounds.hpp) until there are no more, or one has failed.
//
//     work_in_rounds(4, next, [&] { return [scratch = ...](std::size_t task) mutable { ... }; });
//
// next() prepares a round and returns its tasks, 0 to stop; it runs while nobody else works.  worker() makes
// what a thread runs each of its tasks with.  After an exception of any of them no more is begun; it comes out
// when all threads have ended.
//
// Threads: makes its own beside the calling one; where fewer can be made, those that there are do the work.
#pragma once

#include <cstddef>
#include <optional>

#include "runtime/algorithm/task_rounds.hpp"
#include "runtime/algorithm/worker_threads.hpp"

namespace ooc::detail {

template <class Next, class Worker>
void work_in_rounds(unsigned threads, Next next, Worker worker) {
  task_rounds rounds;
  first_error error;
  const auto next_or_end = [&]() noexcept -> std::size_t {
    if (error.kept()) return 0;
    try {
      return next();
    } catch (...) {
      error.keep();
      return 0;
    }
  };
  rounds.first(next_or_end());
  run_on_threads(threads, [&](unsigned /*thread*/) noexcept {
    std::optional<decltype(worker())> do_task;
    try {
      do_task.emplace(worker());
    } catch (...) {
      error.keep();
    }
    for (std::size_t task = 0; rounds.claim(task);) {
      try {
        if (!error.kept()) (*do_task)(task);
      } catch (...) {
        error.keep();
      }
      rounds.done(next_or_end);
    }
  });
  error.rethrow();
}

}  // namespace ooc::detail
