// The transfers of a sweep whose slabs are cut: what one part of the rows reads and writes, past the blocks, as a part
// touches some rows of each slab, and blocks hold many.
//
// At each time of the front one *record* of everything is transferred: the slabs of level 0 that are due, and
// of the coefficients; the slabs of the last level; and the borders that the part has from the one before and
// leaves to the next one, of all levels that are due.  Records go through buffers, so that reads are begun
// `depth` times ahead and writes end as much later (buffered_stream.hpp).  A record of borders is one contiguous
// region of the *scratch* file, where the next part's takes the place of this one's.
//
// Elements that are swept in place and come back where a dimension is periodic are kept in the scratch file too,
// before they are overwritten: the first rows of all slabs for the whole pass, and of each part the first slabs.
//
// Owner: run_sweep().  Threads: as slab_place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "oocarray/detail/sweep_engine.hpp"
#include "runtime/algorithm/buffered_stream.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/array/direct_transfer.hpp"
#include "runtime/sweep/row_cut.hpp"
#include "runtime/sweep/slab_geometry.hpp"
#include "runtime/sweep/slab_place.hpp"
#include "runtime/sweep/wave_schedule.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::detail {

/// A field or a coefficient.
struct cut_input {
  const direct_array* from;
  const direct_array* to;  ///< of a field
  bool in_place;           ///< the part overwrites what it reads
};

class part_transfers final : public slab_place {
 public:
  /// Arrays may be null in what only asks how much memory it takes, and `scratch` where scratch_bytes() is 0.
  part_transfers(const sweep_request& r, const slab_geometry& g, const wave_plan& plan, const row_cut& cut,
                 std::vector<cut_input> inputs, const storage::striped_file* scratch);

  /// Of buffers; of the scratch file.  At most those of more levels, but where former values are kept and the levels
  /// are one or two.
  std::uint64_t memory_bytes() const noexcept override { return depth * (in_bytes_ + out_bytes_); }
  std::uint64_t scratch_bytes() const noexcept { return scratch_bytes_; }

  void use(std::byte* memory) noexcept override {
    in_.use(memory, in_bytes_);
    out_.use(memory + depth * in_bytes_, out_bytes_);
  }
  void save() override;
  void begin_part(std::size_t part) override;
  void begin_time(std::ptrdiff_t time) override;
  void end_time() override;
  void end_part() override { out_.wait(); }
  const std::byte* source(std::size_t input, std::ptrdiff_t i, slab_range rows) const override;
  std::byte* result(std::size_t field, std::ptrdiff_t i) const noexcept override;
  bool has_border_before() const noexcept override { return border_bytes_ != 0 && part_ > 0; }
  bool has_border_after() const noexcept override { return border_bytes_ != 0 && part_ + 1 < cut_.parts(); }
  const std::byte* border_before(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept override {
    return record(in_) + slabs_bytes(in_bytes_) + border(f, level, i);
  }
  std::byte* border_after(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept override {
    return record(out_) + slabs_bytes(out_bytes_) + border(f, level, i);
  }
  traffic moved() const noexcept override { return moved_; }

 private:
  static constexpr std::size_t depth = 4;

  std::byte* record(const buffered_stream& s) const noexcept { return s.buffer(static_cast<std::uint64_t>(time_)); }
  /// Of a record: borders come after them.
  std::size_t slabs_bytes(std::size_t record) const noexcept { return record - border_bytes_; }
  std::size_t row_bytes(std::size_t input) const noexcept {
    return geometry_.row_elements() * request_.element_size(input);
  }
  std::size_t ring_row_bytes(std::size_t field) const noexcept {
    return geometry_.ring_row_elements() * request_.element_size(field);
  }
  /// Rows of level 0 that the part reads.
  slab_range rows_read(std::size_t input) const noexcept {
    return input < fields_ ? cut_.rows(part_, 0) : cut_.coefficient_rows(part_);
  }
  std::size_t border(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept;
  std::ptrdiff_t in_record(std::size_t input, std::size_t level, slab_range rows, std::ptrdiff_t i) const noexcept;

  void begin_reads(std::ptrdiff_t time, direct_transfer& t, std::byte* record);
  void read_slabs(direct_transfer& t, std::size_t input, slab_range slabs, slab_range rows, std::byte* to);
  void read_box(direct_transfer& t, std::size_t input, slab_range slabs, slab_range rows, std::byte* to);
  void write_scratch(direct_transfer& t, std::uint64_t at, std::size_t bytes, const std::byte* from);
  void read_scratch(direct_transfer& t, std::uint64_t at, std::size_t bytes, std::byte* to);
  template <class Read, class Write>
  void move_through(std::size_t items, Read read, Write write);
  void save_slabs();

  const slab_geometry& geometry_;
  const wave_plan plan_;
  const wave_schedule schedule_;
  const row_cut cut_;
  const sweep_request& request_;
  const std::size_t fields_;
  const std::vector<cut_input> inputs_;
  const storage::striped_file* const scratch_;
  std::vector<std::size_t> at_;         ///< where an input is in a record that is read, a field in one that is written
  std::vector<std::size_t> border_at_;  ///< where a field's border is in those of a record, of each level
  std::size_t in_bytes_ = 0, out_bytes_ = 0;  ///< of a record
  std::uint64_t border_bytes_ = 0;            ///< of these; 0: parts need nothing of each other
  std::uint64_t scratch_bytes_ = 0;
  std::vector<std::uint64_t> saved_rows_, saved_slabs_;  ///< of each field, in the scratch file

  std::size_t part_ = 0;
  std::ptrdiff_t time_ = -1;
  traffic moved_;
  buffered_stream in_{depth, depth}, out_{depth, depth};  ///< end before the rest
};

}  // namespace ooc::detail
