// Where the slabs are that a pass of a sweep reads and writes: level 0, coefficients, and the last level.
//
// They are in the mapping of the arrays (mapped_slabs.hpp) or in buffers of a part's transfers (part_transfers.hpp).
// The front (wavefront.hpp) goes over all times of a part, and over one part after the other:
//
//     save();
//     for each part {
//       begin_part(part);
//       for each time { begin_time(time); ... tasks use pointers ... end_time(); }
//       end_part();
//     }
//
// Pointers are those of the element (0, 0, ...) of slab i, which may lie outside what is there, and have the strides of
// the array.  They hold until end_time().
//
// Owner: run_sweep().  Threads: one at a time, between two rounds of tasks; pointers by any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/sweep/wave_schedule.hpp"

namespace ooc::detail {

class slab_place {
 public:
  struct traffic {
    std::uint64_t read = 0, written = 0;
  };

  virtual ~slab_place() = default;

  /// The bytes that it needs at `memory`, aligned to 64.
  virtual std::uint64_t memory_bytes() const noexcept = 0;
  virtual void use(std::byte* memory) noexcept = 0;
  /// Copies what is needed after it has been overwritten; before any rank writes.
  virtual void save() = 0;
  virtual void begin_part(std::size_t /*part*/) {}
  /// Times follow each other, from 0.
  virtual void begin_time(std::ptrdiff_t time) = 0;
  virtual void end_time() {}
  /// Everything that the part writes is where it belongs.
  virtual void end_part() {}

  /// Rows of level 0 of a field, or of a coefficient, which may be read; throws where they cannot.
  virtual const std::byte* source(std::size_t input, std::ptrdiff_t i, slab_range rows) const = 0;
  virtual std::byte* result(std::size_t field, std::ptrdiff_t i) const noexcept = 0;

  /// The borders that a level has from the part before, and leaves to the next one: the first row, with strides of a
  /// ring.
  virtual bool has_border_before() const noexcept { return false; }
  virtual bool has_border_after() const noexcept { return false; }
  virtual const std::byte* border_before(std::size_t /*field*/, std::size_t /*level*/,
                                         std::ptrdiff_t /*i*/) const noexcept {
    return nullptr;
  }
  virtual std::byte* border_after(std::size_t /*field*/, std::size_t /*level*/, std::ptrdiff_t /*i*/) const noexcept {
    return nullptr;
  }

  /// By the pass, as the model counts them.
  virtual traffic moved() const noexcept = 0;
};

}  // namespace ooc::detail
