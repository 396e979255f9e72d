#include "runtime/algorithm/cut_wavefront.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/algorithm/work_in_rounds.hpp"

namespace ooc::detail {
/// A thread's own.
struct cut_wavefront::scratch {
  std::vector<std::byte*> out;
  std::vector<const std::byte*> in;
  slab_geometry::position lower{}, upper{};
};

cut_wavefront::cut_wavefront(const slab_geometry& g, const wave_plan& plan, const row_cut& cut,
                             std::vector<cut_field> fields, std::vector<cut_coefficient> coefficients,
                             sweep_program& program)
    : geometry_(g),
      plan_(plan),
      schedule_(g, plan),
      cut_(cut),
      fields_(std::move(fields)),
      coefficients_(std::move(coefficients)),
      program_(program),
      transfers_(g, plan, cut, fields_, coefficients_),
      open_tasks_(plan.levels + 1) {
  memory_bytes_ = transfers_.memory_bytes();
  for (std::size_t f = 0; f < fields_.size(); ++f)
    for (std::size_t level = 0; level < plan_.levels; ++level)
      rings_.push_back(place(fields_[f].element,
                             is_former(f, level) ? 0 : schedule_.slabs_kept(f == 0 && level + 1 < plan_.levels),
                             cut_.kept(level)));
  // All levels look at them.
  for (const cut_coefficient& c : coefficients_)
    coefficient_rings_.push_back(place(c.element,
                                       plan_.levels * schedule_.lag() + plan_.group + g.radius(),
                                       cut_.coefficient_rows_kept()));
}

void cut_wavefront::use(std::byte* memory, const storage::striped_file* file) noexcept {
  memory_ = memory;
  transfers_.use(memory, file);
}

// --- where slabs are

cut_wavefront::ring cut_wavefront::place(std::size_t element, std::size_t slabs, std::size_t rows) {
  const ring r{memory_bytes_, slabs, ring_pitch(rows * geometry_.ring_row_elements() * element)};
  memory_bytes_ += r.slabs * r.pitch;
  return r;
}

std::byte* cut_wavefront::ring_slab(const ring& r, std::ptrdiff_t i) const noexcept {
  return memory_ + r.offset + modulo(i - schedule_.reads().first, r.slabs) * r.pitch;
}

/// Of element (0, 0, ...), in a ring; level < k.
std::byte* cut_wavefront::field_slab(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept {
  if (is_former(f, level)) return field_slab(0, level - 1, i);
  const std::ptrdiff_t before = signed_size(geometry_.ring_row_origin()) -
                                cut_.first_kept(part_, level) * signed_size(geometry_.ring_row_elements());
  return ring_slab(rings_[f * plan_.levels + level], i) + before * signed_size(fields_[f].element);
}

std::byte* cut_wavefront::coefficient_slab(std::size_t c, std::ptrdiff_t i) const noexcept {
  const std::ptrdiff_t before =
      signed_size(geometry_.ring_row_origin()) -
      cut_.first_coefficient_row(part_) * signed_size(geometry_.ring_row_elements());
  return ring_slab(coefficient_rings_[c], i) + before * signed_size(coefficients_[c].element);
}

std::byte* cut_wavefront::target(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept {
  return level < plan_.levels ? field_slab(f, level, i) : transfers_.result(f, i);
}

/// As many as the threads can share, cut where those of whole slabs are, and where the array's rows end.
std::vector<cut_wavefront::piece> cut_wavefront::pieces_of(slab_range rows) const {
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

// --- the front

void cut_wavefront::run(const told_of_rounds& told) {
  turns_.reserve(plan_.levels + 1);
  transfers_.begin_pass();
  begin_part();
  work_in_rounds(plan_.threads, [&] { return next_round(told); }, [this] {
    scratch s;
    s.out.resize(fields_.size());
    s.in.resize((fields_.size() + coefficients_.size()) * (2 * geometry_.radius() + 1));
    return [this, s = std::move(s)](std::size_t task) mutable {
      auto t = std::upper_bound(turns_.begin(), turns_.end(), task,
                                [](std::size_t n, const turn& x) { return n < x.first_task; });
      --t;
      do_task(*t, task - t->first_task, s);
      if (open_tasks_[t->level].fetch_sub(1, std::memory_order_acq_rel) == 1) complete(*t, s);
    };
  });
  if (plan_.reported) fold();
}

void cut_wavefront::begin_part() {
  time_ = -1;
  pieces_.clear();
  for (std::size_t level = 0; level <= plan_.levels; ++level)
    pieces_.push_back(pieces_of(cut_.rows(part_, level)));
  coefficient_pieces_ = pieces_of(cut_.coefficient_rows(part_));
  transfers_.begin_part(part_);
}

/// Ends the round before, and returns the tasks of the next one; 0 at the end of the pass.
std::size_t cut_wavefront::next_round(const told_of_rounds& told) {
  const auto times = static_cast<std::uint64_t>(schedule_.times());
  for (;;) {
    if (time_ >= 0) transfers_.end_time();
    told(part_ * times + static_cast<std::uint64_t>(time_ + 1), cut_.parts() * times);
    if (++time_ == schedule_.times()) {
      transfers_.end_part();
      if (++part_ == cut_.parts()) return 0;
      begin_part();
      continue;
    }
    transfers_.begin_time(time_);
    if (const std::size_t tasks = begin_turns(); tasks != 0) return tasks;
  }
}

std::size_t cut_wavefront::begin_turns() {
  std::size_t all = 0;
  turns_.clear();
  for (std::size_t level = 0; level <= plan_.levels; ++level) {
    const slab_range slabs = schedule_.due(level, time_);
    if (slabs.empty()) continue;
    std::size_t of_slab = 0;
    if (level == 0 && !coefficients_.empty()) of_slab += coefficient_pieces_.size();
    if (level < plan_.levels && transfers_.has_border_before()) ++of_slab;
    const std::size_t tasks = pieces_[level].size() + slabs.size() * of_slab;
    if (tasks == 0) continue;
    turns_.push_back({level, slabs, all, pieces_[level].size(), of_slab});
    open_tasks_[level].store(tasks, std::memory_order_relaxed);
    all += tasks;
  }
  return all;
}

// --- tasks

void cut_wavefront::set_box(const piece& p, scratch& s) const noexcept {
  s.lower = {};
  s.lower[1] = p.first - p.shift;
  s.upper[1] = p.last - p.shift;
  for (std::size_t k = 2; k < geometry_.rank(); ++k) s.upper[k] = signed_size(geometry_.extents()[k]);
}

/// A piece of all slabs that are due, one after the other: slabs that follow each other have most of their
/// neighbours in common, which are in the processor's cache then.
void cut_wavefront::do_task(const turn& t, std::size_t task, scratch& s) {
  if (task < t.pieces) {
    for (std::ptrdiff_t i = t.slabs.first; i < t.slabs.last; ++i) do_piece(t.level, i, pieces_[t.level][task], s);
    return;
  }
  task -= t.pieces;
  const std::ptrdiff_t i = t.slabs.first + signed_size(task / t.tasks_of_slab);
  const std::size_t number = task % t.tasks_of_slab;
  if (t.level == 0 && !coefficients_.empty() && number < coefficient_pieces_.size()) {
    const piece& p = coefficient_pieces_[number];
    set_box({p.first, p.last, 0, 0}, s);
    for (std::size_t c = 0; c < coefficients_.size(); ++c)
      geometry_.copy_box(s.lower, s.upper, coefficient_slab(c, i), geometry_.ring_strides(),
                         transfers_.coefficient(c, i), geometry_.array_strides(),
                         coefficients_[c].element);
    return;
  }
  for (std::size_t f = 0; f < fields_.size(); ++f)
    if (!is_former(f, t.level))
      std::memcpy(ring_slab(rings_[f * plan_.levels + t.level], i), transfers_.border_before(f, t.level, i),
                cut_.border(t.level) * geometry_.ring_row_elements() * fields_[f].element);
}

void cut_wavefront::do_piece(std::size_t level, std::ptrdiff_t i, const piece& p, scratch& s) {
  if (level > 0 && !schedule_.at_end(i)) return compute(level, i, p, s);
  set_box({p.first, p.last, 0, 0}, s);
  for (std::size_t f = 0; f < fields_.size(); ++f)
    if (level == 0)
      geometry_.copy_box(s.lower, s.upper, field_slab(f, 0, i), geometry_.ring_strides(),
                         transfers_.field(f, i), geometry_.array_strides(), fields_[f].element);
    else if (!is_former(f, level))
      geometry_.copy_box(s.lower, s.upper, target(f, level, i), target_strides(level),
                         field_slab(f, level - 1, i), geometry_.ring_strides(), fields_[f].element);
  copy_former(level, i, s);
}

/// Of the last level, in the box of `s`: nobody computes it.
void cut_wavefront::copy_former(std::size_t level, std::ptrdiff_t i, const scratch& s) {
  const std::size_t f = fields_.size() - 1;
  if (level == plan_.levels && is_former(f, level))
    geometry_.copy_box(s.lower, s.upper, target(f, level, i), geometry_.array_strides(),
                       field_slab(0, level - 1, i), geometry_.ring_strides(), fields_[f].element);
}

/// Slab i of a level and its neighbours one level below, as the rows of the array.
void cut_wavefront::describe(sweep_piece& p, std::size_t level, std::ptrdiff_t i, std::ptrdiff_t shift,
                             scratch& s) const {
  p.index = schedule_.index_of(i);
  p.step = plan_.steps_before + level;
  p.reported = plan_.reported && level == plan_.levels;
  p.extents = geometry_.extents().data();
  p.lower = s.lower.data();
  p.upper = s.upper.data();
  p.out_strides = target_strides(level).data();
  p.in_strides = geometry_.ring_strides().data();
  const auto moved = [&](const slab_geometry::position& strides, std::size_t element) {
    return shift * strides[1] * signed_size(element);
  };
  for (std::size_t f = 0; f < fields_.size(); ++f)
    s.out[f] = is_former(f, level) ? nullptr
                                   : target(f, level, i) + moved(target_strides(level), fields_[f].element);
  p.out = s.out.data();
  const auto r = signed_size(geometry_.radius());
  const slab_range known = schedule_.range(level - 1);
  std::size_t at = 0;
  const auto add = [&](std::size_t element, bool alone, auto slab) {
    for (std::ptrdiff_t d = -r; d <= r; ++d, ++at)
      s.in[at] = i + d < known.first || i + d >= known.last || (alone && d != 0)
                     ? nullptr
                     : slab(i + d) + moved(geometry_.ring_strides(), element);
  };
  for (std::size_t f = 0; f < fields_.size(); ++f)
    add(fields_[f].element, is_former(f, 1), [&](std::ptrdiff_t n) { return field_slab(f, level - 1, n); });
  for (std::size_t c = 0; c < coefficients_.size(); ++c)
    add(coefficients_[c].element, false, [&](std::ptrdiff_t n) { return coefficient_slab(c, n); });
  p.in = s.in.data();
}

void cut_wavefront::compute(std::size_t level, std::ptrdiff_t i, const piece& rows, scratch& s) {
  sweep_piece p;
  set_box(rows, s);
  describe(p, level, i, rows.shift, s);
  p.slot = p.index * geometry_.pieces() + rows.number;
  const auto middle = static_cast<std::size_t>(signed_size(geometry_.radius()));
  for (std::size_t f = 0; f < fields_.size(); ++f)
    if (!is_former(f, level))
      geometry_.copy_edges(s.lower, s.upper, s.out[f], target_strides(level),
                           s.in[f * (2 * geometry_.radius() + 1) + middle], geometry_.ring_strides(),
                           fields_[f].element);
  geometry_.clip(s.lower, s.upper);
  program_.compute(p);
  set_box({rows.first, rows.last, 0, 0}, s);
  copy_former(level, i, s);
}

/// All tasks of a level have been done.
void cut_wavefront::complete(const turn& t, scratch& s) {
  const bool last = t.level == plan_.levels;
  const slab_range rows = cut_.rows(part_, t.level);
  for (std::ptrdiff_t i = t.slabs.first; i < t.slabs.last; ++i) {
    if (plan_.completes && t.level > 0)
      for (const piece& rows_of : pieces_[t.level]) {
        sweep_piece p;
        set_box(rows_of, s);
        describe(p, t.level, i, rows_of.shift, s);
        program_.complete(p);
      }
    if (last) continue;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      if (is_former(f, t.level)) continue;
      const std::size_t row = geometry_.ring_row_elements() * fields_[f].element;
      if (geometry_.padded())
        geometry_.fill_row_pads(rows.first, rows.last, field_slab(f, t.level, i), fields_[f].element);
      if (transfers_.has_border_after())
        std::memcpy(transfers_.border_after(f, t.level, i),
                    ring_slab(rings_[f * plan_.levels + t.level], i) + cut_.width() * row,
                    cut_.border(t.level) * row);
    }
    if (t.level > 0 || !geometry_.padded()) continue;
    const slab_range more = cut_.coefficient_rows(part_);
    for (std::size_t c = 0; c < coefficients_.size(); ++c)
      geometry_.fill_row_pads(more.first, more.last, coefficient_slab(c, i), coefficients_[c].element);
  }
}

/// Values of the last level, in the order of slabs, as from slabs that are whole.
void cut_wavefront::fold() {
  slab_range inside = plan_.rows;
  while (!inside.empty() && schedule_.at_end(inside.first)) ++inside.first;
  while (!inside.empty() && schedule_.at_end(inside.last - 1)) --inside.last;
  if (!inside.empty())
    program_.fold(static_cast<std::size_t>(inside.first) * geometry_.pieces(), inside.size(),
                  geometry_.pieces());
}

}  // namespace ooc::detail
