#include "runtime/algorithm/run_former.hpp"

#include <algorithm>
#include <utility>

namespace ooc::detail {

run_former::run_former(const sort_program& program, const sort_plan& plan, run_part elements,
                       std::byte* memory, algorithm_call& call)
    : program_(program),
      plan_(plan),
      elements_(elements),
      runs_((elements.size() + plan.run - 1) / plan.run),
      call_(call) {
  const std::size_t bytes = plan_.run * program_.element_size();
  for (std::size_t s = 0; s < plan_.slots; ++s, memory += bytes) {
    slots_.push_back(std::make_unique<slot>());
    slots_.back()->memory = memory;
  }
  for (unsigned t = 0; t < plan_.threads; ++t) {
    scratch_.push_back(memory);
    if (program_.needs_scratch()) memory += bytes;
  }
}

std::uint64_t run_former::count_of(std::uint64_t run) const noexcept {
  return std::min<std::uint64_t>(plan_.run, elements_.end - first_of(run));
}

void run_former::form(const element_file& from, const element_file& to) {
  const auto read_or_sort = [&](unsigned thread) noexcept {
    try {
      if (thread == 0)
        read_in_order(from);
      else
        sort_in_turn(to, scratch_[thread - 1]);
    } catch (...) {
      error_.keep();
      const lock_guard lock(mutex_);
      changed_.notify_all();
    }
  };
  run_on_threads(static_cast<unsigned>(scratch_.size()) + 1, read_or_sort, true);
  slots_.clear();  // waits
  error_.rethrow();
}

void run_former::read_in_order(const element_file& from) {
  for (std::uint64_t r = 0; r < runs_ + plan_.slots; ++r) {
    slot& s = *slots_[r % plan_.slots];
    if (r >= plan_.slots && r - plan_.slots < runs_) {
      const std::uint64_t before = r / plan_.slots;
      {
        unique_lock lock(mutex_);
        while (s.sorted < before && !error_.kept()) changed_.wait(lock);
        if (error_.kept()) return;
      }
      s.out.wait();
      call_.advance(2 * count_of(r - plan_.slots) * program_.element_size());
    }
    if (r >= runs_) continue;
    s.in.begin_read(from, first_of(r), count_of(r), s.memory);
    const lock_guard lock(mutex_);
    ++begun_;
    changed_.notify_all();
  }
}

void run_former::sort_in_turn(const element_file& to, std::byte* scratch) {
  for (;;) {
    std::uint64_t r = 0;
    {
      unique_lock lock(mutex_);
      if (error_.kept() || taken_ == runs_) return;
      r = taken_++;
      while (begun_ <= r && !error_.kept()) changed_.wait(lock);
      if (error_.kept()) return;
    }
    slot& s = *slots_[r % plan_.slots];
    s.in.wait();
    if (program_.sort_run(s.memory, count_of(r), scratch)) std::swap(s.memory, scratch);
    s.out.begin_write(to, first_of(r), count_of(r), s.memory);
    const lock_guard lock(mutex_);
    ++s.sorted;
    changed_.notify_all();
  }
}

}  // namespace ooc::detail
