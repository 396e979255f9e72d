#include "runtime/sweep/wavefront.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/algorithm/work_in_rounds.hpp"

namespace ooc::detail {

/// A thread's own.
struct wavefront::scratch {
  std::vector<std::byte*> out;
  std::vector<const std::byte*> in;
  slab_geometry::position lower{}, upper{};

  /// Rows of a slab; beyond dimension 1 all of it.
  void set_box(const slab_geometry& g, std::ptrdiff_t first, std::ptrdiff_t last) noexcept {
    lower = {};
    lower[1] = first;
    upper[1] = last;
    for (std::size_t k = 2; k < g.rank(); ++k) upper[k] = signed_size(g.extents()[k]);
  }
};

wavefront::wavefront(const slab_geometry& g, const wave_plan& plan, const row_cut& cut, const sweep_request& r,
                     sweep_program& program, slab_place& place, std::byte* memory)
    : geometry_(g),
      plan_(plan),
      schedule_(g, plan),
      cut_(cut),
      request_(r),
      program_(program),
      place_(place),
      rings_(g, plan, cut, r),
      open_tasks_(plan.levels + 1) {
  rings_.use(memory);
}

// --- the front

void wavefront::run(const told_of_rounds& told) {
  turns_.reserve(2 * plan_.levels + 2);
  begin_part();
  work_in_rounds(
      plan_.threads, [&] { return next_round(told); },
      [this] {
        scratch s;
        s.out.resize(request_.fields.size());
        s.in.resize(request_.inputs() * (2 * geometry_.radius() + 1));
        return [this, s = std::move(s)](std::size_t task) mutable {
          auto t = std::upper_bound(turns_.begin(), turns_.end(), task,
                                    [](std::size_t n, const turn& x) { return n < x.first_task; });
          --t;
          do_task(*t, task - t->first_task, s);
          if (open_tasks_[t->level].fetch_sub(1, std::memory_order_acq_rel) == 1) complete(t->level, s);
        };
      });
}

/// As many as the threads can share, cut where those of whole slabs are, and where the array's rows end.
std::vector<wavefront::piece> wavefront::pieces_of(slab_range rows) const {
  const auto m = signed_size(cut_.array_rows());
  const auto most = signed_size(geometry_.piece_rows());
  std::vector<piece> all;
  for (std::ptrdiff_t j = rows.first; j < rows.last;) {
    const auto row = signed_size(modulo(j, cut_.array_rows()));
    const std::ptrdiff_t end = std::min(m, (row / most + 1) * most);
    const std::ptrdiff_t last = std::min(rows.last, j + end - row);
    all.push_back({j, last, j - row, static_cast<std::size_t>(row / most)});
    j = last;
  }
  return all;
}

void wavefront::begin_part() {
  time_ = -1;
  pieces_.clear();
  for (std::size_t level = 0; level <= plan_.levels; ++level) pieces_.push_back(pieces_of(cut_.rows(part_, level)));
  coefficient_pieces_ = pieces_of(cut_.coefficient_rows(part_));
  rings_.begin_part(part_);
  place_.begin_part(part_);
}

/// Ends the round before, and returns the tasks of the next one; 0 at the end of the pass.
std::size_t wavefront::next_round(const told_of_rounds& told) {
  const auto times = static_cast<std::uint64_t>(schedule_.times());
  for (;;) {
    if (time_ >= 0) {
      place_.end_time();
      if (plan_.reported && part_ + 1 == cut_.parts()) fold();
    }
    told(part_ * times + static_cast<std::uint64_t>(time_ + 1), cut_.parts() * times);
    if (++time_ == schedule_.times()) {
      place_.end_part();
      if (++part_ == cut_.parts()) return 0;
      begin_part();
      continue;
    }
    place_.begin_time(time_);
    if (const std::size_t tasks = begin_turns(); tasks != 0) return tasks;
  }
}

std::size_t wavefront::begin_turns() {
  std::size_t all = 0;
  turns_.clear();
  for (std::atomic<std::size_t>& n : open_tasks_) n.store(0, std::memory_order_relaxed);
  const auto add = [&](work kind, std::size_t level, std::size_t run, const std::vector<piece>& pieces) {
    const slab_range slabs = schedule_.due(level, time_);
    const std::size_t tasks = (slabs.size() + run - 1) / run * pieces.size();
    if (tasks == 0) return;
    turns_.push_back({kind, level, slabs, run, &pieces, all});
    open_tasks_[level].fetch_add(tasks, std::memory_order_relaxed);
    all += tasks;
  };
  // Tasks that may wait for the disk come first.
  add(work::fields, 0, plan_.run, pieces_[0]);
  if (request_.inputs() > request_.fields.size()) add(work::coefficients, 0, plan_.run, coefficient_pieces_);
  for (std::size_t level = plan_.levels; level > 0; --level) add(work::fields, level, plan_.run, pieces_[level]);
  static const std::vector<piece> whole_border(1);
  for (std::size_t level = 0; level < plan_.levels && place_.has_border_before(); ++level)
    add(work::borders, level, 1, whole_border);
  return all;
}

/// Values of the last level, in the order of slabs, as of slabs that are whole.
void wavefront::fold() {
  slab_range inside = schedule_.due(plan_.levels, time_);
  while (!inside.empty() && schedule_.at_end(inside.first)) ++inside.first;
  while (!inside.empty() && schedule_.at_end(inside.last - 1)) --inside.last;
  if (!inside.empty())
    program_.fold(static_cast<std::size_t>(inside.first - first_slot()) * geometry_.pieces(), inside.size(),
                  geometry_.pieces());
}

// --- tasks

/// N = 1: up to where the slabs from i on follow each other wherever they are, and all are computed or none.
std::ptrdiff_t wavefront::run_from(std::ptrdiff_t i, std::ptrdiff_t last) const noexcept {
  const auto r = signed_size(geometry_.radius());
  std::ptrdiff_t end = std::min(last, rings_.contiguous_until(i));
  for (const std::ptrdiff_t edge : {plan_.rows.first, plan_.rows.last, r, signed_size(geometry_.slabs()) - r})
    if (i < edge) end = std::min(end, edge);
  return end;
}

/// A piece of some slabs, one after the other: slabs that follow each other have most of their neighbours in common,
/// which are in the processor's cache then.
void wavefront::do_task(const turn& t, std::size_t task, scratch& s) {
  piece rows = (*t.pieces)[task % t.pieces->size()];
  std::ptrdiff_t i = t.slabs.first + signed_size(task / t.pieces->size() * t.run);
  const std::ptrdiff_t last = std::min(i + signed_size(t.run), t.slabs.last);
  while (i < last) {
    const std::ptrdiff_t run = geometry_.rank() == 1 ? run_from(i, last) - i : 1;
    if (geometry_.rank() == 1) rows.last = run;
    do_piece(t, i, rows, s);
    i += run;
  }
}

void wavefront::do_piece(const turn& t, std::ptrdiff_t i, const piece& rows, scratch& s) {
  if (t.kind == work::borders) {
    for (std::size_t f = 0; f < request_.fields.size(); ++f)
      if (!rings_.is_former(f, t.level))
        std::memcpy(rings_.first_row(f, t.level, i), place_.border_before(f, t.level, i),
                    cut_.border(t.level) * geometry_.ring_row_elements() * request_.element_size(f));
    return;
  }
  if (t.level > 0 && !schedule_.at_end(i)) return compute(t.level, i, rows, s);
  s.set_box(geometry_, rows.first, rows.last);
  if (t.kind == work::coefficients) return read(request_.fields.size(), request_.inputs(), i, s);
  if (t.level == 0) return read(0, request_.fields.size(), i, s);
  for (std::size_t f = 0; f < request_.fields.size(); ++f)
    if (t.level == plan_.levels || !rings_.is_former(f, t.level)) copy_up(f, t.level, i, s);
}

/// The box of `s` of these inputs.
void wavefront::read(std::size_t first, std::size_t last, std::ptrdiff_t i, const scratch& s) const {
  for (std::size_t x = first; x < last; ++x) {
    const std::byte* const from = place_.source(x, i, {s.lower[1], s.upper[1]});
    geometry_.copy_box(s.lower, s.upper, rings_.slab(x, 0, i), geometry_.ring_strides(), from,
                       geometry_.array_strides(), request_.element_size(x));
  }
}

/// The box of `s` keeps its values; former ones are those that the first field had one level below.
void wavefront::copy_up(std::size_t f, std::size_t level, std::ptrdiff_t i, const scratch& s) const {
  geometry_.copy_box(s.lower, s.upper, target(f, level, i), strides(level),
                     rings_.slab(rings_.is_former(f, level) ? 0 : f, level - 1, i), geometry_.ring_strides(),
                     request_.element_size(f));
}

void wavefront::compute(std::size_t level, std::ptrdiff_t i, const piece& rows, scratch& s) {
  sweep_piece p;
  s.set_box(geometry_, rows.first - rows.shift, rows.last - rows.shift);
  describe(p, level, i, rows.shift, s);
  if (geometry_.rank() == 1) p.count = static_cast<std::size_t>(rows.last);
  p.slot = p.reported ? static_cast<std::size_t>(i - first_slot()) * geometry_.pieces() + rows.number : 0;
  const std::size_t around = 2 * geometry_.radius() + 1;
  for (std::size_t f = 0; f < request_.fields.size(); ++f)
    if (!rings_.is_former(f, level))
      geometry_.copy_edges(s.lower, s.upper, s.out[f], strides(level), s.in[f * around + geometry_.radius()],
                           geometry_.ring_strides(), request_.element_size(f));
  geometry_.clip(s.lower, s.upper);
  program_.compute(p);
  const std::size_t last = request_.fields.size() - 1;
  if (level < plan_.levels || !rings_.is_former(last, level)) return;
  s.set_box(geometry_, rows.first, rows.last);  // nobody computes it
  copy_up(last, level, i, s);
}

/// Slab i of a level and its neighbours one level below, as the rows of the array.
void wavefront::describe(sweep_piece& p, std::size_t level, std::ptrdiff_t i, std::ptrdiff_t shift, scratch& s) const {
  p.index = schedule_.index_of(i);
  p.step = plan_.steps_before + level;
  p.reported = plan_.reported && level == plan_.levels;
  p.extents = geometry_.extents().data();
  p.lower = s.lower.data();
  p.upper = s.upper.data();
  p.out_strides = strides(level).data();
  p.in_strides = geometry_.ring_strides().data();
  const auto moved = [&](const slab_geometry::position& by, std::size_t element) {
    return shift * by[1] * signed_size(element);
  };
  for (std::size_t f = 0; f < request_.fields.size(); ++f)
    s.out[f] =
        rings_.is_former(f, level) ? nullptr : target(f, level, i) + moved(strides(level), request_.element_size(f));
  p.out = s.out.data();
  const auto r = signed_size(geometry_.radius());
  const slab_range known = schedule_.range(level - 1);
  std::size_t at = 0;
  for (std::size_t x = 0; x < request_.inputs(); ++x) {
    const bool alone = rings_.is_former(x, 1);
    for (std::ptrdiff_t n = i - r; n <= i + r; ++n)
      s.in[at++] = n < known.first || n >= known.last || (alone && n != i)
                       ? nullptr
                       : rings_.slab(x, level - 1, n) + moved(geometry_.ring_strides(), request_.element_size(x));
  }
  p.in = s.in.data();
}

/// All tasks of a level have been done.
void wavefront::complete(std::size_t level, scratch& s) {
  const slab_range slabs = schedule_.due(level, time_);
  if (plan_.completes && level > 0)
    for (std::ptrdiff_t i = slabs.first; i < slabs.last; ++i)
      for (auto p = pieces_[level].begin(); p != pieces_[level].end();) {
        const piece rows = *p;
        std::ptrdiff_t last = p->last;
        while (++p != pieces_[level].end() && p->shift == rows.shift) last = p->last;
        sweep_piece all;
        s.set_box(geometry_, rows.first - rows.shift, last - rows.shift);
        describe(all, level, i, rows.shift, s);
        program_.complete(all);
      }
  if (level == plan_.levels) return;
  rings_.fill_pads(level, slabs);
  if (!place_.has_border_after()) return;
  for (std::ptrdiff_t i = slabs.first; i < slabs.last; ++i)
    for (std::size_t f = 0; f < request_.fields.size(); ++f)
      if (const std::size_t row = geometry_.ring_row_elements() * request_.element_size(f); !rings_.is_former(f, level))
        std::memcpy(place_.border_after(f, level, i), rings_.first_row(f, level, i) + cut_.width() * row,
                    cut_.border(level) * row);
}

}  // namespace ooc::detail
