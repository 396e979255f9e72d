// Factorisations by columns, left-looking: a panel of columns is in memory, as wide as there is room for; the strips to
// the left of it pass by, each read while the last is used; then the panel's own strips are factorised, and written as
// they are ready.  What a panel is written from is filled with the next one as soon as it has been written.
//
// Right-hand sides go the same way: panels of vectors, which all strips pass by.
#include "oocarray/detail/factor_engine.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/factor_plan.hpp"
#include "runtime/algorithm/kernel_memory.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/algorithm/panel_stream.hpp"
#include "runtime/algorithm/thread_team.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {
namespace {

std::string shape(std::size_t rows, std::size_t columns) {
  return std::to_string(rows) + " by " + std::to_string(columns);
}

/// Panels of columns that lie in an array, in memory one after the other.
struct panel {
  std::size_t first = 0, last = 0;  ///< columns
  std::size_t top = 0;              ///< row that its columns begin with
  std::size_t rows = 0;
};

/// What factorisations and right-hand sides share: memory, threads, and strips that pass by.
class factor_call {
 public:
  factor_call(const char* what, array_core& leader, std::vector<array_core*> written, factor_kernel& kernel,
              const factor_options& o)
      : kernel_(kernel),
        size_(kernel.element_size()),
        call_(std::string(what) + " of '" + leader.facts().path + "'", leader, std::move(written),
              {.threads = o.threads, .mark = o.mark, .progress = o.progress, .plan = o.plan}),
        threads_(kernel.threads_by_itself() ? 1 : call_.threads()),
        wanted_(o.memory) {
    if (call_.ranks() > 1)
      call_.refuse("'" + leader.facts().path + "' is shared by " + std::to_string(call_.ranks()) +
                   " ranks, and factorisations are made by one: open it without a group, while the others have not");
  }

 protected:
  /// Plans panels of such columns.
  void choose(const factor_facts& f) {
    pager& p = call_.leader().shared().pager();
    const std::uint64_t spare = p.spare();
    const std::uint64_t allowed = wanted_ != 0 ? std::min(wanted_, spare) : spare;
    const std::uint64_t all = std::uint64_t{f.rows} * f.columns * size_;
    const std::uint64_t packing = packing_bytes(threads_, all, allowed);
    const std::uint64_t edges = 3 * page_bytes;  // buffers begin with a page
    const std::uint64_t least = least_with_packing(threads_, all, edges + least_factor_memory(f));
    if (allowed < least) call_.refuse_memory(least, allowed, spare);
    plan_ = plan_factorisation(f, allowed - packing - edges);
    extra_bytes_ = packing + plan_.work_elements * size_;
    lent_bytes_ = (plan_.panel_elements + 2 * plan_.buffer_elements) * size_ + edges;
    done_.memory = lent_bytes_ + extra_bytes_;
    done_.panels = plan_.edges.size() - 1;
  }

  /// Takes the memory of the plan off the budget.
  void take_memory() {
    pager& p = call_.leader().shared().pager();
    extra_ = p.reserve(extra_bytes_, call_.name());
    memory_.emplace(p, lent_bytes_, call_.name());
    buffers_ = memory_->data() + in_whole_pages(plan_.panel_elements * size_);
    team_.emplace(threads_);
  }

  struct traffic {
    std::uint64_t read = 0, written = 0;
    std::uint64_t all() const noexcept { return read + written; }
  };
  /// The report of a plan that moves so many elements.
  factor_statistics planned(const traffic& elements) const {
    factor_statistics s = done_;
    s.bytes_read = elements.read * size_;
    s.bytes_written = elements.written * size_;
    return s;
  }

  panel_stream::buffers buffers() const noexcept {
    return {buffers_, 2, in_whole_pages(plan_.buffer_elements * size_)};
  }

  void count_read(std::uint64_t bytes) {
    done_.bytes_read += bytes;
    call_.advance(bytes);
  }
  void count_written(std::uint64_t bytes) {
    done_.bytes_written += bytes;
    call_.advance(bytes);
  }

  /// Columns `first` to `last` - 1 of a panel that begins at `memory`.
  matrix_block block(std::byte* memory, const panel& p, std::size_t first, std::size_t last) const {
    return {memory + (first - p.first) * p.rows * size_, p.top, first, p.rows, last - first, p.rows};
  }

  /// Number `n` of a stream, which is at `place` in the array; the kernel may change it.
  static matrix_block strip_of(const panel_stream& stream, std::uint64_t n, const rectangle& place) {
    const matrix_part m = stream.panel(n);
    return {const_cast<std::byte*>(m.data), place.lower[1], place.lower[0], m.columns, m.rows, m.stride};
  }

  /// A strip that the kernel has made ready, and columns that threads share.
  void compute(factor_step step, const matrix_block& strip, const matrix_block& target) {
    const std::size_t parts = std::min(team_->size() == 1 ? 1 : parts_of_thread * team_->size(), target.columns);
    team_->run(parts, [&](std::size_t p) {
      const std::size_t from = target.columns * p / parts, until = target.columns * (p + 1) / parts;
      matrix_block part = target;
      part.data += from * target.stride * size_;
      part.column += from;
      part.columns = until - from;
      kernel_.compute(step, strip, part);
    });
  }

  /// Where `column` of the matrix, counted from 0, makes it impossible.
  [[noreturn]] void refuse_column(std::size_t column) const {
    call_.refuse(kernel_.below_diagonal_only()
                     ? "the matrix is not positive definite: its first " + std::to_string(column + 1) +
                           " rows and columns are not"
                     : "the matrix is singular: the diagonal has a zero in column " + std::to_string(column),
                 errc::singular);
  }
  void require(std::size_t columns, const matrix_block& strip) const {
    if (columns < strip.columns) refuse_column(strip.column + columns);
  }

  factor_kernel& kernel_;
  const std::size_t size_;
  algorithm_call call_;
  const unsigned threads_;
  const std::uint64_t wanted_;  ///< bytes of memory; 0: what there is
  factor_plan plan_;
  std::uint64_t lent_bytes_ = 0, extra_bytes_ = 0;  ///< of memory for columns, and for the kernel
  pager::reservation extra_;
  std::optional<lent_memory> memory_;
  std::byte* buffers_ = nullptr;
  std::optional<thread_team> team_;
  factor_statistics done_;
};

class factorisation final : factor_call {
 public:
  factorisation(const char* what, array_core& from, array_core& to, factor_kernel& kernel, const factor_options& o)
      : factor_call(what, from, {&to}, kernel, o), from_(from), to_(to) {
    from.check_open();
    const auto& extents = from.facts().extents;
    columns_ = extents[0];
    rows_ = extents[1];
    factorised_ = std::min(columns_, rows_);
    if (to.facts().extents != extents)
      call_.refuse("'" + from.facts().path + "' is " + shape(columns_, rows_) + ", and '" + to.facts().path +
                   "', for the result, " + shape(to.facts().extents[0], to.facts().extents[1]) +
                   "; give one of the same shape");
    call_.refuse_strangers(to);
  }

  factor_statistics run() {
    if (rows_ == 0 || columns_ == 0) return done_;
    choose({rows_, columns_, kernel_.below_diagonal_only(), false, size_});
    const traffic elements = traffic_of_plan();
    done_.passes = 1;  // strips that pass by are columns that have been read
    done_.bound = least_traffic();
    if (call_.only_plans()) return planned(elements);
    take_memory();
    std::optional<direct_array> from;
    if (&from_ != &to_) from.emplace(from_.shared().local(), access_mode::read, "factorisation");
    const direct_array to(to_.shared().local(), access_mode::write, "factorisation");
    source_ = from ? &*from : &to;
    target_ = &to;
    // Nothing is on its way when blocks may be touched again, also after an exception.
    const std::unique_ptr<factorisation, void (*)(factorisation*)> transfers(this, [](factorisation* f) {
      f->reads_.clear();
      f->coming_.clear();
      f->writes_.clear();
    });
    call_.expect(elements.all() * size_);
    for (std::size_t n = 0; n + 1 < plan_.edges.size(); ++n) {
      begin_reads(n, std::numeric_limits<std::uint64_t>::max());
      go_left_to_right(n);
    }
    from_.shared().pager().count_direct(done_.bytes_read, done_.bytes_written);
    call_.finish();
    return done_;
  }

 private:
  std::size_t panels() const noexcept { return plan_.edges.size() - 1; }
  panel panel_at(std::size_t n) const {
    const std::size_t first = plan_.edges[n], top = kernel_.below_diagonal_only() ? first : 0;
    return {first, plan_.edges[n + 1], top, rows_ - top};
  }
  /// Of a strip of the panel: one thread factorises it, so they are narrower than those that pass by.
  std::size_t strip_end(std::size_t first, std::size_t limit) const {
    return std::min(first + std::max(plan_.strip / 4, narrowest_strip), limit);
  }
  /// Of a strip that passes by a panel.
  rectangle passing(std::uint64_t strip, const panel& by) const {
    const std::size_t first = static_cast<std::size_t>(strip) * plan_.strip;
    return {{first, std::max(first, by.top)}, {std::min(first + plan_.strip, factorised_), rows_}};
  }
  std::size_t passing_by(const panel& p) const {
    return (std::min(p.first, factorised_) + plan_.strip - 1) / plan_.strip;
  }

  traffic traffic_of_plan() const {
    traffic elements;
    for (std::size_t n = 0; n < panels(); ++n) {
      const panel p = panel_at(n);
      elements.written += std::uint64_t{p.rows} * (p.last - p.first);
      for (std::uint64_t s = 0; s < passing_by(p); ++s) elements.read += passing(s, p).elements();
    }
    elements.read += elements.written;
    return elements;
  }

  /// n^3 / (3 sqrt(2) sqrt(M)) elements for Cholesky (Beaumont and others, *I/O-Optimal Algorithms for Symmetric Linear
  /// Algebra Kernels*, 2022), and 2 / sqrt(M) for each multiplication of LU (Kwasniewski and others, *On the Parallel
  /// I/O Optimality of Linear Algebra Kernels*, 2021); of QR that is not proven.  And the matrix once, read and
  /// written.
  std::uint64_t least_traffic() const {
    const double longer = static_cast<double>(std::max(rows_, columns_)), n = static_cast<double>(factorised_);
    const double memory = static_cast<double>(done_.memory / size_);
    const bool triangle = kernel_.below_diagonal_only();
    const double products = n * n * (longer - n / 3) / 2;  // of LU; of QR twice as many
    const double often = triangle ? n * n * n / (3 * std::sqrt(2 * memory)) : 2 * products / std::sqrt(memory);
    const double once = triangle ? n * (n + 1) : 2 * longer * n;
    return static_cast<std::uint64_t>(std::max(once, often)) * size_;
  }

  /// Begins to read the strips of panel n that end before `free` bytes of the panels' memory.
  void begin_reads(std::size_t n, std::uint64_t free) {
    if (n >= panels()) return;
    const panel p = panel_at(n);
    if (reading_ != n) {
      reading_ = n;
      read_until_ = p.first;
      coming_.clear();
    }
    while (read_until_ < p.last) {
      const std::size_t end = strip_end(read_until_, p.last);
      if ((end - p.first) * p.rows * size_ > free) return;
      const rectangle box{{read_until_, p.top}, {end, rows_}};
      coming_.emplace_back().begin_read(source_->file(), source_->box(box.view()),
                                        block(memory_->data(), p, read_until_, end).data);
      read_until_ = end;
    }
  }

  void go_left_to_right(std::size_t n) {
    const panel p = panel_at(n);
    reads_.swap(coming_);
    std::optional<panel_stream> strips;
    if (passing_by(p) != 0)
      strips.emplace(
          *target_, size_, [&, p](std::uint64_t s) { return passing(s, p); }, passing_by(p), buffers());
    for (direct_transfer& r : reads_) r.wait();
    count_read(std::uint64_t{p.rows} * (p.last - p.first) * size_);
    if (source_ != target_ && kernel_.below_diagonal_only()) clear_above(p);
    for (std::uint64_t s = 0; s < passing_by(p); ++s) {
      strips->fetch(s, [&](std::uint64_t bytes) { count_read(bytes); });
      const matrix_block strip = strip_of(*strips, s, passing(s, p));
      kernel_.use(factor_step::update, strip);
      compute(factor_step::update, strip, block(memory_->data(), p, p.first, p.last));
    }
    factorise(n, p);
  }

  void factorise(std::size_t n, const panel& p) {
    constexpr std::size_t behind = 2;  // strips that are on their way to the file while others are computed
    std::vector<std::uint64_t> ends;
    writes_.clear();
    const auto written = [&](std::size_t strip) {
      writes_[strip].wait();
      begin_reads(n + 1, ends[strip]);
    };
    for (std::size_t first = p.first; first < p.last;) {
      const std::size_t end = strip_end(first, p.last), until = std::max(first, std::min(end, factorised_));
      if (first < until) {
        const matrix_block strip = block(memory_->data(), p, first, until);
        require(kernel_.factorise(strip), strip);
        if (until < p.last) compute(factor_step::update, strip, block(memory_->data(), p, until, p.last));
        kernel_.keep(strip);
      }
      if (n == 0 && first == 0) call_.mark();
      const rectangle box{{first, p.top}, {end, rows_}};
      writes_.emplace_back().begin_write(target_->file(), target_->box(box.view()),
                                         block(memory_->data(), p, first, end).data);
      count_written(box.elements() * size_);
      ends.push_back((end - p.first) * p.rows * size_);
      if (writes_.size() > behind) written(writes_.size() - 1 - behind);
      first = end;
    }
    for (std::size_t s = writes_.size() - std::min(behind, writes_.size()); s < writes_.size(); ++s) written(s);
  }

  void clear_above(const panel& p) {
    for (std::size_t c = p.first + 1; c < p.last; ++c)
      std::fill_n(block(memory_->data(), p, c, c + 1).data, (c - p.top) * size_, std::byte{0});
  }

  array_core &from_, &to_;
  std::size_t rows_ = 0, columns_ = 0, factorised_ = 0;
  const direct_array* source_ = nullptr;
  const direct_array* target_ = nullptr;
  std::deque<direct_transfer> reads_;   ///< of the panel in memory
  std::deque<direct_transfer> coming_;  ///< of panel `reading_`
  std::deque<direct_transfer> writes_;  ///< of the panel in memory
  std::size_t reading_ = std::numeric_limits<std::size_t>::max();
  std::size_t read_until_ = 0;  ///< its columns whose reads have begun
};

class factor_solution final : factor_call {
 public:
  factor_solution(const char* what, array_core& factors, factor_kernel& kernel, const factor_vectors& v,
                  std::initializer_list<factor_step> steps, const factor_options& o)
      : factor_call(what, factors, v.array ? std::vector<array_core*>{v.array} : std::vector<array_core*>{}, kernel, o),
        factors_(factors),
        vectors_(v),
        steps_(steps) {
    factors.check_open();
    const auto& extents = factors.facts().extents;
    columns_ = extents[0];
    rows_ = extents[1];
    factorised_ = std::min(columns_, rows_);
    if (v.length != rows_)
      call_.refuse("the vectors have " + std::to_string(v.length) + " elements, and the matrix " +
                   std::to_string(rows_) + " rows; a vector is as long as a row of '" + factors.facts().path + "'");
    if (columns_ > rows_ && std::find(steps_.begin(), steps_.end(), factor_step::back) != steps_.end())
      call_.refuse("the matrix has " + std::to_string(columns_) + " columns and " + std::to_string(rows_) +
                   " rows: with more columns than rows there is no single solution");
    if (v.array == &factors) call_.refuse("'" + factors.facts().path + "' cannot be the vectors as well");
    if (v.array) call_.refuse_strangers(*v.array);
  }

  factor_statistics run() {
    if (vectors_.count == 0 || factorised_ == 0) return done_;
    choose({rows_, vectors_.array ? vectors_.count : 1, false, true, size_});
    const std::size_t panels = vectors_.array ? plan_.edges.size() - 1 : 1;
    traffic elements;
    for (const factor_step step : steps_)
      for (std::uint64_t s = 0; s < strips(); ++s) elements.read += place(step, s).elements();
    const std::uint64_t factors_once = elements.read / steps_.size();
    elements.read *= panels;
    if (vectors_.array) elements.written = std::uint64_t{rows_} * vectors_.count;
    elements.read += elements.written;
    done_.passes = panels * steps_.size();
    done_.bound = (factors_once + 2 * elements.written) * size_;
    if (call_.only_plans()) return planned(elements);
    take_memory();
    const direct_array factors(factors_.shared().local(), access_mode::read, "solution");
    std::optional<direct_array> vectors;
    if (vectors_.array) vectors.emplace(vectors_.array->shared().local(), access_mode::write, "solution");
    call_.expect(elements.all() * size_);
    for (std::size_t n = 0; n < panels; ++n) {
      if (!vectors) {
        take_steps(factors, {vectors_.memory, 0, 0, rows_, vectors_.count, rows_});
        continue;
      }
      const panel p{plan_.edges[n], plan_.edges[n + 1], 0, rows_};
      const rectangle box{{p.first, 0}, {p.last, rows_}};
      direct_transfer transfer;
      transfer.begin_read(vectors->file(), vectors->box(box.view()), memory_->data());
      transfer.wait();
      count_read(box.elements() * size_);
      take_steps(factors, block(memory_->data(), p, p.first, p.last));
      if (n == 0) call_.mark();
      transfer.begin_write(vectors->file(), vectors->box(box.view()), memory_->data());
      transfer.wait();
      count_written(box.elements() * size_);
    }
    factors_.shared().pager().count_direct(done_.bytes_read, done_.bytes_written);
    call_.finish();
    return done_;
  }

 private:
  std::uint64_t strips() const { return (factorised_ + plan_.strip - 1) / plan_.strip; }
  /// Of the strip that comes as number `n` in a step.
  rectangle place(factor_step step, std::uint64_t n) const {
    const bool backwards = step != factor_step::forward;
    const std::size_t first = static_cast<std::size_t>(backwards ? strips() - 1 - n : n) * plan_.strip;
    const std::size_t last = std::min(first + plan_.strip, factorised_);
    const bool above = step == factor_step::back && !kernel_.below_diagonal_only();
    return {{first, above ? 0 : first}, {last, above ? last : rows_}};
  }

  void take_steps(const direct_array& factors, const matrix_block& vectors) {
    for (const factor_step step : steps_) {
      panel_stream stream(
          factors, size_, [&](std::uint64_t n) { return place(step, n); }, strips(), buffers());
      for (std::uint64_t n = 0; n < strips(); ++n) {
        stream.fetch(n, [&](std::uint64_t bytes) { count_read(bytes); });
        const matrix_block strip = strip_of(stream, n, place(step, n));
        require(kernel_.use(step, strip), strip);
        compute(step, strip, vectors);
      }
    }
  }

  array_core& factors_;
  const factor_vectors vectors_;
  const std::vector<factor_step> steps_;
  std::size_t rows_ = 0, columns_ = 0, factorised_ = 0;
};

}  // namespace

factor_statistics run_factorisation(const char* what, array_core& from, array_core& to, factor_kernel& kernel,
                                    const factor_options& options) {
  return factorisation(what, from, to, kernel, options).run();
}

factor_statistics run_factor_steps(const char* what, array_core& factors, factor_kernel& kernel,
                                   const factor_vectors& vectors, std::initializer_list<factor_step> steps,
                                   const factor_options& options) {
  return factor_solution(what, factors, kernel, vectors, steps, options).run();
}

}  // namespace ooc::detail
