#include "runtime/algorithm/factor_call.hpp"

#include <algorithm>

#include "oocarray/error.hpp"
#include "runtime/algorithm/kernel_memory.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

factor_call::factor_call(const char* what, array_core& named, array_core& leader, std::vector<array_core*> written,
                         factor_kernel& kernel, const factor_options& o)
    : kernel_(kernel),
      size_(kernel.element_size()),
      call_(std::string(what) + " of '" + named.facts().path + "'", leader, std::move(written),
            {.threads = o.threads, .mark = o.mark, .progress = o.progress, .plan = o.plan}),
      threads_(kernel.threads_by_itself() ? 1 : call_.threads()),
      wanted_(o.memory) {
  named.check_open();
  if (call_.ranks() > 1) call_.refuse_other_group(named);
}

void factor_call::choose(const factor_facts& f) {
  const std::uint64_t spare = call_.leader().shared().pager().spare();
  const std::uint64_t allowed = wanted_ != 0 ? std::min(wanted_, spare) : spare;
  const std::uint64_t all = std::uint64_t{f.rows} * f.columns * size_;
  const std::uint64_t packing = packing_bytes(threads_, all, allowed);
  const std::uint64_t edges = 3 * page_bytes;  // buffers begin with a page
  const std::uint64_t least = least_with_packing(threads_, all, edges + least_factor_memory(f));
  call_.together([&] {
    if (allowed < least) call_.refuse_memory(least, allowed, spare);
  });
  std::uint64_t room = allowed - packing - edges;
  if (call_.ranks() > 1) group().all_reduce(call_.name(), {&room, 1}, reduction::min);
  plan_ = plan_factorisation(f, room);
  extra_bytes_ = packing + plan_.work_elements * size_;
  lent_bytes_ = (plan_.panel_elements + 2 * plan_.buffer_elements) * size_ + edges;
  done_.memory = lent_bytes_ + extra_bytes_;
  done_.panels = plan_.edges.size() - 1;
}

void factor_call::take_memory() {
  pager& p = call_.leader().shared().pager();
  extra_ = p.reserve(extra_bytes_, call_.name());
  memory_.emplace(p, lent_bytes_, call_.name());
  team_.emplace(threads_);
}

factor_statistics factor_call::planned(const traffic& elements) const {
  factor_statistics s = done_;
  s.bytes_read = elements.read * size_;
  s.bytes_written = elements.written * size_;
  return s;
}

void factor_call::count_read(std::uint64_t bytes) {
  done_.bytes_read += bytes;
  call_.advance(bytes);
}

void factor_call::count_written(std::uint64_t bytes) {
  done_.bytes_written += bytes;
  call_.advance(bytes);
}

panel_stream::buffers factor_call::buffers() const noexcept {
  return {memory_->data() + in_whole_pages(plan_.panel_elements * size_), 2,
          in_whole_pages(plan_.buffer_elements * size_)};
}

matrix_block factor_call::strip_of(const panel_stream& stream, std::uint64_t n, const rectangle& place) {
  const matrix_part m = stream.panel(n);
  return {const_cast<std::byte*>(m.data), place.lower[1], place.lower[0], m.columns, m.rows, m.stride};
}

void factor_call::compute(factor_step step, const matrix_block& strip, const std::vector<matrix_block>& targets) {
  if (targets.empty()) return;
  if (targets.size() != 1) {
    team_->run(targets.size(), [&](std::size_t t) { kernel_.compute(step, strip, targets[t]); });
    return;
  }
  const matrix_block& target = targets.front();
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

void factor_call::require(std::size_t columns, const matrix_block& strip) const {
  if (columns == strip.columns) return;
  const std::size_t column = strip.column + columns;
  call_.refuse(
      kernel_.below_diagonal_only()
          ? "the matrix is not positive definite: its first " + std::to_string(column + 1) + " rows and columns are not"
          : "the matrix is singular: the diagonal has a zero in column " + std::to_string(column),
      errc::singular);
}

}  // namespace ooc::detail
