// A sort as a sequence of passes: the memory for it, the temporary file, which file each pass reads and
// writes, and when the target is marked.
//
// On ranks each has a *share*: the elements where its rows of the target lie.  It makes runs of its share of
// the source, and merges them as long as there are too many for one merge of all ranks' runs.  Then each finds
// out which parts of all runs make up its share of the result (run_splitter), and merges them into it.
#include "oocarray/detail/sort_engine.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/buffered_stream.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/algorithm/run_former.hpp"
#include "runtime/algorithm/run_merger.hpp"
#include "runtime/algorithm/run_splitter.hpp"
#include "runtime/algorithm/sort_plan.hpp"
#include "runtime/algorithm/thread_team.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "runtime/ranks/temporary_file.hpp"
#include "storage/base/packed.hpp"

namespace ooc::detail {
namespace {

class sort_call {
 public:
  sort_call(array_core& from, array_core& to, const sort_program& program, const sort_options& o)
      : from_(from),
        to_(to),
        program_(program),
        options_(o),
        call_("sort of '" + from.facts().path + "'" + (&from == &to ? "" : " to '" + to.facts().path + "'"), to, {&to},
              {.threads = o.threads, .mark = o.mark, .progress = o.progress, .plan = o.plan}) {
    from.check_open();
    for (const array_core* a : {&from, &to}) call_.refuse_strangers(*a);
    call_.refuse_other_group(from);
    elements_ = algorithm_call::elements_of(from);
    if (algorithm_call::elements_of(to) != elements_)
      call_.refuse("the one has " + std::to_string(elements_) + " elements, the other " +
                   std::to_string(algorithm_call::elements_of(to)) + "; give both as many");
  }

  sort_statistics run() {
    std::optional<direct_array> read, written;
    call_.together([&] {
      for (const array_core* a : {&from_, &to_})
        if (const std::size_t n = a->facts().extents.size(); n > 1 && !options_.flat)
          call_.refuse("'" + a->facts().path + "' has " + std::to_string(n) +
                       " dimensions: options.flat sorts its elements as one sequence in row-major order");
      for (const array_core* a : {&from_, &to_}) call_.refuse_tiles(*a);
    });
    if (elements_ == 0) return done_;
    choose();
    if (call_.only_plans()) return planned();
    call_.together([&] {
      // First what reads: should the other be refused, nothing has been dropped.
      if (&from_ != &to_) read.emplace(from_.shared().local(), access_mode::read, "sort()");
      written.emplace(to_.shared().local(), access_mode::write, "sort()");
      extra_ = to_.shared().pager().reserve(plan_.taken_bytes - plan_.lent_bytes, call_.name());
      memory_.emplace(to_.shared().pager(), plan_.lent_bytes, call_.name());
    });
    const element_file from(read ? *read : *written, program_.element_size());
    const element_file to(*written, program_.element_size());
    call_.expect(2 * bytes() * passes());
    if (plan_.in_memory)
      in_memory(from, to);
    else
      with_runs(from, to);
    call_.finish();
    return done_;
  }

 private:
  using part_list = std::vector<run_part>;

  /// The elements where rows of the target lie.
  run_part share_of(int rank) const {
    const auto [first, last] = to_.ranks().rows_of(rank);
    const std::uint64_t row = elements_ / to_.facts().extents[0];
    return {first * row, last * row};
  }
  run_part share() const { return share_of(call_.rank()); }
  std::uint64_t bytes() const { return share().size() * program_.element_size(); }

  std::uint64_t passes() const { return plan_.in_memory ? 1 : 1 + plan_.merges; }

  sort_statistics planned() const {
    sort_statistics s = done_;
    s.passes = passes();
    s.bytes_read = s.bytes_written = bytes() * passes();
    if (!plan_.in_memory) s.temporary_bytes = elements_ * program_.element_size();
    return s;
  }

  /// The same plan on all ranks, for what the one with the least memory has.
  void choose() {
    facts_ = {0,
              program_.element_size(),
              program_.needs_scratch(),
              program_.allocates(),
              call_.threads(),
              static_cast<std::uint64_t>(call_.ranks())};
    for (int r = 0; r < call_.ranks(); ++r) facts_.elements = std::max(facts_.elements, share_of(r).size());
    const std::uint64_t spare = to_.shared().pager().spare();
    std::uint64_t memory = options_.memory != 0 ? std::min(options_.memory, spare) : spare;
    call_.together([&] {
      if (const std::uint64_t least = least_sort_memory(facts_); memory < least)
        call_.refuse_memory(least, memory, spare);
    });
    if (call_.ranks() > 1) {
      std::uint64_t of_all[] = {memory, facts_.threads};
      // Sorting in different ways, ranks would take different lengths of runs for granted.
      const std::string how = facts_.scratch ? ", by radix" : facts_.allocates ? ", stable" : "";
      to_.shared().group().all_reduce(call_.name() + how, of_all, reduction::min);
      memory = of_all[0];
      facts_.threads = static_cast<unsigned>(of_all[1]);
    }
    plan_ = plan_sort(facts_, memory);
    done_.memory = plan_.taken_bytes;
    // Aggarwal and Vitter, *The Input/Output Complexity of Sorting* (1988): what does not fit in memory is read and
    // written twice, as long as memory holds a block of each run.
    done_.bound = 2 * bytes() * (plan_.in_memory ? 1 : 2);
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
    std::byte* const elements = memory_->data() + sort_plan::outputs * plan_.output * program_.element_size();
    std::byte* const scratch = elements + (facts_.scratch ? bytes() : 0);
    const auto parts = static_cast<std::size_t>(plan_.runs);
    std::vector<sorted_window> sorted(parts);
    thread_team team(plan_.threads);
    {
      buffered_stream reads(parts, parts);
      reads.use(elements, plan_.run * program_.element_size());
      reads.begin_reads(parts, [&](std::uint64_t p, direct_transfer& t, std::byte* part) {
        const std::uint64_t first = p * plan_.run;
        sorted[p].count = static_cast<std::size_t>(std::min<std::uint64_t>(plan_.run, elements_ - first));
        t.begin_read(from, first, sorted[p].count, part);
      });
      team.run(parts, [&](std::size_t p) {
        std::byte* const part = reads.arrived(p);
        std::byte* const other = scratch + (part - elements);
        sorted[p].first = program_.sort_run(part, sorted[p].count, other) ? other : part;
      });
    }
    mark_once();
    run_merger(program_, plan_, memory_->data(), team, call_).merge(sorted, to);
    count_pass();
  }

  /// The first pass ends, and each merge begins, where the last merge ends in the target.
  void with_runs(const element_file& from, const element_file& to) {
    const temporary_file space(to_, elements_ * program_.element_size(), "sort");
    done_.temporary_bytes = elements_ * program_.element_size();
    const element_file temporary(space.file(), program_.element_size());
    std::optional<thread_team> team;
    bool in_target = plan_.merges % 2 == 0;
    if (in_target) mark_once();
    call_.together([&] {
      run_former(program_, plan_, share(), memory_->data(), call_).form(from, in_target ? to : temporary);
      count_pass();
      team.emplace(call_.threads());
    });
    std::vector<part_list> runs;  // of each rank
    for (int r = 0; r < call_.ranks(); ++r) runs.push_back(runs_of(share_of(r)));
    done_.runs = 0;
    for (const part_list& of_rank : runs) done_.runs += of_rank.size();
    for (unsigned m = 1; m < plan_.merges; ++m, in_target = !in_target) {
      if (!in_target) mark_once();
      call_.together([&] {
        run_merger merger(program_, plan_, memory_->data(), *team, call_);
        const part_list& mine = runs[static_cast<std::size_t>(call_.rank())];
        for (std::size_t k = 0; k < mine.size(); k += plan_.fan_in)
          merger.merge(in_target ? to : temporary, std::span(mine).subspan(k, std::min(plan_.fan_in, mine.size() - k)),
                       in_target ? temporary : to, mine[k].first);
        count_pass();
      });
      for (part_list& of_rank : runs) of_rank = merged(of_rank);
    }
    part_list all;
    for (const part_list& of_rank : runs) all.insert(all.end(), of_rank.begin(), of_rank.end());
    if (call_.ranks() > 1) all = parts_of_share(temporary, all);
    mark_once();
    call_.together([&] {
      run_merger(program_, plan_, memory_->data(), *team, call_).merge(temporary, all, to, share().first);
      count_pass();
    });
  }

  part_list runs_of(const run_part& elements) const {
    part_list runs;
    for (std::uint64_t at = elements.first; at < elements.end; at += plan_.run)
      runs.push_back({at, std::min<std::uint64_t>(at + plan_.run, elements.end)});
    return runs;
  }
  part_list merged(const part_list& runs) const {
    part_list longer;
    for (std::size_t k = 0; k < runs.size(); k += plan_.fan_in)
      longer.push_back({runs[k].first, runs[std::min(k + plan_.fan_in, runs.size()) - 1].end});
    return longer;
  }

  /// Of each run what belongs to this rank's share of the result.
  part_list parts_of_share(const element_file& from, const part_list& runs) const {
    const auto told = call_.together([&] {
      storage::packer p;
      p.numbers(run_splitter(program_, from, runs, memory_->data()).split(share().first));
      return p.take();
    });
    const auto rank = static_cast<std::size_t>(call_.rank());
    part_list parts = runs;
    const std::vector<std::uint64_t> begins = storage::unpacker(told[rank]).numbers();
    for (std::size_t k = 0; k < runs.size(); ++k) parts[k].first += begins[k];
    if (rank + 1 == told.size()) return parts;
    const std::vector<std::uint64_t> ends = storage::unpacker(told[rank + 1]).numbers();
    for (std::size_t k = 0; k < runs.size(); ++k) parts[k].end = runs[k].first + ends[k];
    return parts;
  }

  array_core& from_;
  array_core& to_;
  const sort_program& program_;
  const sort_options& options_;
  algorithm_call call_;
  std::uint64_t elements_ = 0;
  sort_facts facts_;
  sort_plan plan_;
  pager::reservation extra_;
  std::optional<lent_memory> memory_;
  bool marked_ = false;
  sort_statistics done_;
};

}  // namespace

sort_statistics run_sort(array_core& from, array_core& to, const sort_program& program, const sort_options& options) {
  return sort_call(from, to, program, options).run();
}

}  // namespace ooc::detail
