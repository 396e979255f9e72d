#include "runtime/algorithm/wavefront.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/algorithm/work_in_rounds.hpp"
#include "runtime/pager/segment.hpp"
#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {
/// A thread's own.
struct wavefront::scratch {
  std::vector<std::byte*> out;
  std::vector<const std::byte*> in;
  slab_geometry::position lower{}, upper{};
};

wavefront::wavefront(const slab_geometry& g, const wave_plan& plan, std::vector<wave_field> fields,
                     std::vector<wave_coefficient> coefficients, sweep_program& program)
    : geometry_(g),
      plan_(plan),
      schedule_(g, plan),
      fields_(std::move(fields)),
      coefficients_(std::move(coefficients)),
      program_(program),
      open_tasks_(plan.levels + 1) {
  for (std::size_t f = 0; f < fields_.size(); ++f)
    rings_.push_back(
        place(fields_[f].element, schedule_.slabs_kept(f == 0), is_former(f, 1) ? 1 : plan_.levels));
  // All levels look at them, so what the last level needs is still there.
  for (const wave_coefficient& c : coefficients_)
    coefficient_rings_.push_back(
        place(c.element, plan_.levels * lag() + plan_.group + g.radius(), 1));
  const std::size_t ghosts = plan_.levels * g.radius();
  for (const wave_field& f : fields_) {
    const std::size_t bytes = f.in_place ? in_whole_lines(ghosts * g.slab_elements() * f.element) : 0;
    ghosts_low_.push_back(memory_bytes_);
    memory_bytes_ += plan_.ghosts_low ? bytes : 0;
    ghosts_high_.push_back(memory_bytes_);
    memory_bytes_ += plan_.ghosts_high ? bytes : 0;
  }
  times_ = schedule_.times();
  promised_ = plan_.rows.first;
}

// --- where slabs are

/// Rings of so many levels.  For N = 1 the elements follow each other, and the first and last of the
/// ring are repeated beyond its ends, so that a kernel finds its neighbours beside an element.
wavefront::ring wavefront::place(std::size_t element, std::size_t slabs, std::size_t levels) {
  ring r{};
  r.offset = memory_bytes_;
  r.slabs = slabs;
  if (geometry_.rank() == 1) {
    r.pitch = element;
    r.level_bytes = in_whole_lines((slabs + 2 * geometry_.radius()) * element);
  } else {
    r.pitch = ring_pitch(geometry_.ring_elements() * element);
    r.level_bytes = slabs * r.pitch;
  }
  memory_bytes_ += levels * r.level_bytes;
  return r;
}

std::byte* wavefront::slab_in(const ring& r, std::size_t element, std::size_t level,
                              std::ptrdiff_t i) const noexcept {
  const std::size_t slot = modulo(i - reads().first, r.slabs);
  const std::size_t margin =
      (geometry_.rank() == 1 ? geometry_.radius() : geometry_.ring_origin()) * element;
  return memory_ + r.offset + level * r.level_bytes + slot * r.pitch + margin;
}

std::byte* wavefront::field_slab(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept {
  if (is_former(f, level)) return field_slab(0, level - 1, i);
  return slab_in(rings_[f], fields_[f].element, level, i);
}

const std::byte* wavefront::source(std::size_t field, std::ptrdiff_t i) const noexcept {
  const wave_field& f = fields_[field];
  const std::size_t bytes = geometry_.slab_elements() * f.element;
  if (f.in_place && i < plan_.rows.first) {
    const std::ptrdiff_t first =
        plan_.rows.first - signed_size(plan_.levels * geometry_.radius());
    return memory_ + ghosts_low_[field] + static_cast<std::size_t>(i - first) * bytes;
  }
  if (f.in_place && i >= plan_.rows.last)
    return memory_ + ghosts_high_[field] + static_cast<std::size_t>(i - plan_.rows.last) * bytes;
  return f.from->facts().base + index_of(i) * bytes;
}

std::byte* wavefront::target(std::size_t field, std::size_t level, std::ptrdiff_t i) const noexcept {
  const wave_field& f = fields_[field];
  if (level < plan_.levels) return field_slab(field, level, i);
  return f.to->facts().base + index_of(i) * geometry_.slab_elements() * f.element;
}

/// N = 1: how far the slabs from i on follow each other wherever they are, at most up to `last`.
std::ptrdiff_t wavefront::run_from(std::ptrdiff_t i, std::ptrdiff_t last) const noexcept {
  const auto until = [&](std::size_t slabs, std::ptrdiff_t base) {
    return i + signed_size(slabs - modulo(i - base, slabs));
  };
  std::ptrdiff_t end = std::min(last, until(geometry_.slabs(), 0));
  for (const ring& r : rings_) end = std::min(end, until(r.slabs, reads().first));
  for (const ring& r : coefficient_rings_) end = std::min(end, until(r.slabs, reads().first));
  for (const std::ptrdiff_t edge : {plan_.rows.first, plan_.rows.last})
    if (i < edge) end = std::min(end, edge);
  return end;
}

void wavefront::save_ghosts() {
  const slab_range all = reads();
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (!fields_[f].in_place) continue;
    const std::size_t bytes = geometry_.slab_elements() * fields_[f].element;
    const auto save = [&](std::ptrdiff_t i) {
      const std::byte* const from = fields_[f].from->facts().base + index_of(i) * bytes;
      bring_in(*fields_[f].from, from, bytes);
      std::memcpy(const_cast<std::byte*>(source(f, i)), from, bytes);
    };
    for (std::ptrdiff_t i = all.first; i < plan_.rows.first; ++i) save(i);
    for (std::ptrdiff_t i = plan_.rows.last; i < all.last; ++i) save(i);
  }
}

// --- the front

void wavefront::run(const told_of_rounds& told) {
  if (plan_.rows.empty()) return;
  turns_.reserve(plan_.levels + 1);
  const auto next = [&] {
    if (time_ >= 0) end_time();
    told(static_cast<std::uint64_t>(time_ + 1), static_cast<std::uint64_t>(times_));
    return begin_time();
  };
  work_in_rounds(plan_.threads, next, [this] {
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
}

/// Makes the tasks of the next time at which there are any, and returns how many; 0 at the end.
std::size_t wavefront::begin_time() {
  std::size_t all = 0;
  turns_.clear();
  while (all == 0) {
    if (++time_ >= times_) return 0;
    // What may wait for the disk comes first.
    const auto add = [&](std::size_t level) {
      const slab_range slabs = due(level);
      if (slabs.first >= slabs.last) return;
      const auto count = static_cast<std::size_t>(slabs.last - slabs.first);
      const std::size_t tasks = geometry_.rank() == 1 ? (count + plan_.run - 1) / plan_.run
                                                      : count * geometry_.pieces();
      turns_.push_back({level, slabs, all});
      open_tasks_[level].store(tasks, std::memory_order_relaxed);
      all += tasks;
    };
    add(0);
    for (std::size_t level = plan_.levels; level > 0; --level) add(level);
  }
  promise();
  return all;
}

/// Values of the last level, in the order of slabs.
void wavefront::end_time() {
  if (!plan_.reported) return;
  for (const turn& t : turns_) {
    if (t.level != plan_.levels) continue;
    std::ptrdiff_t first = t.slabs.first, last = t.slabs.last;
    while (first < last && at_end(first)) ++first;
    while (last > first && at_end(last - 1)) --last;
    if (first < last)
      program_.fold(static_cast<std::size_t>(first - t.slabs.first) * geometry_.pieces(),
                    static_cast<std::size_t>(last - first), geometry_.pieces());
  }
}

/// Blocks that the last level comes to will be written whole: those that have left memory since they
/// were read need not be loaded.  The promise goes as far as all fields have been read, and is renewed
/// for every block, as it does not hold for what is in memory when it is given.
void wavefront::promise() {
  const slab_range now = due(plan_.levels);
  if (now.first >= now.last || now.last <= promised_) return;
  const std::ptrdiff_t read = std::min(
      plan_.rows.last, std::max(now.last, reads().first + time_ * signed_size(plan_.group)));
  const std::size_t n = geometry_.rank();
  slab_geometry::shape lower{};
  slab_geometry::shape upper = geometry_.extents();
  std::ptrdiff_t rows = plan_.rows.last;
  for (const wave_field& f : fields_) {
    const std::size_t slab = geometry_.slab_elements() * f.element;
    rows = std::min(rows, signed_size(std::max<std::size_t>(f.to->facts().block_bytes / slab, 1)));
    lower[0] = static_cast<std::size_t>(now.first);
    upper[0] = static_cast<std::size_t>(f.in_place ? read : plan_.rows.last);
    f.to->overwrite({{lower.data(), n}, {upper.data(), n}});
  }
  promised_ = std::max(now.last, now.first + rows);
}

// --- tasks

void wavefront::do_task(const turn& t, std::size_t task, scratch& s) {
  if (geometry_.rank() > 1) {
    const std::ptrdiff_t i = t.slabs.first + signed_size(task / geometry_.pieces());
    const std::size_t piece = task % geometry_.pieces();
    if (t.level == 0) return read_piece(i, piece);
    if (!at_end(i)) return compute(t.level, i, 1, piece, s);
    for (std::size_t f = 0; f < fields_.size(); ++f)
      if (!is_former(f, t.level))
        geometry_.copy_piece(piece, target(f, t.level, i),
                             t.level < plan_.levels ? geometry_.ring_strides()
                                                    : geometry_.array_strides(),
                             field_slab(f, t.level - 1, i), geometry_.ring_strides(), fields_[f].element);
    copy_former(t.level, i, 1, piece);
    return;
  }
  const std::ptrdiff_t first = t.slabs.first + signed_size(task * plan_.run);
  const std::ptrdiff_t last = std::min(first + signed_size(plan_.run), t.slabs.last);
  for (std::ptrdiff_t i = first; i < last;) {
    std::ptrdiff_t end = run_from(i, last);
    if (t.level == 0) {
      read_run(i, end);
    } else if (at_end(i)) {
      end = i + 1;
      for (std::size_t f = 0; f < fields_.size(); ++f)
        if (!is_former(f, t.level))
          std::memcpy(target(f, t.level, i), field_slab(f, t.level - 1, i), fields_[f].element);
      copy_former(t.level, i, 1, 0);
    } else {
      while (at_end(end - 1)) --end;
      compute(t.level, i, static_cast<std::size_t>(end - i), static_cast<std::size_t>(i - t.slabs.first),
              s);
    }
    i = end;
  }
}

// A block that cannot be read is then a failure of the call, and not of a touch, which ends the process.  Ghosts that
// have been saved lie in other memory.
void wavefront::bring_in(const array_core& from, const std::byte* first, std::size_t bytes) const {
  if (first < memory_ || first >= memory_ + memory_bytes_)
    throw_if(detail::bring_in(from.shared().segment(), first, bytes, access_mode::read));
}

void wavefront::read_piece(std::ptrdiff_t i, std::size_t piece) {
  slab_geometry::position lower{}, upper{};
  geometry_.piece(piece, lower, upper);
  const auto skipped = static_cast<std::size_t>(lower[1]), rows = static_cast<std::size_t>(upper[1] - lower[1]);
  const auto read = [&](const array_core& of, std::byte* to, const std::byte* from, std::size_t element) {
    const std::size_t row = geometry_.row_elements() * element;
    bring_in(of, from + skipped * row, rows * row);
    geometry_.copy_piece(piece, to, geometry_.ring_strides(), from, geometry_.array_strides(), element);
  };
  for (std::size_t f = 0; f < fields_.size(); ++f)
    read(*fields_[f].from, target(f, 0, i), source(f, i), fields_[f].element);
  for (std::size_t c = 0; c < coefficients_.size(); ++c) {
    const auto [from, element] = coefficients_[c];
    read(*from, slab_in(coefficient_rings_[c], element, 0, i),
         from->facts().base + index_of(i) * geometry_.slab_elements() * element, element);
  }
}

void wavefront::read_run(std::ptrdiff_t first, std::ptrdiff_t last) {
  const auto count = static_cast<std::size_t>(last - first);
  const auto read = [&](const array_core& of, std::byte* to, const std::byte* from, std::size_t element) {
    bring_in(of, from, count * element);
    std::memcpy(to, from, count * element);
  };
  for (std::size_t f = 0; f < fields_.size(); ++f)
    read(*fields_[f].from, target(f, 0, first), source(f, first), fields_[f].element);
  for (std::size_t c = 0; c < coefficients_.size(); ++c) {
    const auto [from, element] = coefficients_[c];
    read(*from, slab_in(coefficient_rings_[c], element, 0, first), from->facts().base + index_of(first) * element,
         element);
  }
}

/// Slab i of a level and its neighbours one level below.
void wavefront::describe(sweep_piece& p, std::size_t level, std::ptrdiff_t i, scratch& s) const {
  p.index = index_of(i);
  p.step = plan_.steps_before + level;
  p.reported = plan_.reported && level == plan_.levels;
  p.extents = geometry_.extents().data();
  p.lower = s.lower.data();
  p.upper = s.upper.data();
  p.out_strides = (level < plan_.levels ? geometry_.ring_strides() : geometry_.array_strides()).data();
  p.in_strides = geometry_.ring_strides().data();
  for (std::size_t f = 0; f < fields_.size(); ++f)
    s.out[f] = is_former(f, level) ? nullptr : target(f, level, i);
  p.out = s.out.data();
  const auto r = signed_size(geometry_.radius());
  const slab_range known = range(level - 1);
  std::size_t at = 0;
  const auto add = [&](bool alone, auto slab) {
    for (std::ptrdiff_t d = -r; d <= r; ++d, ++at)
      s.in[at] = i + d < known.first || i + d >= known.last || (alone && d != 0) ? nullptr : slab(i + d);
  };
  for (std::size_t f = 0; f < fields_.size(); ++f)
    add(is_former(f, 1), [&](std::ptrdiff_t n) { return field_slab(f, level - 1, n); });
  for (std::size_t c = 0; c < coefficients_.size(); ++c)
    add(false, [&](std::ptrdiff_t n) {
      return slab_in(coefficient_rings_[c], coefficients_[c].element, 0, n);
    });
  p.in = s.in.data();
}

/// `piece`: for N = 1 the number of the first slab among those that are due.
void wavefront::compute(std::size_t level, std::ptrdiff_t i, std::size_t count, std::size_t piece,
                        scratch& s) {
  sweep_piece p;
  describe(p, level, i, s);
  p.count = count;
  if (geometry_.rank() == 1) {
    p.slot = piece;
  } else {
    geometry_.inside(piece, s.lower, s.upper);
    p.slot = static_cast<std::size_t>(i - due(level).first) * geometry_.pieces() + piece;
    for (std::size_t f = 0; f < fields_.size(); ++f)
      if (!is_former(f, level))
        geometry_.copy_edges(piece, s.out[f],
                             level < plan_.levels ? geometry_.ring_strides() : geometry_.array_strides(),
                             field_slab(f, level - 1, i), geometry_.ring_strides(), fields_[f].element);
  }
  program_.compute(p);
  copy_former(level, i, count, piece);
}

/// Of the last level, a piece or (N = 1) `count` slabs: nobody computes it.
void wavefront::copy_former(std::size_t level, std::ptrdiff_t i, std::size_t count, std::size_t piece) {
  const std::size_t f = fields_.size() - 1;
  if (level < plan_.levels || !is_former(f, level)) return;
  if (geometry_.rank() == 1)
    std::memcpy(target(f, level, i), field_slab(0, level - 1, i), count * fields_[f].element);
  else
    geometry_.copy_piece(piece, target(f, level, i), geometry_.array_strides(), field_slab(0, level - 1, i),
                         geometry_.ring_strides(), fields_[f].element);
}

/// All tasks of a level have been done.
void wavefront::complete(const turn& t, scratch& s) {
  const bool last = t.level == plan_.levels;
  const bool edges = plan_.completes && t.level > 0;
  const bool line_of_elements = geometry_.rank() == 1;
  if (!edges && (last || !(line_of_elements || geometry_.padded()))) return;
  const bool each = edges || !line_of_elements;
  for (std::ptrdiff_t i = t.slabs.first; each && i < t.slabs.last; ++i) {
    if (edges) {
      sweep_piece p;
      describe(p, t.level, i, s);
      for (std::size_t k = 1; k < geometry_.rank(); ++k) {
        s.lower[k] = 0;
        s.upper[k] = signed_size(geometry_.extents()[k]);
      }
      program_.complete(p);
    }
    if (last || line_of_elements) continue;
    for (std::size_t f = 0; f < fields_.size(); ++f)
      if (!is_former(f, t.level)) geometry_.fill_pads(target(f, t.level, i), fields_[f].element);
    for (std::size_t c = 0; t.level == 0 && c < coefficients_.size(); ++c)
      geometry_.fill_pads(slab_in(coefficient_rings_[c], coefficients_[c].element, 0, i),
                          coefficients_[c].element);
  }
  if (last || !line_of_elements) return;
  // What was computed of the ends of the ring, once more beyond its other end.
  const auto repeat = [&](const ring& r, std::size_t element) {
    std::byte* const first =
        memory_ + r.offset + t.level * r.level_bytes + geometry_.radius() * element;
    const std::size_t whole = r.slabs * element;
    const std::size_t begin = modulo(t.slabs.first - reads().first, r.slabs);
    const auto count = static_cast<std::size_t>(t.slabs.last - t.slabs.first);
    const auto computed = [&](std::size_t slot) {
      return (slot + r.slabs - begin) % r.slabs < count;
    };
    for (std::size_t m = 0; m < geometry_.radius(); ++m) {
      std::byte* const low = first + m * element;
      std::byte* const high = first + (r.slabs - 1 - m) * element;
      if (computed(m)) std::memcpy(low + whole, low, element);
      if (computed(r.slabs - 1 - m)) std::memcpy(high - whole, high, element);
    }
  };
  for (std::size_t f = 0; f < fields_.size(); ++f)
    if (!is_former(f, t.level)) repeat(rings_[f], fields_[f].element);
  for (std::size_t c = 0; t.level == 0 && c < coefficients_.size(); ++c)
    repeat(coefficient_rings_[c], coefficients_[c].element);
}

}  // namespace ooc::detail
