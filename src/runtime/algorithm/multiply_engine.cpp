// A product as a sequence of tiles: panels that are read ahead, parts of a tile for the threads, parts of
// the result that are written behind.
//
// A *step* is one panel of b, multiplied into one tile.  On ranks each has its rows of c, cut into tiles of the same
// shape and number, so that all are at the same step: they need the same panel of b, and meet before each.
#include "oocarray/detail/multiply_engine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/buffered_stream.hpp"
#include "runtime/algorithm/kernel_memory.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/algorithm/multiply_plan.hpp"
#include "runtime/algorithm/panel_stream.hpp"
#include "runtime/algorithm/thread_team.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {
namespace {

class multiply_call {
 public:
  multiply_call(const matrix_operand& a, const matrix_operand& b, const matrix_operand& c,
                const multiply_kernel& kernel, const multiply_options& o)
      : a_(a),
        b_(b),
        c_(c),
        kernel_(kernel),
        size_(kernel.element_size()),
        call_("product of '" + a.array->facts().path + "'" +
                  (b.array ? " and '" + b.array->facts().path + "'" : " and vectors"),
              c.array ? *c.array : *a.array, written(c),
              {.threads = o.threads, .mark = o.mark, .progress = o.progress, .plan = o.plan}),
        threads_(kernel.threads_by_itself() ? 1 : call_.threads()) {
    a.array->check_open();
    if (b.array) b.array->check_open();
    if (a.columns != b.rows || c.rows != a.rows || c.columns != b.columns)
      call_.refuse(shape(a) + " times " + shape(b) + " into " + shape(c) +
                   " is no product of matrices; of m by k and k by n it is m by n");
    if (c.array && (c.array == a.array || c.array == b.array))
      call_.refuse("'" + c.array->facts().path + "' is a factor, and cannot be the product as well");
    if (c.array) call_.refuse_strangers(*c.array);
    if (b.memory && c.memory && std::less<>()(b.memory, c.memory + c.rows * c.columns * size_) &&
        std::less<>()(c.memory, b.memory + b.rows * b.columns * size_))
      call_.refuse("x and y overlap, and y is written while x is read; give y memory of its own");
    for (const matrix_operand* m : {&a, &b})
      if (m->array && call_.ranks() > 1) call_.refuse_other_group(*m->array);
    for (int r = 0; r < call_.ranks(); ++r) {
      const auto [first, last] = call_.leader().ranks().rows_of(r);
      most_rows_ = std::max(most_rows_, last - first);
      if (r == call_.rank()) rows_ = {first, last};
    }
    wanted_ = o.memory;
  }

  multiply_statistics run() {
    if (most_rows_ == 0) return done_;
    choose();
    if (call_.only_plans()) return done_;
    std::optional<direct_array> a, b, c;
    call_.together([&] {  // what any rank has modified is in the store before one of them reads
      a.emplace(a_.array->shared().local(), access_mode::read, "multiply()");
      if (b_.array) b.emplace(b_.array->shared().local(), access_mode::read, "multiply()");
      if (c_.array) c.emplace(c_.array->shared().local(), access_mode::write, "multiply()");
      reserve();
      team_.emplace(threads_);
      writes_.emplace(parts_of_thread * team_->size(), 0);
    });
    std::byte* const panels_a =
        memory_->data() + (c_.array ? in_whole_pages(plan_.tile_rows * plan_.tile_columns * size_) : 0);
    const std::size_t bytes_a = in_whole_pages(plan_.tile_rows * plan_.depth_a * size_);
    std::byte* const panels_b = panels_a + plan_.buffers_a * bytes_a;
    const std::size_t bytes_b = in_whole_pages(plan_.depth_b * plan_.tile_columns * size_);
    const std::uint64_t steps = down_ * across_ * deep_b_;
    panel_stream stream_a(*a, size_, [this](std::uint64_t n) { return place_a(n); },
                          (rows_.size() + plan_.tile_rows - 1) / plan_.tile_rows *
                              (plan_.depth_a == facts_.depth ? 1 : across_ * deep_a_),
                          {panels_a, plan_.buffers_a, bytes_a});
    std::optional<panel_stream> stream_b;
    if (b)
      stream_b.emplace(
          *b, size_, [this](std::uint64_t n) { return place_b(n); }, plan_.buffers_b == 1 ? 1 : steps,
          panel_stream::buffers{panels_b, plan_.buffers_b, bytes_b}, reader());
    // Nothing is on its way to c when its blocks may be touched again, also after an exception.
    const std::unique_ptr<multiply_call, void (*)(multiply_call*)> written(
        this, [](multiply_call* m) { m->writes_.reset(); });
    call_.expect(done_.bytes_read + done_.bytes_written);
    if (stream_b)
      multiply_together(steps, stream_a, *stream_b, c ? &*c : nullptr);
    else
      call_.together([&] {
        for (std::uint64_t s = 0; s < steps; ++s) multiply_step(s, stream_a, nullptr, nullptr);
      });
    a_.array->shared().pager().count_direct(done_.bytes_read, done_.bytes_written);
    if (!c && call_.ranks() > 1) pass_on_result();
    call_.finish();
    return done_;
  }

 private:
  struct grid {
    std::size_t down, across;
  };
  struct interval {
    std::size_t first = 0, last = 0;
    std::size_t size() const noexcept { return last - first; }
  };

  static std::vector<array_core*> written(const matrix_operand& c) {
    return c.array ? std::vector<array_core*>{c.array} : std::vector<array_core*>{};
  }
  static std::string shape(const matrix_operand& m) {
    return (m.array ? "'" + m.array->facts().path + "', " : std::string()) + std::to_string(m.rows) + " by " +
           std::to_string(m.columns) + ",";
  }

  std::uint64_t factor_bytes() const {
    return (std::uint64_t{a_.rows} * a_.columns + std::uint64_t{b_.rows} * b_.columns) * size_;
  }

  panel_reader reader() const noexcept { return {call_.rank(), call_.ranks()}; }

  /// The same plan on all ranks, for what the one with the least memory has.
  void choose() {
    facts_ = {most_rows_, a_.columns, b_.columns, size_, !b_.array, !c_.array};
    const std::uint64_t spare = a_.array->shared().pager().spare();
    const std::uint64_t memory = wanted_ != 0 ? std::min(wanted_, spare) : spare;
    const std::uint64_t edges = 6 * page_bytes;  // buffers begin with a page
    kernel_bytes_ = packing_bytes(threads_, factor_bytes(), memory);
    const std::uint64_t least =
        least_with_packing(threads_, factor_bytes(), edges + std::max(edges, least_multiply_memory(facts_)));
    call_.together([&] {
      if (memory < least) call_.refuse_memory(least, memory, spare);
      plan_ = plan_multiply(facts_, memory - edges - kernel_bytes_);
    });
    if (call_.ranks() > 1) {
      std::uint64_t least_of_all = memory - edges - kernel_bytes_;
      call_.leader().shared().group().all_reduce(call_.name(), {&least_of_all, 1}, reduction::min);
      plan_ = plan_multiply(facts_, least_of_all);
    }
    down_ = (facts_.rows + plan_.tile_rows - 1) / plan_.tile_rows;
    across_ = (facts_.columns + plan_.tile_columns - 1) / plan_.tile_columns;
    deep_a_ = (facts_.depth + plan_.depth_a - 1) / plan_.depth_a;
    deep_b_ = (facts_.depth + plan_.depth_b - 1) / plan_.depth_b;
    done_.passes = plan_.passes_a;
    done_.passes_of_b = plan_.passes_b;
    done_.tile_rows = plan_.tile_rows;
    done_.tile_columns = plan_.tile_columns;
    done_.bytes_read = (plan_.passes_a * rows_.size() * facts_.depth + elements_read_of_b()) * size_;
    done_.bytes_written = c_.array ? std::uint64_t{rows_.size()} * facts_.columns * size_ : 0;
    done_.memory = lent_bytes() + kernel_bytes_;
    done_.bound = least_traffic();
  }

  std::uint64_t elements_read_of_b() const {
    if (!b_.array) return 0;
    std::uint64_t rows = 0;  // of all panels of one tile
    for (std::uint64_t k = 0; k < deep_b_; ++k) rows += place_b(k).share(call_.rank(), call_.ranks()).rows();
    return plan_.passes_b * rows * facts_.columns;
  }

  /// Smith and others, *A Tight I/O Lower Bound for Matrix Multiplication* (2019): 2 m n k / sqrt(M) elements; and each
  /// matrix once.
  std::uint64_t least_traffic() const {
    const double rows = static_cast<double>(rows_.size()), depth = static_cast<double>(facts_.depth),
                 columns = static_cast<double>(facts_.columns);
    const double memory = static_cast<double>(done_.memory / size_);
    const double of_b = b_.array ? static_cast<double>(elements_read_of_b() / plan_.passes_b) : 0;  // ranks share b
    const double once = rows * depth + of_b + (c_.array ? rows * columns : 0);
    const double often = b_.array && c_.array ? 2 * rows * depth * columns / std::sqrt(memory) : 0;
    return static_cast<std::uint64_t>(std::max(once, often)) * size_;
  }

  std::uint64_t lent_bytes() const { return plan_.elements(facts_) * size_ + 6 * page_bytes; }
  void reserve() {
    extra_ = a_.array->shared().pager().reserve(kernel_bytes_, call_.name());
    memory_.emplace(a_.array->shared().pager(), lent_bytes(), call_.name());
  }

  rectangle tile_at(std::uint64_t t) const {
    const auto i = static_cast<std::size_t>(t / across_), j = static_cast<std::size_t>(t % across_);
    return {{std::min(rows_.first + i * plan_.tile_rows, rows_.last), j * plan_.tile_columns},
            {std::min(rows_.first + (i + 1) * plan_.tile_rows, rows_.last),
             std::min((j + 1) * plan_.tile_columns, facts_.columns)}};
  }
  rectangle place_a(std::uint64_t n) const {
    const bool whole = plan_.depth_a == facts_.depth;
    const rectangle t = tile_at(whole ? n * across_ : n / deep_a_);
    const auto k = whole ? 0 : static_cast<std::size_t>(n % deep_a_) * plan_.depth_a;
    return {{t.lower[0], k}, {t.upper[0], std::min(k + plan_.depth_a, facts_.depth)}};
  }
  rectangle place_b(std::uint64_t n) const {
    const rectangle t = tile_at(n / deep_b_);
    const auto k = static_cast<std::size_t>(n % deep_b_) * plan_.depth_b;
    return {{k, t.lower[1]}, {std::min(k + plan_.depth_b, facts_.depth), t.upper[1]}};
  }

  /// Where all ranks need each panel of b.  What one throws, also in the step before, all throw.
  void multiply_together(std::uint64_t steps, panel_stream& stream_a, panel_stream& stream_b, const direct_array* c) {
    process_group& group = call_.leader().shared().group();
    for (std::uint64_t s = 0; s <= steps; ++s) {
      const std::uint64_t panel = plan_.buffers_b == 1 ? 0 : s;
      call_.together([&] {
        if (s > 0) multiply_step(s - 1, stream_a, &stream_b, c);
        if (s < steps)
          stream_b.fetch(panel, counting());
        else
          writes_->wait();
      });
      if (s == steps) break;
      stream_b.pass_on(panel, group, call_.name(), memory_->owner());
      if (s + 1 == deep_b_) call_.mark();  // the first tile is about to be written
    }
  }

  std::function<void(std::uint64_t)> counting() {
    return [this](std::uint64_t bytes) { call_.advance(bytes); };
  }

  void multiply_step(std::uint64_t step, panel_stream& stream_a, const panel_stream* stream_b, const direct_array* c) {
    const std::uint64_t t = step / deep_b_;
    const auto k = static_cast<std::size_t>(step % deep_b_);
    const rectangle to = tile_at(t);
    if (to.elements() == 0) return;  // other ranks have more
    const std::size_t stride = c ? to.columns() : facts_.columns;
    std::byte* const result = c ? memory_->data() : c_.memory + (to.lower[0] * stride + to.lower[1]) * size_;
    // The first and last panels are cut by rows, so that a part of the last tile may still be written, and one of
    // this tile already, while others are computed.
    const bool overlaps = c && deep_b_ >= 4 && to.rows() >= 2 * parts_of_thread * team_->size();
    const grid rows{std::min(to.rows(), parts_of_thread * team_->size()), 1};
    const bool alike = overlaps && to.rows() == written_rows_ && to.columns() == written_columns_;
    if (k == 0 && !alike) writes_->wait();
    const std::size_t first = k * plan_.depth_b;
    const std::size_t depth = std::min(plan_.depth_b, facts_.depth - first);
    const std::size_t panel = first / plan_.depth_a;
    const std::uint64_t number = plan_.depth_a == facts_.depth ? t / across_ : t * deep_a_ + panel;
    stream_a.fetch(number, counting());
    matrix_part a = stream_a.panel(number);
    a.data += (first - panel * plan_.depth_a) * size_;
    a.columns = depth;
    const matrix_part b = stream_b ? stream_b->panel(plan_.buffers_b == 1 ? 0 : step)
                                   : matrix_part{b_.memory + (first * facts_.columns + to.lower[1]) * size_, depth,
                                                 to.columns(), facts_.columns};
    const bool last = k + 1 == deep_b_;
    const grid parts = overlaps && (k == 0 || last) ? rows : parts_of(to);
    team_->run(parts.down * parts.across, [&](std::size_t p) {
      const auto edge = [](std::size_t n, std::size_t at, std::size_t of) { return n * at / of; };
      const std::size_t i = p / parts.across, j = p % parts.across;
      const std::size_t top = edge(to.rows(), i, parts.down), end = edge(to.rows(), i + 1, parts.down);
      const std::size_t left = edge(to.columns(), j, parts.across);
      if (k == 0 && alike) writes_->fill(p);
      const matrix_part of_a{a.data + top * a.stride * size_, end - top, depth, a.stride};
      const matrix_part of_b{b.data + left * size_, depth, edge(to.columns(), j + 1, parts.across) - left, b.stride};
      kernel_.multiply(of_a, of_b, result + (top * stride + left) * size_, stride, k != 0);
      if (last && overlaps) write(*c, writes_->write(p), to, top, end, result);
    });
    if (!last || !c) return;
    if (!overlaps) write(*c, writes_->write(0), to, 0, to.rows(), result);
    written_rows_ = overlaps ? to.rows() : 0;
    written_columns_ = to.columns();
    call_.advance(to.elements() * size_);
  }

  /// The rows of a product in memory that this rank has computed to all others.
  void pass_on_result() const {
    const std::size_t most = passed_on_at_a_time(call_.ranks());
    const std::size_t row = facts_.columns * size_;
    for (std::size_t at = 0; at < most_rows_ * row; at += most) {
      const auto part = [&](int rank) {
        const auto [first, last] = call_.leader().ranks().rows_of(rank);
        return std::pair{std::min(first * row + at, last * row), std::min(first * row + at + most, last * row)};
      };
      const auto told = call_.together([&] {
        const auto [first, last] = part(call_.rank());
        return algorithm_call::bytes(c_.memory + first, c_.memory + last);
      });
      for (int r = 0; r < call_.ranks(); ++r)
        std::copy(told[static_cast<std::size_t>(r)].begin(), told[static_cast<std::size_t>(r)].end(),
                  c_.memory + part(r).first);
    }
  }

  /// Few parts, that cost little to pack: the kernel packs the rows of a for each part across, and the columns of b for
  /// each part down, which takes Eigen between two and three times as long.
  grid parts_of(const rectangle& to) const {
    constexpr double columns_over_rows = 2.5;
    const std::size_t parts = team_->size() == 1 ? 1 : parts_of_thread * team_->size();
    grid best{1, 1};
    double least = 0;
    for (std::size_t down = 1; down <= parts; ++down) {
      const grid g{std::min(down, to.rows()), std::min(parts / down, to.columns())};
      const double packed =
          static_cast<double>(to.rows() * g.across) + columns_over_rows * static_cast<double>(to.columns() * g.down);
      if (down * (parts / down) != parts || (least != 0 && packed >= least)) continue;
      least = packed;
      best = g;
    }
    return best;
  }

  void write(const direct_array& c, direct_transfer& w, rectangle to, std::size_t from, std::size_t until,
             const std::byte* tile) const {
    if (from == until) return;
    const std::byte* const bytes = tile + from * to.columns() * size_;
    to.upper[0] = to.lower[0] + until;
    to.lower[0] += from;
    w.begin_write(c.file(), c.box(to.view()), bytes);
  }

  const matrix_operand a_, b_, c_;
  const multiply_kernel& kernel_;
  const std::size_t size_;
  algorithm_call call_;
  const unsigned threads_;
  interval rows_;              ///< of c that are this rank's
  std::size_t most_rows_ = 0;  ///< that a rank has
  std::uint64_t wanted_ = 0;   ///< bytes of memory; 0: what there is
  multiply_facts facts_;       ///< of the product of the rank with the most rows
  multiply_plan plan_;
  std::uint64_t kernel_bytes_ = 0;
  std::uint64_t down_ = 0, across_ = 0;    ///< tiles
  std::uint64_t deep_a_ = 0, deep_b_ = 0;  ///< panels of a tile
  pager::reservation extra_;
  std::optional<lent_memory> memory_;
  std::optional<buffered_stream> writes_;               ///< of each part of the last tile, from where it is
  std::size_t written_rows_ = 0, written_columns_ = 0;  ///< of that tile, if it was cut by rows
  std::optional<thread_team> team_;
  multiply_statistics done_;
};

}  // namespace

multiply_statistics run_multiply(const matrix_operand& a, const matrix_operand& b, const matrix_operand& c,
                                 const multiply_kernel& kernel, const multiply_options& options) {
  return multiply_call(a, b, c, kernel, options).run();
}

}  // namespace ooc::detail
