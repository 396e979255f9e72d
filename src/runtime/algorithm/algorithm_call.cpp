#include "runtime/algorithm/algorithm_call.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {
namespace {

constexpr std::uint64_t calls_of_progress = 1000;

}  // namespace

algorithm_call::algorithm_call(std::string name, array_core& leader, std::vector<array_core*> written,
                               const pass_options& options)
    : name_(std::move(name)),
      leader_(leader),
      written_(std::move(written)),
      plan_(options.plan),
      mark_(options.mark && !written_.empty() && !plan_),
      called_(plan_                       ? "plan of the " + name_
              : mark_ || written_.empty() ? name_
                                          : name_ + ", without a mark"),
      tell_(options.progress),
      ranks_((leader.check_open(), leader.shared().group().size())),
      threads_(options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency())) {
  for (auto a = written_.begin(); a != written_.end(); ++a) {
    (*a)->check_writable("be written by an algorithm");
    if ((*a)->shared().group().size() != ranks_)
      refuse("'" + (*a)->facts().path + "' is shared by " + std::to_string((*a)->shared().group().size()) +
             " ranks, and '" + leader_.facts().path + "' by " + std::to_string(ranks_) + "; give both the same group");
    if (std::find(written_.begin(), a, *a) != a) refuse("'" + (*a)->facts().path + "' is given twice, and is written");
  }
}

void algorithm_call::refuse(const std::string& why, errc code) const { throw usage_error(code, name_ + ": " + why); }

void algorithm_call::refuse_strangers(const array_core& a) const {
  if (a.shared().written_by_strangers())
    refuse("'" + a.facts().path +
           "' is open together with other processes (options.shared): let one process, or a group of ranks, open it "
           "without, while no other has it open");
}

void algorithm_call::refuse_other_group(const array_core& read) const {
  if (const int n = read.shared().ranks(); n != 1 && n != ranks_)
    refuse("'" + read.facts().path + "' is shared by " + std::to_string(n) + " ranks, and '" + leader_.facts().path +
           "' by " + std::to_string(ranks_) + "; give both the same group");
}

bool algorithm_call::has_same_parts(const array_core& a) const {
  bool same = a.shared().ranks() == ranks_;
  for (int r = 0; same && r < ranks_; ++r) same = a.ranks().rows_of(r) == leader_.ranks().rows_of(r);
  return same;
}

void algorithm_call::refuse_tiles(const array_core& a) const {
  if (a.facts().extents.size() > 1 && !a.shared().local().file_tile().empty())
    refuse("the file of '" + a.facts().path +
           "' has tiles, so its elements do not lie in row-major order; copy it to an array with "
           "file_order::row_major");
}

std::uint64_t algorithm_call::elements_of(const array_core& a) noexcept {
  std::uint64_t n = 1;
  for (const std::uint64_t e : a.facts().extents) n *= e;
  return n;
}

void algorithm_call::refuse_memory(std::uint64_t least, std::uint64_t allowed, std::uint64_t spare) const {
  refuse("it needs at least " + std::to_string(least) + " bytes of memory, and " +
             (allowed < spare ? "options.memory allows " + std::to_string(allowed)
                              : "the budget has " + std::to_string(spare) + " bytes to spare: give the runtime " +
                                    std::to_string(least - spare) + " bytes more memory"),
         errc::budget_too_small);
}

std::vector<algorithm_call::bytes> algorithm_call::on_all(const std::function<bytes()>& f) const {
  if (ranks_ == 1) return {f()};  // and the exception is the program's own
  return leader_.shared().group().together(called_, f);
}

void algorithm_call::begin(std::uint64_t bytes_in_all) {
  expect(bytes_in_all);
  mark();
}

void algorithm_call::expect(std::uint64_t bytes_in_all) {
  const lock_guard lock(mutex_);
  progress_ = {0, bytes_in_all};
  told_ = 0;
}

void algorithm_call::mark() {
  if (!mark_) return;
  const std::string what = name_ + ", by " + ::program_invocation_short_name + "[" + std::to_string(::getpid()) + "]";
  for (array_core* a : written_) a->ranks().set_in_progress(what);
}

void algorithm_call::advance(std::uint64_t more) {
  if (!tell_) return;
  const lock_guard lock(mutex_);
  progress_.done += more;
  const std::uint64_t step = progress_.all / calls_of_progress;
  if (!cancelled_ && (progress_.done - told_ > step || progress_.done >= progress_.all)) {
    told_ = progress_.done;
    cancelled_ = !tell_(progress_);
  }
  if (cancelled_)
    throw error(std::make_error_code(std::errc::operation_canceled),
                name_ + ": the progress callback has cancelled it after " + std::to_string(progress_.done) + " of " +
                    std::to_string(progress_.all) + " bytes");
}

void algorithm_call::finish() {
  if (!mark_) return;
  for (array_core* a : written_) a->ranks().sync(durable);
  for (array_core* a : written_) a->ranks().set_in_progress({});
}

}  // namespace ooc::detail
