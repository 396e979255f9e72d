#include "runtime/algorithm/run_former.hpp"

#include <algorithm>

namespace ooc::detail {

run_former::run_former(const sort_program& program, const sort_plan& plan, run_part elements, std::byte* memory,
                       algorithm_call& call)
    : program_(program),
      plan_(plan),
      elements_(elements),
      runs_((elements.size() + plan.run - 1) / plan.run),
      call_(call),
      sorted_(plan.slots),
      stream_(plan.slots, plan.slots) {
  const std::size_t bytes = plan_.run * program_.element_size();
  stream_.use(memory, bytes);
  memory += plan_.slots * bytes;
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
  error_.rethrow();
}

void run_former::read_in_order(const element_file& from) {
  for (std::uint64_t r = 0; r < runs_ + plan_.slots; ++r) {
    if (r >= plan_.slots && r - plan_.slots < runs_) {
      if (!wait_until_sorted(r - plan_.slots)) return;
      stream_.fill(r);
      call_.advance(2 * count_of(r - plan_.slots) * program_.element_size());
    }
    if (r >= runs_) continue;
    stream_.begin_reads(r + 1, [&](std::uint64_t run, direct_transfer& t, std::byte* to) {
      t.begin_read(from, first_of(run), count_of(run), to);
    });
    const lock_guard lock(mutex_);
    ++begun_;
    changed_.notify_all();
  }
}

/// And its write has begun.  False: after an error.
bool run_former::wait_until_sorted(std::uint64_t run) {
  unique_lock lock(mutex_);
  while (sorted_[run % plan_.slots] <= run / plan_.slots && !error_.kept()) changed_.wait(lock);
  return !error_.kept();
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
    if (program_.sort_run(stream_.arrived(r), count_of(r), scratch)) stream_.swap_buffer(r, scratch);
    stream_.write(r).begin_write(to, first_of(r), count_of(r), stream_.buffer(r));
    const lock_guard lock(mutex_);
    ++sorted_[r % plan_.slots];
    changed_.notify_all();
  }
}

}  // namespace ooc::detail
