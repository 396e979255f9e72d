// A sort as a sequence of passes: the memory for it, the temporary file, which file each pass reads and
// writes, and when the target is marked.
#include "oocarray/detail/sort_engine.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/direct_transfer.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/algorithm/run_former.hpp"
#include "runtime/algorithm/run_merger.hpp"
#include "runtime/algorithm/sort_plan.hpp"
#include "runtime/algorithm/thread_team.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {
namespace {

std::uint64_t elements_of(const array_core& a) {
  std::uint64_t n = 1;
  for (const std::uint64_t e : a.facts().extents) n *= e;
  return n;
}

class sort_call {
 public:
  sort_call(array_core& from, array_core& to, const sort_program& program, const sort_options& o)
      : from_(from),
        to_(to),
        program_(program),
        options_(o),
        call_("sort of '" + from.facts().path + "'" +
                  (&from == &to ? "" : " to '" + to.facts().path + "'"),
              to, {&to}, {.threads = o.threads, .mark = o.mark, .progress = o.progress}) {
    from.check_open();
    for (const array_core* a : {&from, &to})
      if (a->shared().written_by_others())
        call_.refuse("'" + a->facts().path +
                     "' is open together with other processes (options.shared, or a group of ranks): let "
                     "one process open it without, while no other has it open, and sort it");
    facts_ = {elements_of(from), program.element_size(), program.needs_scratch(),
              program.allocates(), call_.threads()};
    if (elements_of(to) != facts_.elements)
      call_.refuse("the one has " + std::to_string(facts_.elements) + " elements, the other " +
                   std::to_string(elements_of(to)) + "; give both as many");
    for (const array_core* a : {&from, &to})
      if (const std::size_t n = a->facts().extents.size(); n > 1 && !o.flat)
        call_.refuse("'" + a->facts().path + "' has " + std::to_string(n) +
                     " dimensions: options.flat sorts its elements as one sequence in row-major order");
  }

  sort_statistics run() {
    // First what reads: should the other be refused, nothing has been dropped.
    std::optional<direct_array> read;
    if (&from_ != &to_)
      check(read.emplace(from_.shared().local(), access_mode::read, "sort()"), from_);
    const direct_array written(to_.shared().local(), access_mode::write, "sort()");
    check(written, to_);
    choose();
    const element_file from(read ? *read : written, facts_.element_size);
    const element_file to(written, facts_.element_size);
    call_.expect(2 * bytes() * (plan_.in_memory ? 1 : 1 + plan_.merges));
    if (plan_.in_memory)
      in_memory(from, to);
    else
      with_runs(from, to);
    call_.finish();
    return done_;
  }

 private:
  std::uint64_t bytes() const noexcept { return facts_.elements * facts_.element_size; }

  void check(const direct_array& a, const array_core& core) const {
    if (core.facts().extents.size() > 1 && !a.row_major())
      call_.refuse("the file of '" + core.facts().path +
                   "' has tiles, so its elements do not lie in row-major order; copy it to an array with "
                   "file_order::row_major");
  }

  void choose() {
    const std::uint64_t spare = to_.shared().pager().spare();
    const std::uint64_t memory = options_.memory != 0 ? std::min(options_.memory, spare) : spare;
    if (const std::uint64_t least = least_sort_memory(facts_); memory < least)
      call_.refuse("it needs at least " + std::to_string(least) + " bytes of memory, and " +
                       (memory < spare ? "options.memory allows " + std::to_string(memory)
                                       : "the budget has " + std::to_string(spare) +
                                             " bytes to spare: give the runtime " +
                                             std::to_string(least - spare) + " bytes more memory"),
                   errc::budget_too_small);
    plan_ = plan_sort(facts_, memory);
    extra_ = to_.shared().pager().reserve(plan_.taken_bytes - plan_.lent_bytes, call_.name());
    memory_.emplace(to_.shared().pager(), plan_.lent_bytes, call_.name());
    memory_->advise_huge_pages();
    done_.memory = plan_.taken_bytes;
    done_.runs = plan_.runs;
    done_.merged = plan_.fan_in;
  }

  void count_pass() {
    ++done_.passes;
    done_.bytes_read += bytes();
    done_.bytes_written += bytes();
    to_.shared().pager().count_direct(bytes(), bytes());
  }

  void mark_once() {
    if (!marked_) call_.mark();
    marked_ = true;
  }

  /// The array is read as a whole, each part is sorted, and all are merged on their way to the file.
  void in_memory(const element_file& from, const element_file& to) {
    std::byte* const elements =
        memory_->data() + sort_plan::outputs * plan_.output * facts_.element_size;
    std::byte* const scratch = elements + (facts_.scratch ? bytes() : 0);
    const auto parts = static_cast<std::size_t>(plan_.runs);
    std::vector<sorted_window> sorted(parts);
    thread_team team(plan_.threads);
    {
      std::vector<std::unique_ptr<direct_transfer>> reads;
      for (std::size_t p = 0; p < parts; ++p) {
        const std::uint64_t first = p * std::uint64_t{plan_.run};
        sorted[p].count =
            static_cast<std::size_t>(std::min<std::uint64_t>(plan_.run, facts_.elements - first));
        reads.push_back(std::make_unique<direct_transfer>());
        reads[p]->begin_read(from, first, sorted[p].count, elements + first * facts_.element_size);
      }
      team.run(parts, [&](std::size_t p) {
        const std::size_t at = p * plan_.run * facts_.element_size;
        reads[p]->wait();
        const bool moved = program_.sort_run(elements + at, sorted[p].count, scratch + at);
        sorted[p].first = (moved ? scratch : elements) + at;
      });
    }
    mark_once();
    run_merger(program_, plan_, memory_->data(), team, call_).merge(sorted, to);
    count_pass();
  }

  /// The first pass ends, and each merge begins, where the last merge ends in the target.
  void with_runs(const element_file& from, const element_file& to) {
    const temporary_file space(to_, bytes(), "sort");
    done_.temporary_bytes = bytes();
    const element_file temporary(space.file(), facts_.element_size);
    bool in_target = plan_.merges % 2 == 0;
    if (in_target) mark_once();
    run_former(program_, plan_, facts_.elements, memory_->data(), call_)
        .form(from, in_target ? to : temporary);
    count_pass();
    std::vector<std::uint64_t> bounds;
    for (std::uint64_t r = 0; r < plan_.runs; ++r) bounds.push_back(r * plan_.run);
    bounds.push_back(facts_.elements);
    thread_team team(call_.threads());
    for (unsigned m = 0; m < plan_.merges; ++m, in_target = !in_target) {
      if (!in_target) mark_once();
      bounds = merged(bounds, in_target ? to : temporary, in_target ? temporary : to, team);
      count_pass();
    }
  }

  std::vector<std::uint64_t> merged(const std::vector<std::uint64_t>& bounds, const element_file& from,
                                    const element_file& to, thread_team& team) {
    run_merger merger(program_, plan_, memory_->data(), team, call_);
    std::vector<std::uint64_t> now{0};
    for (std::size_t k = 0; k + 1 < bounds.size(); k += plan_.fan_in) {
      const std::size_t runs = std::min(plan_.fan_in, bounds.size() - 1 - k);
      merger.merge(from, std::span(bounds).subspan(k, runs + 1), to);
      now.push_back(bounds[k + runs]);
    }
    return now;
  }

  array_core& from_;
  array_core& to_;
  const sort_program& program_;
  const sort_options& options_;
  algorithm_call call_;
  sort_facts facts_;
  sort_plan plan_;
  pager::reservation extra_;
  std::optional<lent_memory> memory_;
  bool marked_ = false;
  sort_statistics done_;
};

}  // namespace

sort_statistics run_sort(array_core& from, array_core& to, const sort_program& program,
                         const sort_options& options) {
  return sort_call(from, to, program, options).run();
}

}  // namespace ooc::detail
