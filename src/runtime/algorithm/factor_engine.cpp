// Factorisations by columns, left-looking: a panel of columns is in memory, as wide as there is room for; the strips to
// the left of it pass by, each read while the last is used; then the panel's own strips are factorised, and written as
// they are ready.  What a panel is written from is filled with the next one as soon as it has been written.
//
// On ranks a panel is as wide as all of them have room for together.  Its strips are dealt out to the ranks in turn, so
// that each has some to update to the last (ScaLAPACK's block-cyclic columns).  Who has a strip factorises it, and
// sends it to the others.
#include "oocarray/detail/factor_engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/algorithm/factor_call.hpp"
#include "runtime/array/direct_array.hpp"

namespace ooc::detail {
namespace {

std::string shape(std::size_t rows, std::size_t columns) {
  return std::to_string(rows) + " by " + std::to_string(columns);
}

class factorisation final : factor_call {
 public:
  factorisation(const char* what, array_core& from, array_core& to, factor_kernel& kernel, const factor_options& o)
      : factor_call(what, from, to, {&to}, kernel, o), from_(from), to_(to) {
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
    choose({rows_, columns_, kernel_.below_diagonal_only(), ranks() > 1, size_, ranks()});
    const traffic elements = traffic_of_plan();
    done_.passes = 1;  // strips that pass by are columns that have been read
    done_.bound = least_traffic();
    if (call_.only_plans()) return planned(elements);
    std::optional<direct_array> from, to;
    call_.together([&] {  // what any rank has modified is in the store before one of them reads
      if (&from_ != &to_) from.emplace(from_.shared().local(), access_mode::read, "factorisation");
      to.emplace(to_.shared().local(), access_mode::write, "factorisation");
      take_memory();
    });
    source_ = from ? &*from : &*to;
    target_ = &*to;
    // Nothing is on its way when blocks may be touched again, also after an exception.
    const std::unique_ptr<factorisation, void (*)(factorisation*)> transfers(this, [](factorisation* f) {
      f->reads_.clear();
      f->coming_.clear();
      f->writes_.clear();
    });
    call_.expect(elements.all() * size_);
    for (std::size_t n = 0; n < panels(); ++n) {
      update(n);
      factorise(n);
    }
    from_.shared().pager().count_direct(done_.bytes_read, done_.bytes_written);
    call_.finish();
    return done_;
  }

 private:
  /// Strip of a panel: one thread factorises it, so it is narrower than those that pass by.
  struct own_strip {
    std::size_t first = 0, last = 0;  ///< columns
    std::size_t factorised_until = 0;
    int rank = 0;               ///< that has it
    std::byte* data = nullptr;  ///< where it is in the memory of that rank
    std::size_t end = 0;        ///< columns that this rank has up to the end of the strip
  };

  std::size_t ranks() const noexcept { return static_cast<std::size_t>(call_.ranks()); }
  std::size_t panels() const noexcept { return plan_.edges.size() - 1; }
  factor_panel panel_at(std::size_t n) const {
    const std::size_t first = plan_.edges[n], top = kernel_.below_diagonal_only() ? first : 0;
    return {first, plan_.edges[n + 1], top, rows_ - top};
  }
  /// Those of all ranks, from left to right.
  std::vector<own_strip> strips_of(const factor_panel& p) const {
    std::vector<own_strip> strips;
    std::size_t here = 0;  // columns of this rank
    for (std::size_t first = p.first, last; first < p.last; first = last) {
      last = std::min(first + strip_of_panel(plan_.strip), p.last);
      const int rank = static_cast<int>(strips.size() % ranks());
      std::byte* const data = memory_->data() + here * p.rows * size_;
      if (rank == call_.rank()) here += last - first;
      strips.push_back({first, last, std::max(first, std::min(last, factorised_)), rank, data, here});
    }
    return strips;
  }
  bool has(const own_strip& s) const noexcept { return s.rank == call_.rank(); }
  /// The strips of this rank from `column` on, which lie one behind the other in memory: one part, where no others lie
  /// between them in the matrix, or the kernel does not look at the columns' numbers.  A wide part is packed but once.
  std::vector<matrix_block> columns_from(std::size_t column, const factor_panel& p,
                                         const std::vector<own_strip>& strips) const {
    const bool as_one = ranks() == 1 || !kernel_.below_diagonal_only();
    std::vector<matrix_block> parts;
    for (const own_strip& s : strips) {
      if (!has(s) || s.first < column) continue;
      if (as_one && !parts.empty())
        parts.front().columns += s.last - s.first;
      else
        parts.push_back(block(s.data, p, s.first, s.last));
    }
    return parts;
  }
  /// The columns that a strip updates before it is sent: all of one process; on ranks the rest of itself, where the
  /// matrix has more columns than rows.
  std::vector<matrix_block> columns_beside(const own_strip& s, const factor_panel& p) const {
    const std::size_t last = ranks() == 1 ? p.last : s.last;
    if (s.factorised_until == last) return {};
    return {block(s.data + (s.factorised_until - s.first) * p.rows * size_, p, s.factorised_until, last)};
  }

  /// Of a strip that passes by a panel.
  rectangle passing(std::uint64_t strip, const factor_panel& by) const {
    const std::size_t first = static_cast<std::size_t>(strip) * plan_.strip;
    return {{first, std::max(first, by.top)}, {std::min(first + plan_.strip, factorised_), rows_}};
  }
  std::size_t passing_by(const factor_panel& p) const {
    return (std::min(p.first, factorised_) + plan_.strip - 1) / plan_.strip;
  }

  traffic traffic_of_plan() const {
    traffic elements;
    for (std::size_t n = 0; n < panels(); ++n) {
      const factor_panel p = panel_at(n);
      elements.written += std::uint64_t{p.rows} * columns_of_rank(plan_, p.last - p.first, reader().rank, ranks());
      for (std::uint64_t s = 0; s < passing_by(p); ++s)
        elements.read += passing(s, p).share(call_.rank(), call_.ranks()).elements();
    }
    elements.read += elements.written;
    return elements;
  }

  /// n^3 / (3 sqrt(2) sqrt(M)) elements for Cholesky (Beaumont and others, *I/O-Optimal Algorithms for Symmetric Linear
  /// Algebra Kernels*, 2022), and 2 / sqrt(M) for each multiplication of LU (Kwasniewski and others, *On the Parallel
  /// I/O Optimality of Linear Algebra Kernels*, 2021); of QR that is not proven.  And the matrix once, read and
  /// written.  Ranks, which send each other what one has read, are one process with the memory of all.
  std::uint64_t least_traffic() const {
    const double longer = static_cast<double>(std::max(rows_, columns_)), n = static_cast<double>(factorised_);
    const double all = static_cast<double>(ranks()), memory = all * static_cast<double>(done_.memory / size_);
    const bool triangle = kernel_.below_diagonal_only();
    const double products = n * n * (longer - n / 3) / 2;  // of LU; of QR twice as many
    const double often = triangle ? n * n * n / (3 * std::sqrt(2 * memory)) : 2 * products / std::sqrt(memory);
    const double once = triangle ? n * (n + 1) : 2 * longer * n;
    return static_cast<std::uint64_t>(std::max(once, often) / all) * size_;
  }

  /// Begins to read the strips of panel n that end before `free` bytes of the panels' memory.
  void begin_reads(std::size_t n, std::uint64_t free) {
    if (n >= panels()) return;
    const factor_panel p = panel_at(n);
    if (reading_ != n) {
      reading_ = n;
      to_read_ = strips_of(p);
      std::erase_if(to_read_, [this](const own_strip& s) { return !has(s); });
      coming_.clear();
    }
    while (coming_.size() < to_read_.size()) {
      const own_strip& s = to_read_[coming_.size()];
      if (s.end * p.rows * size_ > free) return;
      const rectangle box{{s.first, p.top}, {s.last, rows_}};
      coming_.emplace_back().begin_read(source_->file(), source_->box(box.view()), s.data);
    }
  }

  /// Panel n comes into memory, and is updated by all columns to its left.
  void update(std::size_t n) {
    const factor_panel p = panel_at(n);
    const auto columns = columns_from(p.first, p, strips_of(p));
    call_.together([&] {
      begin_reads(n, std::numeric_limits<std::uint64_t>::max());
      reads_.swap(coming_);
      for (direct_transfer& r : reads_) r.wait();
      for (const own_strip& s : to_read_) count_read(std::uint64_t{p.rows} * (s.last - s.first) * size_);
      if (source_ != target_ && kernel_.below_diagonal_only()) clear_above(p);
    });
    let_pass(
        *target_, [this, p](std::uint64_t s) { return passing(s, p); }, passing_by(p),
        [&](const matrix_block& strip) {
          kernel_.use(factor_step::update, strip);
          compute(factor_step::update, strip, columns);
        });
  }

  void clear_above(const factor_panel& p) {
    for (const own_strip& s : to_read_)
      for (std::size_t c = s.first; c < s.last; ++c)
        std::fill_n(s.data + (c - s.first) * p.rows * size_, (c - p.top) * size_, std::byte{0});
  }

  void factorise(std::size_t n) {
    const factor_panel p = panel_at(n);
    const std::vector<own_strip> strips = strips_of(p);
    writes_.clear();
    std::vector<std::uint64_t> ends;
    const auto written = [&](std::size_t strip) {
      writes_[strip].wait();
      begin_reads(n + 1, ends[strip]);
    };
    std::optional<matrix_block> sent;  // the strip before, which columns to its right have not been updated by
    for (const own_strip& s : strips) {
      const matrix_block strip = block(s.data, p, s.first, s.factorised_until);
      call_.together([&] {
        if (sent) {
          kernel_.use(factor_step::update, *sent);
          compute(factor_step::update, *sent, columns_from(s.first, p, strips));
        }
        if (!has(s) || strip.columns == 0) return;
        require(kernel_.factorise(strip), strip);
        compute(factor_step::update, strip, columns_beside(s, p));
        kernel_.keep(strip);
      });
      if (n == 0 && s.first == 0) call_.mark();
      sent = ranks() == 1 || strip.columns == 0 ? std::nullopt : std::optional(send(strip, s.rank));
      call_.together([&] {
        constexpr std::size_t behind = 2;  // strips that are on their way to the file while others are computed
        if (!has(s)) return;
        const rectangle box{{s.first, p.top}, {s.last, rows_}};
        writes_.emplace_back().begin_write(target_->file(), target_->box(box.view()), s.data);
        count_written(box.elements() * size_);
        ends.push_back(s.end * p.rows * size_);
        if (writes_.size() > behind) written(writes_.size() - 1 - behind);
      });
    }
    call_.together([&] {
      for (std::size_t k = 0; k < writes_.size(); ++k) written(k);
    });
  }

  /// Collective: a strip that one rank has factorised, as the file holds it, and its numbers, to all ranks.  Returns
  /// it, in a buffer.
  matrix_block send(const matrix_block& strip, int from) {
    std::byte* const buffer = buffers().memory;
    const std::span<std::byte> numbers = kernel_.numbers(strip);
    const std::size_t bytes = strip.rows * strip.columns * size_;
    if (from == call_.rank()) {
      std::memcpy(buffer, strip.data, bytes);
      std::copy(numbers.begin(), numbers.end(), buffer + bytes);
    }
    std::vector<std::span<std::byte>> parts(ranks());
    parts[static_cast<std::size_t>(from)] = {buffer, bytes + numbers.size()};
    share_parts(group(), call_.name(), parts, memory_->owner());
    std::copy_n(buffer + bytes, numbers.size(), numbers.begin());
    matrix_block here = strip;
    here.data = buffer;
    return here;
  }

  array_core &from_, &to_;
  std::size_t rows_ = 0, columns_ = 0, factorised_ = 0;
  const direct_array* source_ = nullptr;
  const direct_array* target_ = nullptr;
  std::deque<direct_transfer> reads_;   ///< of the panel in memory
  std::deque<direct_transfer> coming_;  ///< of panel `reading_`
  std::deque<direct_transfer> writes_;  ///< of the panel in memory
  std::size_t reading_ = std::numeric_limits<std::size_t>::max();
  std::vector<own_strip> to_read_;  ///< of panel `reading_`, those that this rank has
};

}  // namespace

factor_statistics run_factorisation(const char* what, array_core& from, array_core& to, factor_kernel& kernel,
                                    const factor_options& options) {
  return factorisation(what, from, to, kernel, options).run();
}

}  // namespace ooc::detail
