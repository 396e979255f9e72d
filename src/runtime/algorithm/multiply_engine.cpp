// A product as a sequence of tiles: panels that are read ahead, parts of a tile for the threads, parts of
// the result that are written behind.
#include "oocarray/detail/multiply_engine.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/direct_transfer.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/algorithm/multiply_plan.hpp"
#include "runtime/algorithm/thread_team.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {
namespace {

constexpr std::uint64_t most_kernel_bytes = 4 << 20;  ///< that it allocates for each thread

struct rectangle {
  std::array<std::size_t, 2> lower{}, upper{};
  std::size_t rows() const noexcept { return upper[0] - lower[0]; }
  std::size_t columns() const noexcept { return upper[1] - lower[1]; }
  std::size_t elements() const noexcept { return rows() * columns(); }
  box_view view() const noexcept { return {lower, upper}; }
};

/// Panels of a matrix in the order in which they are needed: while one is used, the next is read.
class panel_stream {
 public:
  using place_of = std::function<rectangle(std::uint64_t)>;

  panel_stream(const direct_array& a, std::size_t element_size, place_of place, std::uint64_t panels,
               std::byte* memory, std::size_t buffers, std::size_t buffer_bytes)
      : array_(a), size_(element_size), place_(std::move(place)), panels_(panels), buffers_(buffers) {
    for (std::size_t b = 0; b < buffers; ++b) memory_[b] = memory + b * buffer_bytes;
  }

  /// Panel n, which is the one of the last call or the next.  Panels that are read are counted by `read`.
  template <class F>
  matrix_part panel(std::uint64_t n, F read) {
    const std::size_t b = n % buffers_;
    if (n == begun_) begin(b);
    if (!ready_ || *ready_ != n) {
      reads_[b].wait();
      ready_ = n;
      read(place_(n).elements() * size_);
      if (buffers_ > 1 && begun_ < panels_) begin((n + 1) % buffers_);
    }
    const rectangle r = place_(n);
    return {memory_[b], r.rows(), r.columns(), r.columns()};
  }

 private:
  void begin(std::size_t b) {
    reads_[b].begin_read(array_.file(), array_.box(place_(begun_).view()), memory_[b]);
    ++begun_;
  }

  const direct_array& array_;
  const std::size_t size_;
  const place_of place_;
  const std::uint64_t panels_;
  const std::size_t buffers_;
  std::uint64_t begun_ = 0;             ///< panels whose read has begun
  std::optional<std::uint64_t> ready_;  ///< panel in use
  std::array<std::byte*, 2> memory_{};
  std::array<direct_transfer, 2> reads_;
};

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
              {.threads = o.threads, .mark = o.mark, .progress = o.progress}),
        threads_(kernel.threads_by_itself() ? 1 : call_.threads()) {
    a.array->check_open();
    if (b.array) b.array->check_open();
    if (a.columns != b.rows || c.rows != a.rows || c.columns != b.columns)
      call_.refuse(shape(a) + " times " + shape(b) + " into " + shape(c) +
                   " is no product of matrices; of m by k and k by n it is m by n");
    if (c.array && (c.array == a.array || c.array == b.array))
      call_.refuse("'" + c.array->facts().path + "' is a factor, and cannot be the product as well");
    if (c.array && c.array->shared().written_by_others())
      call_.refuse("'" + c.array->facts().path +
                   "' is open together with other processes (options.shared, or a group of ranks): let "
                   "one process open it without, while no other has it open");
    choose(o.memory);
  }

  multiply_statistics run() {
    const direct_array a(a_.array->shared().local(), access_mode::read, "multiply()");
    std::optional<direct_array> b, c;
    if (b_.array) b.emplace(b_.array->shared().local(), access_mode::read, "multiply()");
    if (c_.array) c.emplace(c_.array->shared().local(), access_mode::write, "multiply()");
    reserve();
    std::byte* const tile = memory_->data();
    std::byte* const panels_a = tile + (c_.array ? in_whole_pages(plan_.tile_rows * plan_.tile_columns * size_) : 0);
    const std::size_t bytes_a = in_whole_pages(plan_.tile_rows * plan_.depth_a * size_);
    std::byte* const panels_b = panels_a + plan_.buffers_a * bytes_a;
    const std::size_t bytes_b = in_whole_pages(plan_.depth_b * plan_.tile_columns * size_);
    const std::uint64_t tiles = down_ * across_;
    panel_stream stream_a(
        a, size_, [this](std::uint64_t n) { return place_a(n); },
        plan_.depth_a == facts_.depth ? down_ : tiles * deep_a_, panels_a, plan_.buffers_a, bytes_a);
    std::optional<panel_stream> stream_b;
    if (b)
      stream_b.emplace(
          *b, size_, [this](std::uint64_t n) { return place_b(n); },
          plan_.buffers_b == 1 ? 1 : tiles * deep_b_, panels_b, plan_.buffers_b, bytes_b);
    // Nothing is on its way to c when its blocks may be touched again, also after an exception.
    const std::unique_ptr<multiply_call, void (*)(multiply_call*)> written(
        this, [](multiply_call* m) { m->writes_.clear(); });
    call_.expect(done_.bytes_read + done_.bytes_written);
    team_.emplace(threads_);
    for (std::uint64_t t = 0; t < tiles; ++t)
      multiply_tile(t, stream_a, stream_b ? &*stream_b : nullptr, c ? &*c : nullptr, tile);
    for (auto& w : writes_) w->wait();
    a_.array->shared().pager().count_direct(done_.bytes_read, done_.bytes_written);
    call_.finish();
    return done_;
  }

 private:
  struct grid {
    std::size_t down, across;
  };

  static std::vector<array_core*> written(const matrix_operand& c) {
    return c.array ? std::vector<array_core*>{c.array} : std::vector<array_core*>{};
  }
  static std::string shape(const matrix_operand& m) {
    return (m.array ? "'" + m.array->facts().path + "', " : std::string()) + std::to_string(m.rows) +
           " by " + std::to_string(m.columns) + ",";
  }

  /// Eigen packs parts of the panels.
  std::uint64_t kernel_bytes(std::uint64_t memory) const {
    const std::uint64_t factors = (std::uint64_t{a_.rows} * a_.columns + std::uint64_t{b_.rows} * b_.columns) * size_;
    return threads_ * std::min({most_kernel_bytes, factors, memory / (8 * threads_)});
  }

  void choose(std::uint64_t wanted) {
    facts_ = {a_.rows, a_.columns, b_.columns, size_, !b_.array, !c_.array};
    pager& p = a_.array->shared().pager();
    const std::uint64_t spare = p.spare();
    const std::uint64_t memory = wanted != 0 ? std::min(wanted, spare) : spare;
    const std::uint64_t edges = 6 * page_bytes;  // buffers begin with a page
    kernel_bytes_ = kernel_bytes(memory);
    const std::uint64_t least = 2 * edges + kernel_bytes_;
    if (memory > least) plan_ = plan_multiply(facts_, memory - edges - kernel_bytes_);
    if (plan_.tile_rows == 0)
      call_.refuse("it needs at least " + std::to_string(4 * least) + " bytes of memory, and " +
                       (memory < spare ? "options.memory allows " + std::to_string(memory)
                                       : "the budget has " + std::to_string(spare) +
                                             " bytes to spare; give the runtime " +
                                             std::to_string(4 * least) + " bytes more memory"),
                   errc::budget_too_small);
    down_ = (facts_.rows + plan_.tile_rows - 1) / plan_.tile_rows;
    across_ = (facts_.columns + plan_.tile_columns - 1) / plan_.tile_columns;
    deep_a_ = (facts_.depth + plan_.depth_a - 1) / plan_.depth_a;
    deep_b_ = (facts_.depth + plan_.depth_b - 1) / plan_.depth_b;
    done_.passes = plan_.passes_a;
    done_.passes_of_b = plan_.passes_b;
    done_.tile_rows = plan_.tile_rows;
    done_.tile_columns = plan_.tile_columns;
    done_.bytes_read = (plan_.passes_a * facts_.rows * facts_.depth +
                        plan_.passes_b * facts_.depth * facts_.columns) * size_;
    done_.bytes_written = c_.array ? std::uint64_t{facts_.rows} * facts_.columns * size_ : 0;
  }

  void reserve() {
    const std::uint64_t bytes = plan_.elements(facts_) * size_ + 6 * page_bytes;
    extra_ = a_.array->shared().pager().reserve(kernel_bytes_, call_.name());
    memory_.emplace(a_.array->shared().pager(), bytes, call_.name());
    done_.memory = bytes + kernel_bytes_;
  }

  rectangle tile_at(std::uint64_t t) const {
    const auto i = static_cast<std::size_t>(t / across_), j = static_cast<std::size_t>(t % across_);
    return {{i * plan_.tile_rows, j * plan_.tile_columns},
            {std::min((i + 1) * plan_.tile_rows, facts_.rows),
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

  void multiply_tile(std::uint64_t t, panel_stream& stream_a, panel_stream* stream_b,
                     const direct_array* c, std::byte* tile) {
    const rectangle to = tile_at(t);
    const std::size_t stride = c ? to.columns() : facts_.columns;
    std::byte* const result =
        c ? tile : c_.memory + (to.lower[0] * stride + to.lower[1]) * size_;
    // The first and last panels are cut by rows, so that a part of the last tile may still be written, and one of
    // this tile already, while others are computed.  In between, parts are about square: the kernel
    // packs both factors of each.
    const bool overlaps = c && deep_b_ >= 4 && to.rows() >= 4 * team_->size();
    const grid rows{std::min(to.rows(), 4 * team_->size()), 1};
    const grid square = square_parts(to);
    const bool alike = overlaps && to.rows() == written_rows_ && to.columns() == written_columns_;
    if (!alike)
      for (auto& w : writes_) w->wait();
    while (writes_.size() < rows.down) writes_.push_back(std::make_unique<direct_transfer>());
    const auto count = [this](std::uint64_t bytes) { call_.advance(bytes); };
    for (std::size_t k = 0; k < deep_b_; ++k) {
      const std::size_t first = k * plan_.depth_b;
      const std::size_t depth = std::min(plan_.depth_b, facts_.depth - first);
      const std::size_t panel = first / plan_.depth_a;
      matrix_part a = stream_a.panel(plan_.depth_a == facts_.depth ? t / across_ : t * deep_a_ + panel, count);
      a.data += (first - panel * plan_.depth_a) * size_;
      a.columns = depth;
      const matrix_part b =
          stream_b ? stream_b->panel(plan_.buffers_b == 1 ? 0 : t * deep_b_ + k, count)
                   : matrix_part{b_.memory + (first * facts_.columns + to.lower[1]) * size_, depth,
                                 to.columns(), facts_.columns};
      const bool last = k + 1 == deep_b_;
      if (last && c && !marked_) call_.mark();
      marked_ |= last;
      const grid parts = overlaps && (k == 0 || last) ? rows : square;
      team_->run(parts.down * parts.across, [&](std::size_t p) {
        const auto edge = [](std::size_t n, std::size_t at, std::size_t of) { return n * at / of; };
        const std::size_t i = p / parts.across, j = p % parts.across;
        const std::size_t top = edge(to.rows(), i, parts.down), end = edge(to.rows(), i + 1, parts.down);
        const std::size_t left = edge(to.columns(), j, parts.across);
        if (k == 0 && alike) writes_[p]->wait();
        const matrix_part of_a{a.data + top * a.stride * size_, end - top, depth, a.stride};
        const matrix_part of_b{b.data + left * size_, depth,
                               edge(to.columns(), j + 1, parts.across) - left, b.stride};
        kernel_.multiply(of_a, of_b, result + (top * stride + left) * size_, stride, k != 0);
        if (last && overlaps) write(*c, *writes_[p], to, top, end, result);
      });
    }
    if (c && !overlaps) write(*c, *writes_[0], to, 0, to.rows(), result);
    written_rows_ = overlaps ? to.rows() : 0;
    written_columns_ = to.columns();
    if (c) call_.advance(to.elements() * size_);
  }

  grid square_parts(const rectangle& to) const {
    const std::size_t parts = team_->size() == 1 ? 1 : 4 * team_->size();
    grid best{1, 1};
    double least = 0;
    for (std::size_t down = 1; down <= parts; ++down) {
      const grid g{std::min(down, to.rows()), std::min(parts / down, to.columns())};
      const double edges = static_cast<double>(to.rows()) / static_cast<double>(g.down) +
                           static_cast<double>(to.columns()) / static_cast<double>(g.across);
      if (down * (parts / down) != parts || (least != 0 && edges >= least)) continue;
      least = edges;
      best = g;
    }
    return best;
  }

  void write(const direct_array& c, direct_transfer& w, rectangle to, std::size_t from,
             std::size_t until, const std::byte* tile) const {
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
  multiply_facts facts_;
  multiply_plan plan_;
  std::uint64_t kernel_bytes_ = 0;
  std::uint64_t down_ = 0, across_ = 0;           ///< tiles
  std::uint64_t deep_a_ = 0, deep_b_ = 0;         ///< panels of a tile
  pager::reservation extra_;
  std::optional<lent_memory> memory_;
  std::vector<std::unique_ptr<direct_transfer>> writes_;  ///< of each part of the last tile
  std::size_t written_rows_ = 0, written_columns_ = 0;    ///< of that tile, if it was cut by rows
  bool marked_ = false;
  std::optional<thread_team> team_;
  multiply_statistics done_;
};

}  // namespace

multiply_statistics run_multiply(const matrix_operand& a, const matrix_operand& b,
                                 const matrix_operand& c, const multiply_kernel& kernel,
                                 const multiply_options& options) {
  return multiply_call(a, b, c, kernel, options).run();
}

}  // namespace ooc::detail
