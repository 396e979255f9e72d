// What factorisations and solutions by them share: memory, threads, and strips of factorised columns that pass by.
//
// On ranks each has columns, or right-hand sides, of its own, and all need the same strips: each reads a share of a
// strip and passes it on.  So ranks meet at each strip, and what one of them throws comes out of all there.
//
// Owner: the function that the templates call, by a class that derives from this.  Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/detail/factor_engine.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/factor_plan.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/algorithm/panel_stream.hpp"
#include "runtime/algorithm/thread_team.hpp"
#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

/// Panels of columns that lie in an array, in memory one after the other.
struct factor_panel {
  std::size_t first = 0, last = 0;  ///< columns
  std::size_t top = 0;              ///< row that its columns begin with
  std::size_t rows = 0;
};

class factor_call {
 public:
  /// `named`: the array of which messages speak.
  factor_call(const char* what, array_core& named, array_core& leader, std::vector<array_core*> written,
              factor_kernel& kernel, const factor_options& o);

 protected:
  ~factor_call() = default;

  struct traffic {
    std::uint64_t read = 0, written = 0;
    std::uint64_t all() const noexcept { return read + written; }
  };

  /// Plans panels of such columns.  Collective: the plan is that of the rank with the least memory.
  void choose(const factor_facts& f);
  /// Takes the memory of the plan off the budget.
  void take_memory();
  /// The report of a plan that moves so many elements.
  factor_statistics planned(const traffic& elements) const;

  void count_read(std::uint64_t bytes);
  void count_written(std::uint64_t bytes);

  /// Lets so many strips of `a` pass by, and calls use(strip) for each, which may change it.  Collective.
  template <class Use>
  void let_pass(const direct_array& a, const panel_stream::place_of& place, std::uint64_t strips, Use use) {
    if (strips == 0) return;
    panel_stream stream(a, size_, place, strips, buffers(), reader());
    for (std::uint64_t n = 0; n <= strips; ++n) {
      call_.together([&] {
        if (n != 0) use(strip_of(stream, n - 1, place(n - 1)));
        if (n < strips) stream.fetch(n, [this](std::uint64_t bytes) { count_read(bytes); });
      });
      if (n < strips) stream.pass_on(n, group(), call_.name(), memory_->owner());
    }
  }

  /// Columns `first` to `last` - 1, in memory from `data` on, of a panel.
  static matrix_block block(std::byte* data, const factor_panel& p, std::size_t first, std::size_t last) {
    return {data, p.top, first, p.rows, last - first, p.rows};
  }

  /// A strip that the kernel has made ready, and columns that threads share: one part, which is cut, or several.
  void compute(factor_step step, const matrix_block& strip, const std::vector<matrix_block>& targets);

  /// Throws usage_error (errc::singular) where not all of the strip's columns can be used.
  void require(std::size_t columns, const matrix_block& strip) const;

  process_group& group() const noexcept { return call_.leader().shared().group(); }
  panel_reader reader() const noexcept { return {call_.rank(), call_.ranks()}; }
  /// Of the strips that pass by; free between two calls of let_pass().
  panel_stream::buffers buffers() const noexcept;

  factor_kernel& kernel_;
  const std::size_t size_;
  algorithm_call call_;
  factor_plan plan_;
  std::optional<lent_memory> memory_;  ///< of a panel, and behind it the buffers
  factor_statistics done_;

 private:
  static matrix_block strip_of(const panel_stream& stream, std::uint64_t n, const rectangle& place);

  const unsigned threads_;
  const std::uint64_t wanted_;                      ///< bytes of memory; 0: what there is
  std::uint64_t lent_bytes_ = 0, extra_bytes_ = 0;  ///< of memory for columns, and for the kernel
  pager::reservation extra_;
  std::optional<thread_team> team_;
};

}  // namespace ooc::detail
