// Right-hand sides go through factors as a factorisation's columns do: panels of them are in memory, and all strips
// pass by each.  On ranks each has its rows of the array of right-hand sides; those in memory all compute alike.
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "runtime/algorithm/factor_call.hpp"
#include "runtime/array/direct_array.hpp"

namespace ooc::detail {
namespace {

class factor_solution final : factor_call {
 public:
  factor_solution(const char* what, array_core& factors, std::size_t columns, factor_kernel& kernel,
                  const factor_vectors& v, std::initializer_list<factor_step> steps, const factor_options& o)
      : factor_call(what, factors, v.array ? *v.array : factors,
                    v.array ? std::vector<array_core*>{v.array} : std::vector<array_core*>{}, kernel, o),
        factors_(factors),
        vectors_(v),
        steps_(steps),
        rows_(factors.facts().extents[1]),
        used_(columns) {
    if (v.length != rows_)
      call_.refuse("the vectors have " + std::to_string(v.length) + " elements, and the matrix " +
                   std::to_string(rows_) + " rows; a vector is as long as a row of '" + factors.facts().path + "'");
    if (v.array == &factors) call_.refuse("'" + factors.facts().path + "' cannot be the vectors as well");
    if (v.array) call_.refuse_strangers(*v.array);
    for (int r = 0; v.array && r < call_.ranks(); ++r) {
      const auto [first, last] = v.array->ranks().rows_of(r);
      most_ = std::max(most_, last - first);
      if (r == call_.rank()) own_first_ = first, own_last_ = last;
    }
  }

  factor_statistics run() {
    if (vectors_.count == 0 || used_ == 0) return done_;
    choose({rows_, vectors_.array ? most_ : 1, false, true, size_});
    const std::size_t panels = vectors_.array ? plan_.edges.size() - 1 : 1;
    traffic elements;
    for (const factor_step step : steps_)
      for (std::uint64_t s = 0; s < strips(); ++s)
        elements.read += place(step, s).share(call_.rank(), call_.ranks()).elements();
    const std::uint64_t factors_once = elements.read / steps_.size();
    elements.read *= panels;
    elements.written = std::uint64_t{rows_} * (own_last_ - own_first_);
    elements.read += elements.written;
    done_.passes = panels * steps_.size();
    done_.bound = (factors_once + 2 * elements.written) * size_;
    if (call_.only_plans()) return planned(elements);
    std::optional<direct_array> factors, vectors;
    call_.together([&] {  // what any rank has modified is in the store before one of them reads
      factors.emplace(factors_.shared().local(), access_mode::read, "solution");
      if (vectors_.array) vectors.emplace(vectors_.array->shared().local(), access_mode::write, "solution");
      take_memory();
    });
    call_.expect(elements.all() * size_);
    for (std::size_t n = 0; n < panels; ++n)
      if (vectors)
        take_panel(n, *factors, *vectors);
      else
        take_steps(*factors, {vectors_.memory, 0, 0, rows_, vectors_.count, rows_});
    factors_.shared().pager().count_direct(done_.bytes_read, done_.bytes_written);
    call_.finish();
    return done_;
  }

 private:
  std::uint64_t strips() const { return (used_ + plan_.strip - 1) / plan_.strip; }
  /// Of the strip that comes as number `n` in a step.
  rectangle place(factor_step step, std::uint64_t n) const {
    const bool backwards = step != factor_step::forward;
    const std::size_t first = static_cast<std::size_t>(backwards ? strips() - 1 - n : n) * plan_.strip;
    const std::size_t last = std::min(first + plan_.strip, used_);
    const bool above = step == factor_step::back && !kernel_.below_diagonal_only();
    return {{first, above ? 0 : first}, {last, above ? last : rows_}};
  }

  /// Panel n of each rank's right-hand sides; one that has fewer may have none left.
  void take_panel(std::size_t n, const direct_array& factors, const direct_array& vectors) {
    const auto edge = [&](std::size_t k) { return std::min(own_first_ + plan_.edges[k], own_last_); };
    const factor_panel p{edge(n), edge(n + 1), 0, rows_};
    const rectangle box{{p.first, 0}, {p.last, rows_}};
    direct_transfer transfer;
    call_.together([&] {
      if (box.elements() == 0) return;
      transfer.begin_read(vectors.file(), vectors.box(box.view()), memory_->data());
      transfer.wait();
      count_read(box.elements() * size_);
    });
    take_steps(factors, block(memory_->data(), p, p.first, p.last));
    if (n == 0) call_.mark();
    call_.together([&] {
      if (box.elements() == 0) return;
      transfer.begin_write(vectors.file(), vectors.box(box.view()), memory_->data());
      transfer.wait();
      count_written(box.elements() * size_);
    });
  }

  void take_steps(const direct_array& factors, const matrix_block& vectors) {
    for (const factor_step step : steps_)
      let_pass(
          factors, [this, step](std::uint64_t n) { return place(step, n); }, strips(),
          [&](const matrix_block& strip) {
            require(kernel_.use(step, strip), strip);
            if (vectors.columns != 0) compute(step, strip, {vectors});
          });
  }

  array_core& factors_;
  const factor_vectors vectors_;
  const std::vector<factor_step> steps_;
  const std::size_t rows_;
  const std::size_t used_;                    ///< columns of the factors
  std::size_t most_ = 0;                      ///< right-hand sides that a rank has in the array
  std::size_t own_first_ = 0, own_last_ = 0;  ///< those of this rank
};

}  // namespace

factor_statistics run_factor_steps(const char* what, array_core& factors, std::size_t columns, factor_kernel& kernel,
                                   const factor_vectors& vectors, std::initializer_list<factor_step> steps,
                                   const factor_options& options) {
  return factor_solution(what, factors, columns, kernel, vectors, steps, options).run();
}

}  // namespace ooc::detail
