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

#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/algorithm/task_rounds.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

template <class Next, class Worker>
void work_in_rounds(unsigned threads, Next next, Worker worker) {
  task_rounds rounds;
  std::atomic<bool> failed{false};
  mutex error_mutex;
  std::exception_ptr error;
  const auto keep_error = [&]() noexcept {
    const lock_guard lock(error_mutex);
    if (!error) error = std::current_exception();
    failed = true;
  };
  const auto next_or_end = [&]() noexcept -> std::size_t {
    if (failed) return 0;
    try {
      return next();
    } catch (...) {
      keep_error();
      return 0;
    }
  };
  const auto work = [&]() noexcept {
    std::optional<decltype(worker())> do_task;
    try {
      do_task.emplace(worker());
    } catch (...) {
      keep_error();
    }
    for (std::size_t task = 0; rounds.claim(task);) {
      try {
        if (!failed.load(std::memory_order_relaxed)) (*do_task)(task);
      } catch (...) {
        keep_error();
      }
      rounds.done(next_or_end);
    }
  };
  rounds.first(next_or_end());
  std::vector<std::thread> others;
  try {
    for (unsigned k = 1; k < threads; ++k) others.emplace_back(work);
  } catch (const std::system_error&) {
  }
  work();
  for (std::thread& t : others) t.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace ooc::detail
