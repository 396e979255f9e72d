#include "runtime/algorithm/part_transfers.hpp"

#include <algorithm>

#include "storage/base/page.hpp"

namespace ooc::detail {
part_transfers::part_transfers(const slab_geometry& g, const wave_plan& plan, const row_cut& cut,
                               const std::vector<cut_field>& fields,
                               const std::vector<cut_coefficient>& coefficients)
    : geometry_(g),
      plan_(plan),
      schedule_(g, plan),
      cut_(cut),
      fields_(fields),
      coefficients_(coefficients) {
  const auto add = [](buffers& b, std::uint64_t bytes) {
    b.at.push_back(b.bytes);
    b.bytes += bytes;
  };
  for (const cut_field& f : fields_) {
    const std::uint64_t slabs = in_whole_pages(plan_.group * cut_.width() * row_bytes(f.element));
    add(inputs_, slabs);
    add(results_, slabs);
    const bool former = plan_.keeps_former && &f == &fields_.back();
    for (std::size_t level = 0; level < plan_.levels; ++level)
      add(before_, former && level > 0
                       ? 0
                       : plan_.group * cut_.most_border(level) * g.ring_row_elements() * f.element);
  }
  for (const cut_coefficient& c : coefficients_)
    add(inputs_, in_whole_pages(plan_.group * cut_.coefficient_rows_kept() * row_bytes(c.element)));
  if (cut_.radius() == 0 || cut_.parts() == 1) before_.bytes = 0;
  before_.bytes = border_bytes_ = in_whole_pages(before_.bytes);
  after_ = before_;
  for (buffers* b : {&inputs_, &results_, &before_, &after_}) place(*b);

  scratch_bytes_ = border_bytes_ * static_cast<std::uint64_t>(schedule_.times());
  const auto save = [&](std::vector<std::uint64_t>& at, std::uint64_t bytes) {
    at.push_back(scratch_bytes_);
    scratch_bytes_ += in_whole_pages(bytes);
  };
  for (const cut_field& f : fields_) {
    save(saved_rows_, f.in_place ? g.slabs() * cut_.rows_read_again() * row_bytes(f.element) : 0);
    save(saved_slabs_, f.in_place && plan_.ghosts_high
                           ? plan_.levels * g.radius() * cut_.width() * row_bytes(f.element)
                           : 0);
  }
}

void part_transfers::place(buffers& b) {
  b.offset = memory_bytes_;
  memory_bytes_ += depth * b.bytes;
}

// --- where records are

const std::byte* part_transfers::field(std::size_t f, std::ptrdiff_t i) const noexcept {
  const slab_range rows = cut_.rows(part_, 0);
  const std::ptrdiff_t first = (i - schedule_.due(0, time_).first) * signed_size(rows.size()) - rows.first;
  return record(inputs_, time_) + inputs_.at[f] + first * signed_size(row_bytes(fields_[f].element));
}

const std::byte* part_transfers::coefficient(std::size_t c, std::ptrdiff_t i) const noexcept {
  const slab_range rows = cut_.coefficient_rows(part_);
  const std::ptrdiff_t first = (i - schedule_.due(0, time_).first) * signed_size(rows.size()) - rows.first;
  return record(inputs_, time_) + inputs_.at[fields_.size() + c] +
         first * signed_size(row_bytes(coefficients_[c].element));
}

std::byte* part_transfers::result(std::size_t f, std::ptrdiff_t i) const noexcept {
  const slab_range rows = cut_.rows(part_, plan_.levels);
  const std::ptrdiff_t first =
      (i - schedule_.due(plan_.levels, time_).first) * signed_size(rows.size()) - rows.first;
  return record(results_, time_) + results_.at[f] + first * signed_size(row_bytes(fields_[f].element));
}

const std::byte* part_transfers::border(const buffers& b, std::size_t f, std::size_t level,
                                        std::ptrdiff_t i) const noexcept {
  const auto slab = static_cast<std::size_t>(i - schedule_.first_due(level, time_));
  return record(b, time_) + b.at[f * plan_.levels + level] +
         slab * cut_.border(level) * geometry_.ring_row_elements() * fields_[f].element;
}

const std::byte* part_transfers::border_before(std::size_t f, std::size_t level,
                                               std::ptrdiff_t i) const noexcept {
  return border(before_, f, level, i);
}

std::byte* part_transfers::border_after(std::size_t f, std::size_t level,
                                        std::ptrdiff_t i) const noexcept {
  return const_cast<std::byte*>(border(after_, f, level, i));
}

// --- requests

void part_transfers::read_scratch(direct_transfer& t, std::uint64_t at, std::size_t bytes,
                                  std::byte* to) {
  t.begin_read(*scratch_, request::contiguous(at, bytes), to);
  read_ += bytes;
}

void part_transfers::write_scratch(direct_transfer& t, std::uint64_t at, std::size_t bytes,
                                   const std::byte* from) {
  t.begin_write(*scratch_, request::contiguous(at, bytes), from);
  written_ += bytes;
}

namespace {

/// Rows of slabs of an array, whole beyond dimension 1.
request box_of(const slab_geometry& g, const direct_array& a, slab_range slabs, slab_range rows) {
  slab_geometry::shape lower{};
  slab_geometry::shape upper = g.extents();
  lower[0] = static_cast<std::size_t>(slabs.first);
  upper[0] = static_cast<std::size_t>(slabs.last);
  lower[1] = static_cast<std::size_t>(rows.first);
  upper[1] = static_cast<std::size_t>(rows.last);
  return a.box({{lower.data(), g.rank()}, {upper.data(), g.rank()}});
}

}  // namespace

/// Both within the array.
void part_transfers::read_box(direct_transfer& t, const direct_array& a, std::size_t element,
                              slab_range slabs, slab_range rows, std::byte* to) {
  t.begin_read(a.file(), box_of(geometry_, a, slabs, rows), to);
  read_ += slabs.size() * rows.size() * row_bytes(element);
}

/// Level 0 of a field, from wherever it is; f counts fields and then coefficients.
void part_transfers::read_slabs(direct_transfer& t, std::size_t f, slab_range slabs, slab_range rows,
                                std::byte* to) {
  const bool is_field = f < fields_.size();
  const bool in_place = is_field && fields_[f].in_place;
  const direct_array& a = is_field ? *fields_[f].from : *coefficients_[f - fields_.size()].from;
  const std::size_t element = is_field ? fields_[f].element : coefficients_[f - fields_.size()].element;
  const std::size_t row = row_bytes(element);
  const std::size_t slab = rows.size() * row;
  const std::ptrdiff_t n = signed_size(geometry_.slabs()), m = signed_size(cut_.array_rows());
  for (std::ptrdiff_t i = slabs.first; i < slabs.last;) {
    if (in_place && i >= n) {  // ghosts, of which this part has saved its rows
      const auto ghost = static_cast<std::size_t>(i - n);
      const auto count = static_cast<std::size_t>(slabs.last - i);
      return read_scratch(t, saved_slabs_[f] + ghost * slab, count * slab, to);
    }
    const auto index = signed_size(schedule_.index_of(i));
    const bool together = rows.first >= 0 && rows.last <= m;
    const std::ptrdiff_t most = in_place ? std::min(slabs.last, n) : slabs.last;
    const std::ptrdiff_t count = together ? std::min(most - i, n - index) : 1;
    for (std::ptrdiff_t j = rows.first; j < rows.last;) {
      const auto r = signed_size(modulo(j, cut_.array_rows()));
      const std::ptrdiff_t run = std::min(rows.last - j, m - r);
      if (in_place && j >= m)
        read_scratch(t, saved_rows_[f] + (static_cast<std::size_t>(index) * cut_.rows_read_again() +
                                          static_cast<std::size_t>(r)) * row,
                     static_cast<std::size_t>(run) * row, to);
      else
        read_box(t, a, element, {index, index + count}, {r, r + run}, to);
      to += static_cast<std::size_t>(run * count) * row;
      j += run;
    }
    i += count;
  }
}

// --- the pass

/// Reads all items and writes each once it has been read, several on their way.
template <class Read, class Write>
void part_transfers::move_through(std::size_t items, Read read, Write write) {
  for (std::size_t x = 0; x < items + depth - 1; ++x) {
    if (x < items) {
      writing_[x % depth].wait();
      read(x, reading_[x % depth], record(inputs_, signed_size(x)));
    }
    if (x + 1 < depth) continue;
    const std::size_t y = x + 1 - depth;
    reading_[y % depth].wait();
    write(y, writing_[y % depth], record(inputs_, signed_size(y)));
  }
  for (direct_transfer& t : writing_) t.wait();
}

void part_transfers::begin_pass() {
  if (cut_.rows_read_again() != 0) save_rows();
}

/// The first rows of all slabs, for who comes to them after the last row.
void part_transfers::save_rows() {
  const std::size_t rows = cut_.rows_read_again();
  const std::size_t at_once = std::min(rows, cut_.width());
  const std::size_t pieces = (rows + at_once - 1) / at_once;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (!fields_[f].in_place) continue;
    const auto place = [&](std::size_t x) {
      const auto first = signed_size(x % pieces * at_once);
      return slab_range{first, std::min(first + signed_size(at_once), signed_size(rows))};
    };
    const std::size_t row = row_bytes(fields_[f].element);
    move_through(
        geometry_.slabs() * pieces,
        [&](std::size_t x, direct_transfer& t, std::byte* memory) {
          const auto i = signed_size(x / pieces);
          read_box(t, *fields_[f].from, fields_[f].element, {i, i + 1}, place(x), memory);
        },
        [&](std::size_t x, direct_transfer& t, const std::byte* memory) {
          const slab_range r = place(x);
          write_scratch(t, saved_rows_[f] + (x / pieces * rows + static_cast<std::size_t>(r.first)) * row,
                        r.size() * row, memory);
        });
  }
}

/// The rows of this part of the first slabs, for who comes to them after the last slab.
void part_transfers::save_slabs() {
  const slab_range rows = cut_.rows(part_, 0);
  if (rows.empty()) return;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (!fields_[f].in_place) continue;
    const std::size_t slab = rows.size() * row_bytes(fields_[f].element);
    move_through(
        plan_.levels * geometry_.radius(),
        [&](std::size_t x, direct_transfer& t, std::byte* memory) {
          const auto i = signed_size(x % geometry_.slabs());
          read_slabs(t, f, {i, i + 1}, rows, memory);
        },
        [&](std::size_t x, direct_transfer& t, const std::byte* memory) {
          write_scratch(t, saved_slabs_[f] + x * slab, slab, memory);
        });
  }
}

void part_transfers::begin_part(std::size_t part) {
  part_ = part;
  time_ = -1;
  begun_ = 0;
  if (plan_.ghosts_high) save_slabs();
}

void part_transfers::begin_reads(std::ptrdiff_t time) {
  direct_transfer& t = reading_[static_cast<std::size_t>(time) % depth];
  const slab_range slabs = schedule_.due(0, time);
  const slab_range rows = cut_.rows(part_, 0), more = cut_.coefficient_rows(part_);
  std::byte* const memory = record(inputs_, time);
  for (std::size_t f = 0; f < fields_.size() + coefficients_.size(); ++f)
    if (const slab_range& r = f < fields_.size() ? rows : more; !slabs.empty() && !r.empty())
      read_slabs(t, f, slabs, r, memory + inputs_.at[f]);
  if (has_border_before())
    read_scratch(t, static_cast<std::uint64_t>(time) * border_bytes_, border_bytes_,
                 record(before_, time));
}

void part_transfers::begin_time(std::ptrdiff_t time) {
  time_ = time;
  for (; begun_ < std::min(time + signed_size(depth), schedule_.times()); ++begun_) begin_reads(begun_);
  reading_[static_cast<std::size_t>(time) % depth].wait();
  writing_[static_cast<std::size_t>(time) % depth].wait();  // whose buffers these were
}

void part_transfers::end_time() {
  direct_transfer& t = writing_[static_cast<std::size_t>(time_) % depth];
  const slab_range slabs = schedule_.due(plan_.levels, time_);
  const slab_range rows = cut_.rows(part_, plan_.levels);
  if (!slabs.empty() && !rows.empty())
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      t.begin_write(fields_[f].to->file(), box_of(geometry_, *fields_[f].to, slabs, rows),
                    record(results_, time_) + results_.at[f]);
      written_ += slabs.size() * rows.size() * row_bytes(fields_[f].element);
    }
  if (has_border_after())
    write_scratch(t, static_cast<std::uint64_t>(time_) * border_bytes_, border_bytes_,
                  record(after_, time_));
}

void part_transfers::end_part() {
  for (direct_transfer& t : writing_) t.wait();
}

}  // namespace ooc::detail
