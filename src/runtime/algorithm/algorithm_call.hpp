// One call of an algorithm: its name in messages, the ranks that make the call together, the marks
// of the files that it writes, and its progress.
//
//     algorithm_call call("copy to 'b'", b, {&b}, options);   // checks that they may be written
//     ... budgets, plans ...
//     call.begin(bytes);                                      // marks the files
//     call.together([&] { ... call.advance(n) ... });         // the passes of this rank
//     call.finish();                                          // durable, and marked no more
//
// The arrays are those of one group (array_core::group()): who throws in together() has all ranks
// throw.
//
// Owner: the function that the templates call.  Threads: advance() by any, also at once; the rest
// by the calling one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/array_core.hpp"
#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

class algorithm_call {
 public:
  using bytes = process_group::bytes;

  /// `name`: "sort of 'a'".  `leader`: an array whose group it is.  `written`: may be empty; must
  /// not contain an array twice.  Throws usage_error where one is closed, read-only or of another
  /// group.
  algorithm_call(std::string name, array_core& leader, std::vector<array_core*> written, const pass_options& options);
  algorithm_call(const algorithm_call&) = delete;
  algorithm_call& operator=(const algorithm_call&) = delete;

  const std::string& name() const noexcept { return name_; }
  array_core& leader() const noexcept { return leader_; }
  int ranks() const noexcept { return ranks_; }
  int rank() const noexcept { return leader_.ranks().rank(); }
  unsigned threads() const noexcept { return threads_; }
  static std::uint64_t elements_of(const array_core& a) noexcept;
  /// Nothing is to be done (options.plan): begin(), mark() and finish() do nothing either.
  bool only_plans() const noexcept { return plan_; }

  /// Throws usage_error: "<name>: <why>".
  [[noreturn]] void refuse(const std::string& why, errc code = errc::invalid_request) const;

  /// Throws usage_error where programs that do not take part may write the array (options.shared).
  void refuse_strangers(const array_core& a) const;

  /// Throws usage_error where an array that is only read is of another group, and not of this process alone.
  void refuse_other_group(const array_core& read) const;
  /// Whether each rank has the same rows of `a` as of the leader; all ranks find the same.
  bool has_same_parts(const array_core& a) const;

  /// Throws usage_error where the elements do not lie in the file in row-major order.
  void refuse_tiles(const array_core& a) const;

  /// Throws usage_error (errc::budget_too_small): it needs at least so many bytes of memory, and may take `allowed`, of
  /// the `spare` ones of the budget.
  [[noreturn]] void refuse_memory(std::uint64_t least, std::uint64_t allowed, std::uint64_t spare) const;

  /// Names something else that must be the same on all ranks.  Called before the first together(), which then
  /// throws usage_error (errc::not_together) on all of them where it is not; so it does for options.mark and
  /// options.plan.
  void must_agree(std::string_view what) { called_ += what; }

  /// Runs f on all ranks; what one throws, all throw.  Returns what each rank's returned (bytes),
  /// or nothing.
  template <class F>
  auto together(F f) const {
    if constexpr (std::is_void_v<decltype(f())>)
      on_all([&] {
        f();
        return bytes{};
      });
    else
      return on_all(f);
  }

  /// Marks the files that are written; advance() will count up to as many bytes on this rank.
  void begin(std::uint64_t bytes_in_all);
  /// The two halves of begin(), where what is written stays whole for a while.
  void expect(std::uint64_t bytes_in_all);
  void mark();
  /// So many bytes more have been read or written.  Throws ooc::error (operation_canceled) where the
  /// callback says so, and ever after.
  void advance(std::uint64_t more);
  /// Makes durable what was written, and takes the marks away; nothing without options.mark.
  void finish();

 private:
  std::vector<bytes> on_all(const std::function<bytes()>& f) const;

  const std::string name_;
  array_core& leader_;
  const std::vector<array_core*> written_;
  const bool plan_;
  const bool mark_;
  std::string called_;  // the name, and what must be the same on all ranks
  const std::function<bool(const pass_progress&)> tell_;
  const int ranks_;
  const unsigned threads_;
  mutex mutex_;
  pass_progress progress_ OOC_GUARDED_BY(mutex_);
  std::uint64_t told_ OOC_GUARDED_BY(mutex_) = 0;
  bool cancelled_ OOC_GUARDED_BY(mutex_) = false;
};

}  // namespace ooc::detail
