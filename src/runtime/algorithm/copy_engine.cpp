// A copy: what is refused, how large its boxes are, which of them are this rank's.
#include "oocarray/detail/copy_engine.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/box_pipeline.hpp"
#include "runtime/algorithm/box_plan.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/array/local_array.hpp"
#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {
namespace {

constexpr std::uint64_t least_memory = 16 << 10;
constexpr std::uint64_t pieces_of_small = 8;  // arrays that memory could hold, for overlap
constexpr std::uint64_t least_box = 1 << 20;

std::string text(const extent_list& l) {
  std::string s = "{";
  for (const std::size_t e : l) s += (s.size() > 1 ? ", " : "") + std::to_string(e);
  return s + "}";
}

extent_list extents_of(const array_core& a) { return {a.facts().extents.begin(), a.facts().extents.end()}; }
/// Empty where the file is row-major.
extent_list file_tile_of(const array_core& a) {
  const auto tile = a.shared().local().file_tile();
  return {tile.begin(), tile.end()};
}

class copy_run {
 public:
  explicit copy_run(const copy_request& r)
      : request_(r), call_(name_of(r), leader_of(r), {r.to}, r.options), in_place_(r.from == r.to) {
    check();
    from_.extents = extents_of(*r.from);
    from_.tile = file_tile_of(*r.from);
    from_.dimension = r.permutation;
    from_.element_size = r.from_size;
    to_.extents = extents_of(*r.to);
    to_.tile = file_tile_of(*r.to);
    to_.element_size = r.to_size;
    for (std::size_t k = 0; k < r.extents.size(); ++k) to_.dimension.push_back(k);
  }

  pass_statistics run() {
    pass_statistics done;
    call_.must_agree(", " + text(request_.extents) + " elements from " + text(request_.from_lower) + " to " +
                     text(request_.to_lower) + ", permutation " + text(request_.permutation));
    const bool empty = std::find(request_.extents.begin(), request_.extents.end(), 0) != request_.extents.end();
    std::uint64_t memory = 0;
    call_.together([&] {
      if (!empty) memory = memory_to_take();
    });
    if (empty) return done;
    if (call_.ranks() > 1)  // in place the same boxes on all ranks
      call_.leader().shared().group().all_reduce(call_.name(), {&memory, 1}, reduction::min);
    const pipeline_plan plan = plan_for(memory);
    box_pipeline pipeline(plan, call_);
    std::uint64_t elements = 0;
    for (std::size_t u = 0; u < plan.units; ++u)
      for (const box_move& m : plan.unit(u)) elements += m.elements();
    done.passes = 1;
    done.memory = plan.units == 0 ? 0 : pipeline.memory_bytes();
    done.bytes_read = elements * request_.from_size;
    done.bytes_written = elements * request_.to_size;
    done.bound = done.bytes_read + done.bytes_written;
    if (call_.only_plans()) return done;
    {
      std::optional<direct_array> from, to;
      call_.together([&] {  // what any rank has modified is in the store before one of them reads
        if (!in_place_) from.emplace(request_.from->shared().local(), access_mode::read, request_.verb);
        to.emplace(request_.to->shared().local(), access_mode::write, request_.verb);
      });
      call_.begin(done.bound);
      call_.together([&] {
        if (plan.units == 0) return;
        const lent_memory lent(request_.to->shared().pager(), pipeline.memory_bytes(), call_.name());
        pipeline.run(from ? *from : *to, *to, lent.data());
        request_.to->shared().pager().count_direct(done.bytes_read, done.bytes_written);
      });
    }
    call_.finish();
    return done;
  }

 private:
  static std::string name_of(const copy_request& r) {
    const std::string of = std::string(r.verb) + " of '" + r.from->facts().path + "'";
    return r.from == r.to ? of + " in place" : of + " to '" + r.to->facts().path + "'";
  }
  static array_core& leader_of(const copy_request& r) {
    r.from->check_open();
    return *r.to;
  }

  void check() const {
    const copy_request& r = request_;
    const std::size_t n = r.permutation.size();
    extent_list sorted = r.permutation;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t k = 0; k < n; ++k)
      if (sorted[k] != k)
        call_.refuse(text(r.permutation) + " is no permutation of the dimensions 0 to " + std::to_string(n - 1));
    const extent_list from = extents_of(*r.from), to = extents_of(*r.to);
    if (r.extents.empty()) {
      if (in_place_ && r.permutation == extent_list{1, 0})
        call_.refuse("only a square matrix is transposed in place, and this has the extents " + text(to) +
                     "; give another array for the result");
      extent_list wanted(n);
      for (std::size_t k = 0; k < n; ++k) wanted[k] = from[r.permutation[k]];
      call_.refuse("the target has the extents " + text(to) + " and needs " + text(wanted));
    }
    if (in_place_ && (r.permutation != extent_list{1, 0} || r.extents != to))
      call_.refuse(
          "an array cannot be copied or transposed to itself; give another one (a square "
          "matrix may be transposed in place: ooc::transpose(a))");
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t j = r.permutation[k];
      if (r.from_lower[j] > from[j] || r.extents[k] > from[j] - r.from_lower[j] || r.to_lower[k] > to[k] ||
          r.extents[k] > to[k] - r.to_lower[k])
        call_.refuse("a box of " + text(r.extents) + " elements does not lie within " + text(from) + " from " +
                     text(r.from_lower) + " on, and within " + text(to) + " from " + text(r.to_lower) + " on");
    }
    call_.refuse_other_group(*r.from);
  }

  std::uint64_t memory_to_take() const {
    // The spare memory can be taken once modified blocks have been written back; the rest may hold
    // blocks of other arrays.
    const std::uint64_t spare = request_.to->shared().pager().spare();
    const std::uint64_t chosen = request_.options.memory;
    const std::uint64_t least = std::max<std::uint64_t>(
        least_memory, 4 * 4096 + 4 * std::max(request_.from_size, request_.to_size) * (in_place_ ? 2 : 1));
    if (chosen != 0 && chosen < least)
      call_.refuse(
          "pass_options::memory is " + std::to_string(chosen) + " bytes; give at least " + std::to_string(2 * least),
          errc::budget_too_small);
    const std::uint64_t memory = chosen != 0 ? chosen : std::max(spare / 8 * 7, std::min(spare, 2 * least));
    if (memory < 2 * least || memory > spare)
      call_.refuse("it needs " + std::to_string(std::max(chosen, 2 * least)) +
                       " bytes for its boxes, and the budget has " + std::to_string(spare) +
                       " to spare: give the runtime " + std::to_string(std::max(chosen, 2 * least) - spare) +
                       " bytes more memory",
                   errc::budget_too_small);
    return memory;
  }

  /// Rows of the target that this rank writes.
  std::pair<std::size_t, std::size_t> my_rows() const {
    const auto [first, last] = request_.to->ranks().rows_of(call_.rank());
    const std::size_t begin = request_.to_lower[0], end = begin + request_.extents[0];
    return {std::clamp(first, begin, end), std::clamp(last, begin, end)};
  }

  pipeline_plan plan_for(std::uint64_t memory) const {
    const copy_request& r = request_;
    const std::size_t n = r.extents.size();
    pipeline_plan p;
    p.from_size = r.from_size;
    p.to_size = r.to_size;
    p.permutation = r.permutation;
    p.kernel = r.kernel;
    p.as_it_is = !r.kernel.changes && std::is_sorted(r.permutation.begin(), r.permutation.end());
    p.boxes = in_place_ ? 2 : 1;
    std::uint64_t all = 1;
    for (const std::size_t e : r.extents) all *= e;
    const std::uint64_t least = least_box / std::max(r.from_size, r.to_size);
    const std::uint64_t of_rank = all / static_cast<std::uint64_t>(call_.ranks());
    const std::uint64_t most =
        std::min(box_pipeline::elements_for(p, memory), std::max(of_rank / pieces_of_small, least));
    const extent_list edges = choose_edges(r.extents, from_, to_, std::max<std::uint64_t>(most, 1), in_place_);
    p.elements = 1;
    for (const std::size_t e : edges) p.elements *= e;
    p.from_unit.assign(n, 1);
    p.to_unit.assign(n, 1);
    const auto multiples = [&](const copy_side& s, extent_list& of) {
      for (std::size_t j = 0; j < n; ++j)
        of[j] = !s.tile.empty() ? s.tile[j] : j + 1 == n ? std::max<std::size_t>(4096 / s.element_size, 1) : 1;
    };
    multiples(from_, p.from_unit);
    multiples(to_, p.to_unit);
    if (in_place_)
      plan_in_place(p, edges);
    else
      plan_out_of_place(p, edges);
    return p;
  }

  void plan_out_of_place(pipeline_plan& p, const extent_list& edges) const {
    const copy_request& r = request_;
    extent_list lower = r.to_lower, upper = r.to_lower;
    for (std::size_t k = 0; k < lower.size(); ++k) upper[k] += r.extents[k];
    std::tie(lower[0], upper[0]) = my_rows();
    const box_grid grid(lower, upper, edges);
    p.units = grid.size();
    p.unit = [this, grid](std::size_t number) {
      box_move m;
      grid.box(number, m.to_lower, m.to_upper);
      from_box(m);
      return std::vector<box_move>{std::move(m)};
    };
  }

  void from_box(box_move& m) const {
    const copy_request& r = request_;
    m.from_lower = m.from_upper = r.from_lower;
    for (std::size_t k = 0; k < m.to_lower.size(); ++k) {
      const std::size_t j = r.permutation[k];
      m.from_lower[j] += m.to_lower[k] - r.to_lower[k];
      m.from_upper[j] += m.to_upper[k] - r.to_lower[k];
    }
  }

  /// Boxes (i, j) and (j, i) change places; those of the diagonal stay.  Each rank has every so
  /// manieth pair: all of them cost the same.
  void plan_in_place(pipeline_plan& p, const extent_list& edges) const {
    const box_grid grid({0, 0}, request_.extents, edges);
    const std::size_t side = grid.counts()[0];
    const std::size_t pairs = side * (side + 1) / 2;
    const auto ranks = static_cast<std::size_t>(call_.ranks());
    const auto mine = static_cast<std::size_t>(call_.rank());
    p.units = (pairs + ranks - 1 - mine) / ranks;
    p.unit = [this, grid, side, ranks, mine](std::size_t number) {
      std::size_t pair = number * ranks + mine;
      std::size_t i = 0;  // row i has the pairs (i, i) to (i, side - 1)
      while (pair >= side - i) pair -= side - i++;
      const std::size_t j = i + pair;
      std::vector<box_move> moves(i == j ? 1 : 2);
      grid.box(i * side + j, moves[0].to_lower, moves[0].to_upper);
      from_box(moves[0]);
      if (i != j) {
        grid.box(j * side + i, moves[1].to_lower, moves[1].to_upper);
        from_box(moves[1]);
      }
      return moves;
    };
  }

  const copy_request& request_;
  algorithm_call call_;
  const bool in_place_;
  copy_side from_, to_;
};

}  // namespace

pass_statistics run_copy(const copy_request& r) { return copy_run(r).run(); }

}  // namespace ooc::detail
