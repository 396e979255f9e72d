#include "runtime/sweep/part_transfers.hpp"

#include <algorithm>
#include <utility>

#include "storage/base/page.hpp"

namespace ooc::detail {

part_transfers::part_transfers(const sweep_request& r, const slab_geometry& g, const wave_plan& plan,
                               const row_cut& cut, std::vector<cut_input> inputs, const storage::striped_file* scratch)
    : geometry_(g),
      plan_(plan),
      schedule_(g, plan),
      cut_(cut),
      request_(r),
      fields_(r.fields.size()),
      inputs_(std::move(inputs)),
      scratch_(scratch) {
  std::size_t borders = 0;
  for (std::size_t x = 0; x < r.inputs(); ++x) {
    at_.push_back(in_bytes_);
    const std::size_t rows = x < fields_ ? cut_.width() : cut_.coefficient_rows_kept();
    in_bytes_ += in_whole_pages(plan_.group * rows * row_bytes(x));
    if (x >= fields_) continue;
    out_bytes_ = in_bytes_;
    const bool former = plan_.keeps_former && x + 1 == fields_;
    for (std::size_t level = 0; level < plan_.levels; ++level) {
      border_at_.push_back(borders);
      if (!former || level == 0) borders += plan_.group * cut_.most_border(level) * ring_row_bytes(x);
    }
  }
  border_bytes_ = cut_.radius() == 0 || cut_.parts() == 1 ? 0 : in_whole_pages(borders);
  in_bytes_ += border_bytes_;
  out_bytes_ += border_bytes_;

  scratch_bytes_ = border_bytes_ * static_cast<std::uint64_t>(schedule_.times());
  const auto save = [&](std::vector<std::uint64_t>& at, std::uint64_t bytes) {
    at.push_back(scratch_bytes_);
    scratch_bytes_ += in_whole_pages(bytes);
  };
  for (std::size_t f = 0; f < fields_; ++f) {
    const bool in_place = inputs_[f].in_place;
    save(saved_rows_, in_place ? g.slabs() * cut_.rows_read_again() * row_bytes(f) : 0);
    save(saved_slabs_, in_place && plan_.ghosts_high ? plan_.levels * g.radius() * cut_.width() * row_bytes(f) : 0);
  }
}

// --- where records are

/// Of the element (0, 0, ...) of slab i, where the slabs of a level that are due have these rows each.
std::ptrdiff_t part_transfers::in_record(std::size_t x, std::size_t level, slab_range rows,
                                         std::ptrdiff_t i) const noexcept {
  const std::ptrdiff_t before = (i - schedule_.due(level, time_).first) * signed_size(rows.size()) - rows.first;
  return signed_size(at_[x]) + before * signed_size(row_bytes(x));
}

const std::byte* part_transfers::source(std::size_t x, std::ptrdiff_t i, slab_range /*rows*/) const {
  return record(in_) + in_record(x, 0, rows_read(x), i);
}

std::byte* part_transfers::result(std::size_t f, std::ptrdiff_t i) const noexcept {
  return record(out_) + in_record(f, plan_.levels, cut_.rows(part_, plan_.levels), i);
}

std::size_t part_transfers::border(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept {
  const auto slab = static_cast<std::size_t>(i - schedule_.first_due(level, time_));
  return border_at_[f * plan_.levels + level] + slab * cut_.border(level) * ring_row_bytes(f);
}

// --- requests

void part_transfers::read_scratch(direct_transfer& t, std::uint64_t at, std::size_t bytes, std::byte* to) {
  t.begin_read(*scratch_, request::contiguous(at, bytes), to);
  moved_.read += bytes;
}

void part_transfers::write_scratch(direct_transfer& t, std::uint64_t at, std::size_t bytes, const std::byte* from) {
  t.begin_write(*scratch_, request::contiguous(at, bytes), from);
  moved_.written += bytes;
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
void part_transfers::read_box(direct_transfer& t, std::size_t x, slab_range slabs, slab_range rows, std::byte* to) {
  t.begin_read(inputs_[x].from->file(), box_of(geometry_, *inputs_[x].from, slabs, rows), to);
  moved_.read += slabs.size() * rows.size() * row_bytes(x);
}

/// Level 0, from wherever it is.
void part_transfers::read_slabs(direct_transfer& t, std::size_t x, slab_range slabs, slab_range rows, std::byte* to) {
  const bool in_place = inputs_[x].in_place;
  const std::size_t row = row_bytes(x);
  const std::size_t slab = rows.size() * row;
  const std::ptrdiff_t n = signed_size(geometry_.slabs()), m = signed_size(cut_.array_rows());
  for (std::ptrdiff_t i = slabs.first; i < slabs.last;) {
    if (in_place && i >= n) {  // ghosts, of which this part has saved its rows
      const auto ghost = static_cast<std::size_t>(i - n);
      const auto count = static_cast<std::size_t>(slabs.last - i);
      return read_scratch(t, saved_slabs_[x] + ghost * slab, count * slab, to);
    }
    const auto index = signed_size(schedule_.index_of(i));
    const bool together = rows.first >= 0 && rows.last <= m;
    const std::ptrdiff_t most = in_place ? std::min(slabs.last, n) : slabs.last;
    const std::ptrdiff_t count = together ? std::min(most - i, n - index) : 1;
    for (std::ptrdiff_t j = rows.first; j < rows.last;) {
      const auto r = signed_size(modulo(j, cut_.array_rows()));
      const std::ptrdiff_t run = std::min(rows.last - j, m - r);
      if (in_place && j >= m)
        read_scratch(t,
                     saved_rows_[x] +
                         (static_cast<std::size_t>(index) * cut_.rows_read_again() + static_cast<std::size_t>(r)) * row,
                     static_cast<std::size_t>(run) * row, to);
      else
        read_box(t, x, {index, index + count}, {r, r + run}, to);
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
  in_.restart();
  for (std::size_t x = 0; x < items; ++x) {
    const std::byte* const record = in_.read(x, items, read);
    write(x, in_.write(x), record);
  }
  in_.wait();
}

/// The first rows of all slabs, for who comes to them after the last row.
void part_transfers::save() {
  const std::size_t rows = cut_.rows_read_again();
  if (rows == 0) return;
  const std::size_t at_once = std::min(rows, cut_.width());
  const std::size_t pieces = (rows + at_once - 1) / at_once;
  for (std::size_t f = 0; f < fields_; ++f) {
    if (!inputs_[f].in_place) continue;
    const auto place = [&](std::size_t x) {
      const auto first = signed_size(x % pieces * at_once);
      return slab_range{first, std::min(first + signed_size(at_once), signed_size(rows))};
    };
    const std::size_t row = row_bytes(f);
    move_through(
        geometry_.slabs() * pieces,
        [&](std::size_t x, direct_transfer& t, std::byte* memory) {
          const auto i = signed_size(x / pieces);
          read_box(t, f, {i, i + 1}, place(x), memory);
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
  for (std::size_t f = 0; f < fields_; ++f) {
    if (!inputs_[f].in_place) continue;
    const std::size_t slab = rows.size() * row_bytes(f);
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
  if (plan_.ghosts_high) save_slabs();
  in_.restart();
}

void part_transfers::begin_reads(std::ptrdiff_t time, direct_transfer& t, std::byte* record) {
  const slab_range slabs = schedule_.due(0, time);
  for (std::size_t x = 0; x < inputs_.size(); ++x)
    if (const slab_range rows = rows_read(x); !slabs.empty() && !rows.empty())
      read_slabs(t, x, slabs, rows, record + at_[x]);
  if (has_border_before())
    read_scratch(t, static_cast<std::uint64_t>(time) * border_bytes_, border_bytes_, record + slabs_bytes(in_bytes_));
}

void part_transfers::begin_time(std::ptrdiff_t time) {
  time_ = time;
  const auto now = static_cast<std::uint64_t>(time);
  in_.read(now, static_cast<std::uint64_t>(schedule_.times()), [&](std::uint64_t n, direct_transfer& t, std::byte* to) {
    begin_reads(static_cast<std::ptrdiff_t>(n), t, to);
  });
  out_.fill(now);
}

void part_transfers::end_time() {
  direct_transfer& t = out_.write(static_cast<std::uint64_t>(time_));
  const slab_range slabs = schedule_.due(plan_.levels, time_);
  const slab_range rows = cut_.rows(part_, plan_.levels);
  if (!slabs.empty() && !rows.empty())
    for (std::size_t f = 0; f < fields_; ++f) {
      const direct_array& to = *inputs_[f].to;
      t.begin_write(to.file(), box_of(geometry_, to, slabs, rows), record(out_) + at_[f]);
      moved_.written += slabs.size() * rows.size() * row_bytes(f);
    }
  if (has_border_after())
    write_scratch(t, static_cast<std::uint64_t>(time_) * border_bytes_, border_bytes_,
                  record(out_) + slabs_bytes(out_bytes_));
}

}  // namespace ooc::detail
