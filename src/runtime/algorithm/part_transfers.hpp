// The transfers of a sweep whose slabs are cut (cut_wavefront.hpp): what one part reads and writes.
//
// At each time of the front one *record* of everything is transferred: the slabs of level 0 that are due, and
// of the coefficients; the slabs of the last level; and the borders that the part has from the one before and
// leaves to the next one, of all levels that are due.  Records go through buffers, so that reads are begun
// `depth` times ahead and writes end as much later.  A record of borders is one contiguous region of the
// *scratch* file, where the next part's takes the place of this one's.
//
// What is swept in place and comes back where a dimension is periodic is kept in the scratch file too, before
// it is overwritten: the first rows of all slabs for the whole pass, and of each part the first slabs.
//
// Owner: cut_wavefront.  Threads: one at a time, between two rounds of tasks; pointers by any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/algorithm/row_cut.hpp"
#include "runtime/algorithm/slab_geometry.hpp"
#include "runtime/algorithm/wave_schedule.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/array/direct_transfer.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::detail {

struct cut_field {
  const direct_array* from;
  const direct_array* to;
  bool in_place;
  std::size_t element;  ///< bytes
};

struct cut_coefficient {
  const direct_array* from;
  std::size_t element;
};

class part_transfers {
 public:
  part_transfers(const slab_geometry& g, const wave_plan& plan, const row_cut& cut,
                 const std::vector<cut_field>& fields, const std::vector<cut_coefficient>& coefficients);

  /// Of buffers, aligned to 64; of the scratch file.  At most those of more levels, but where former values are kept
  /// and the levels are one or two.
  std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }
  std::uint64_t scratch_bytes() const noexcept { return scratch_bytes_; }
  /// `scratch`: may be null where scratch_bytes() is 0.
  void use(std::byte* memory, const storage::striped_file* scratch) noexcept {
    memory_ = memory;
    scratch_ = scratch;
  }

  /// Before the first part.
  void begin_pass();
  void begin_part(std::size_t part);
  /// Records of that time may be used; times follow each other.
  void begin_time(std::ptrdiff_t time);
  /// They have been.
  void end_time();
  /// Everything that the part writes is in the files.
  void end_part();

  // Where records are; of the element (0, 0, ...) of slab i, which may lie outside the record.
  const std::byte* field(std::size_t f, std::ptrdiff_t i) const noexcept;
  const std::byte* coefficient(std::size_t c, std::ptrdiff_t i) const noexcept;
  std::byte* result(std::size_t f, std::ptrdiff_t i) const noexcept;
  /// The first row of a border.
  const std::byte* border_before(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept;
  std::byte* border_after(std::size_t f, std::size_t level, std::ptrdiff_t i) const noexcept;
  bool has_border_before() const noexcept { return border_bytes_ != 0 && part_ > 0; }
  bool has_border_after() const noexcept { return border_bytes_ != 0 && part_ + 1 < cut_.parts(); }

  std::uint64_t bytes_read() const noexcept { return read_; }
  std::uint64_t bytes_written() const noexcept { return written_; }

 private:
  static constexpr std::size_t depth = 4;
  using transfers = std::array<direct_transfer, depth>;

  /// A record of `count` buffers: where it is in memory, where each of its parts is in it.
  struct buffers {
    std::size_t offset = 0;
    std::size_t bytes = 0;  ///< of one record
    std::vector<std::size_t> at;
  };
  std::byte* record(const buffers& b, std::ptrdiff_t time) const noexcept {
    return memory_ + b.offset + static_cast<std::size_t>(time) % depth * b.bytes;
  }
  void place(buffers& b);
  std::size_t row_bytes(std::size_t element) const noexcept {
    return geometry_.row_elements() * element;
  }
  const std::byte* border(const buffers& b, std::size_t f, std::size_t level,
                          std::ptrdiff_t i) const noexcept;

  void begin_reads(std::ptrdiff_t time);
  void read_slabs(direct_transfer& t, std::size_t f, slab_range slabs, slab_range rows, std::byte* to);
  void read_box(direct_transfer& t, const direct_array& a, std::size_t element, slab_range slabs,
                slab_range rows, std::byte* to);
  void write_scratch(direct_transfer& t, std::uint64_t at, std::size_t bytes, const std::byte* from);
  void read_scratch(direct_transfer& t, std::uint64_t at, std::size_t bytes, std::byte* to);
  template <class Read, class Write>
  void move_through(std::size_t items, Read read, Write write);
  void save_rows();
  void save_slabs();

  const slab_geometry& geometry_;
  const wave_plan plan_;
  const wave_schedule schedule_;
  const row_cut cut_;
  const std::vector<cut_field> fields_;
  const std::vector<cut_coefficient> coefficients_;
  std::byte* memory_ = nullptr;
  const storage::striped_file* scratch_ = nullptr;
  std::uint64_t memory_bytes_ = 0, scratch_bytes_ = 0;
  std::uint64_t border_bytes_ = 0;  ///< of a record; 0: parts need nothing of each other
  buffers inputs_, results_, before_, after_;
  std::vector<std::uint64_t> saved_rows_, saved_slabs_;  ///< of each field, in the scratch file

  std::size_t part_ = 0;
  std::ptrdiff_t time_ = -1;
  std::ptrdiff_t begun_ = 0;  ///< times whose reads have begun
  std::uint64_t read_ = 0, written_ = 0;
  transfers reading_, writing_;  ///< end before the rest
};

}  // namespace ooc::detail
