// The product of a sparse matrix and vectors in memory, as a pass over its elements; see algorithm/sparse.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/detail/multiply_engine.hpp"
#include "oocarray/detail/span_engine.hpp"
#include "oocarray/detail/span_programs.hpp"
#include "oocarray/error.hpp"

namespace ooc::detail {

/// A sparse matrix in three arrays of one dimension.
struct sparse_arrays {
  array_core *values, *columns, *rows;
  std::size_t elements, row_count;
};

/// The array of row beginnings, of which a thread brings in some at a time.  Owner: one thread.
template <class Row>
class row_beginnings {
 public:
  row_beginnings(const array_core& a, const Row* first, std::size_t rows) : array_(a), first_(first), rows_(rows) {}

  /// That of row i, or the end of row i - 1.
  std::uint64_t operator[](std::size_t i) {
    if (i < here_.first || i >= here_.second) bring_in(i);
    return static_cast<std::uint64_t>(first_[i]);
  }
  /// The row of element number k: the last one that begins there or before, where none ends before it begins.
  std::size_t row_of(std::uint64_t k) {
    std::size_t lower = 0, upper = rows_;  // the row that is looked for is not before the one, and before the other
    while (upper - lower > 1) {
      const std::size_t middle = lower + (upper - lower) / 2;
      ((*this)[middle] <= k ? lower : upper) = middle;
    }
    return lower;
  }

 private:
  void bring_in(std::size_t i) {
    constexpr std::size_t at_once = 1024;
    here_ = {i, std::min(i + at_once, rows_ + 1)};
    const std::array<std::size_t, 1> lower{here_.first}, upper{here_.second};
    array_.bring_in({lower, upper}, access_mode::read);
  }

  const array_core& array_;
  const Row* const first_;
  const std::size_t rows_;
  std::pair<std::size_t, std::size_t> here_{0, 0};
};

/// y += A x.  The arrays of the pass are the elements' values and columns.  A row that a piece has to its end and from
/// its beginning is added to y at once; of the first and the last row of a piece the sums are kept, and put together in
/// the order of the pieces, so that the result depends on no thread.
template <class T, class Column, class Row>
class sparse_program final : public span_program {
 public:
  sparse_program(std::string name, const sparse_arrays& a, const Row* first_row, std::size_t vectors,
                 std::span<const T> x, std::span<T> y)
      : name_(std::move(name)), arrays_(a), first_row_(first_row), vectors_(vectors), x_(x), y_(y) {}

  void begin(std::size_t pieces) override {
    row_beginnings<Row> begins(*arrays_.rows, first_row_, arrays_.row_count);
    const std::uint64_t first = begins[0], last = begins[arrays_.row_count];
    if (first != 0 || last != arrays_.elements)
      throw usage_error(errc::invalid_request, name_ + ": the rows begin with " + std::to_string(first) +
                                                   " and end with " + std::to_string(last) +
                                                   "; they go from 0 to the number of elements, " +
                                                   std::to_string(arrays_.elements));
    std::fill(y_.begin(), y_.end(), T{});
    ends_.assign(pieces, {});
    left_ = pieces;
  }

  void run(std::size_t piece, unsigned, std::byte* const* p, std::size_t count, const std::size_t* at) override {
    const auto* const values = reinterpret_cast<const T*>(p[0]);
    const auto* const columns = reinterpret_cast<const Column*>(p[1]);
    row_beginnings<Row> begins(*arrays_.rows, first_row_, arrays_.row_count);
    const std::uint64_t begin = at[0], end = begin + count;
    piece_ends& mine = ends_[piece];
    mine.of_first.assign(vectors_, T{});
    mine.of_last.assign(vectors_, T{});
    mine.first = mine.last = begin == 0 ? 0 : begins.row_of(begin);
    for (std::uint64_t k = begin;; ++mine.last) {
      const std::size_t row = mine.last;
      const std::uint64_t row_end = begins[row + 1], until = std::min(row_end, end);
      if (row_end < k || row_end > arrays_.elements) refuse_row(row + 1);
      T* const sums = row == mine.first ? mine.of_first.data()
                      : row_end > end   ? mine.of_last.data()
                                        : &y_[row * vectors_];
      add(values + (k - begin), columns + (k - begin), static_cast<std::size_t>(until - k), k, sums);
      k = until;
      if (row_end > end || row + 1 == arrays_.row_count) break;  // where the next piece begins, or nothing
    }
  }

  void end_piece(std::size_t) override {
    if (left_.fetch_sub(1) == 1) put_together();
  }

  /// First and last row that this rank may have added to; nothing: it has no elements.
  std::vector<std::size_t> rows() const {
    if (ends_.empty()) return {};
    return {ends_.front().first, ends_.back().last};
  }
  /// What begins where the row before it does not end.
  [[noreturn]] void refuse_row(std::size_t row) const {
    throw usage_error(errc::invalid_request, name_ + ": row " + std::to_string(row) +
                                                 " begins before the row before it, or behind the last element; the "
                                                 "beginnings of rows ascend from 0 to the number of elements");
  }

 private:
  struct piece_ends {
    std::size_t first = 0, last = 0;   ///< rows; the next piece begins in `last`
    std::vector<T> of_first, of_last;  ///< sums
  };

  /// What pieces have of rows that they share.
  void put_together() {
    for (std::size_t p = 0; p < ends_.size(); ++p) {
      const piece_ends& e = ends_[p];
      if (p != 0 && e.first != ends_[p - 1].last) refuse_row(e.first);
      add_up(e.first, e.of_first);
      if (e.last != e.first) add_up(e.last, e.of_last);
    }
  }

  void add(const T* values, const Column* columns, std::size_t count, std::uint64_t first, T* to) const {
    const std::size_t width = x_.size() / vectors_;
    if (vectors_ == 1) {
      T sum{};
      for (std::size_t i = 0; i < count; ++i) {
        const auto c = static_cast<std::size_t>(columns[i]);
        if (c >= width) refuse_column(first + i, columns[i]);
        sum += values[i] * x_[c];
      }
      *to += sum;
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto c = static_cast<std::size_t>(columns[i]);
      if (c >= width) refuse_column(first + i, columns[i]);
      const T* const of_x = &x_[c * vectors_];
      for (std::size_t v = 0; v < vectors_; ++v) to[v] += values[i] * of_x[v];
    }
  }
  void add_up(std::size_t row, const std::vector<T>& sums) {
    for (std::size_t v = 0; v < sums.size(); ++v) y_[row * vectors_ + v] += sums[v];
  }

  [[noreturn]] void refuse_column(std::uint64_t element, Column column) const {
    throw usage_error(errc::invalid_request, name_ + ": element " + std::to_string(element) + " is in column " +
                                                 std::to_string(column) + ", and the vectors have " +
                                                 std::to_string(x_.size() / vectors_) + " elements");
  }

  const std::string name_;
  const sparse_arrays& arrays_;
  const Row* const first_row_;
  const std::size_t vectors_;
  const std::span<const T> x_;
  const std::span<T> y_;
  std::vector<piece_ends> ends_;
  std::atomic<std::size_t> left_{0};  ///< pieces
};

/// `first_row`: where the array of row beginnings lies in memory.
template <class T, class Column, class Row>
pass_statistics run_sparse_product(const sparse_arrays& a, const Row* first_row, std::span<const T> x, std::span<T> y,
                                   const pass_options& options) {
  const std::string name = "product of sparse '" + a.values->facts().path + "' and vectors";
  const auto refuse = [&](const std::string& why) { throw usage_error(errc::invalid_request, name + ": " + why); };
  const std::size_t vectors = a.row_count == 0 ? 0 : y.size() / a.row_count;
  if (a.row_count != 0 && (vectors == 0 || y.size() % a.row_count != 0 || x.size() % vectors != 0))
    refuse("y has " + std::to_string(y.size()) + " elements for " + std::to_string(a.row_count) + " rows, and x " +
           std::to_string(x.size()) + "; k vectors have k elements for each row, and for each column");
  if (std::less<const T*>()(x.data(), y.data() + y.size()) && std::less<const T*>()(y.data(), x.data() + x.size()))
    refuse("x and y overlap, and y is written while x is read; give y memory of its own");
  span_request r{.verb = "product with vectors", .options = options};
  r.rule = piece_rule::fixed;
  r.indices = true;
  r.arrays = {{a.values, sizeof(T), true, false}, {a.columns, sizeof(Column), true, false}};
  r.memory = (a.elements / elements_of_piece + 1) * 2 * vectors * sizeof(T);
  span_run run(r);
  run.begin();
  if (!options.plan) {
    sparse_program<T, Column, Row> program(name, a, first_row, vectors, x, y);
    run.pass(program);
    if (run.ranks() > 1) {
      const std::vector<std::size_t> rows = program.rows();
      std::vector<T> mine;
      if (!rows.empty()) mine.assign(&y[rows[0] * vectors], &y[rows[0] * vectors] + (rows[1] + 1 - rows[0]) * vectors);
      const auto rows_of_ranks = run.gathered([&] { return bytes_of_values(rows); });
      std::vector<std::span<T>> sums_of_ranks;  // in y
      std::size_t before = 0, longest = 0;
      for (const auto& told : rows_of_ranks) {
        std::vector<std::size_t> of_rank;
        add_values(of_rank, told, std::size_t{});
        sums_of_ranks.emplace_back();
        if (of_rank.empty()) continue;
        if (of_rank[0] != before) program.refuse_row(of_rank[0]);
        before = of_rank[1];
        sums_of_ranks.back() = y.subspan(of_rank[0] * vectors, (of_rank[1] + 1 - of_rank[0]) * vectors);
        longest = std::max(longest, sums_of_ranks.back().size());
      }
      std::fill(y.begin(), y.end(), T{});
      const std::size_t most = std::max<std::size_t>(passed_on_at_a_time(run.ranks()) / sizeof(T), 1);
      for (std::size_t at = 0; at < longest; at += most) {
        const auto part = [&](const auto& all) {
          const std::size_t first = std::min(at, all.size());
          return std::span(all).subspan(first, std::min(most, all.size() - first));
        };
        const std::span<const T> told = part(mine);
        const auto told_by_ranks =
            run.gathered([&] { return bytes_of_values(std::vector<T>(told.begin(), told.end())); });
        for (std::size_t rank = 0; rank < told_by_ranks.size(); ++rank) {
          std::vector<T> sums;
          add_values(sums, told_by_ranks[rank], T{});
          const std::span<T> to = part(sums_of_ranks[rank]);
          std::transform(sums.begin(), sums.end(), to.begin(), to.begin(), std::plus<>());
        }
      }
    }
  }
  pass_statistics done = run.finish();
  const std::uint64_t rows = (a.row_count + 1) * sizeof(Row) / static_cast<std::uint64_t>(run.ranks());
  done.bytes_read += rows;
  done.bound += rows;
  return done;
}

}  // namespace ooc::detail
