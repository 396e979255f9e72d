#include "runtime/algorithm/factor_plan.hpp"

namespace ooc::detail {
namespace {

std::size_t rows_from(const factor_facts& f, std::size_t column) {
  return f.below_diagonal_only ? f.rows - std::min(column, f.rows - 1) : f.rows;
}

/// The kernel has some matrices of a strip by a strip, and, where it is not that of Cholesky, one of a strip by a
/// panel.
std::uint64_t work(const factor_facts& f, std::size_t strip, std::size_t width) {
  return std::uint64_t{strip} * (3 * strip + (f.below_diagonal_only ? 0 : width));
}

factor_plan with_strips_of(std::size_t strip, const factor_facts& f, std::uint64_t elements) {
  factor_plan plan;
  plan.strip = strip;
  const auto width = [&](std::size_t column, std::uint64_t room) {
    const std::uint64_t fixed = work(f, strip, 0);
    const std::size_t beside = f.below_diagonal_only ? 0 : strip;
    return room <= fixed ? 0 : static_cast<std::size_t>((room - fixed) / (rows_from(f, column) + beside));
  };
  if (f.always_passed || width(0, elements) < f.columns) plan.buffer_elements = std::uint64_t{strip} * f.rows;
  const std::uint64_t room = elements - std::min(elements, 2 * plan.buffer_elements);
  for (std::size_t at = 0; at < f.columns;) {
    plan.edges.push_back(at);
    const std::size_t each = width(at, room), own = strip_of_panel(strip), rest = f.columns - at;
    const std::size_t fits = f.ranks == 1 ? each : std::max(each, each / own * own * f.ranks);
    const std::size_t taken = fits >= rest ? rest : fits / strip * strip;
    if (taken == 0) return {};
    const std::size_t of_one = columns_of_rank(plan, taken, 0, f.ranks);
    plan.panel_elements = std::max(plan.panel_elements, std::uint64_t{rows_from(f, at)} * of_one);
    plan.work_elements = std::max(plan.work_elements, work(f, strip, of_one));
    at += taken;
  }
  plan.edges.push_back(f.columns);
  return plan;
}

}  // namespace

std::size_t columns_of_rank(const factor_plan& p, std::size_t columns, std::size_t rank, std::size_t ranks) {
  const std::size_t own = strip_of_panel(p.strip), whole = columns / own, last = columns % own;
  const std::size_t strips = whole / ranks + (rank < whole % ranks ? 1 : 0);
  return strips * own + (rank == whole % ranks ? last : 0);
}

// A strip that is read takes an eighth of memory at most, as long as it can, so that panels stay wide.
factor_plan plan_factorisation(const factor_facts& f, std::uint64_t memory_bytes) {
  const std::uint64_t elements = memory_bytes / f.element_size;
  for (std::size_t strip = widest_strip; strip > narrowest_strip; strip /= 2) {
    factor_plan plan = with_strips_of(strip, f, elements);
    const bool whole = plan.edges.size() == 2 && !f.always_passed;
    if (plan.strip != 0 && (whole || std::uint64_t{strip} * f.rows <= elements / 8)) return plan;
  }
  return with_strips_of(narrowest_strip, f, elements);
}

std::uint64_t least_factor_memory(const factor_facts& f) {
  const auto panel_of = [&](std::size_t width) {
    return std::uint64_t{f.rows} * width + work(f, narrowest_strip, width);
  };
  const std::uint64_t buffers = 2 * std::uint64_t{narrowest_strip} * f.rows;
  const std::uint64_t in_panels = panel_of(std::min(narrowest_strip, f.columns)) + buffers;
  return (f.always_passed ? in_panels : std::min(in_panels, panel_of(f.columns))) * f.element_size;
}

}  // namespace ooc::detail
