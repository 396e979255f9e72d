// Regions that stay in memory while the kernel, MPI or a device uses them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/detail/array_core.hpp"
#include "oocarray/error.hpp"

namespace ooc {

/// Keeps a box of an array resident and mapped, and hands out its memory as spans that may be given
/// to write(2), read(2), MPI_Send and the like (which fail on array memory that is not pinned).
/// Returned by ooc_array::pin(); movable.  It must end before the array does; resize(),
/// invalidate(), sync(), sync_halo() and close() throw while it lives.
///
/// A guard for writing marks all blocks of the box as modified, whole, whether they are written to
/// or not.
template <class T>
class pin_guard {
 public:
  pin_guard(const detail::array_core& core, detail::pinned_region region) : core_(&core), region_(std::move(region)) {
    rows_.reserve(region_.rows.size());
    for (const detail::byte_span& r : region_.rows)
      rows_.emplace_back(reinterpret_cast<T*>(r.data), r.bytes / sizeof(T));
  }
  ~pin_guard() { release(); }
  pin_guard(pin_guard&& o) noexcept
      : core_(std::exchange(o.core_, nullptr)), region_(std::move(o.region_)), rows_(std::move(o.rows_)) {
    o.rows_.clear();
  }
  pin_guard& operator=(pin_guard&& o) noexcept {
    if (this != &o) {
      release();
      core_ = std::exchange(o.core_, nullptr);
      region_ = std::move(o.region_);
      rows_ = std::move(o.rows_);
      o.rows_.clear();
    }
    return *this;
  }

  /// The elements of the box in row-major order, as contiguous runs that are as long as possible.
  /// Valid as long as the guard lives.
  std::span<const std::span<T>> rows() const noexcept { return rows_; }
  /// True if the box is one run.
  bool contiguous() const noexcept { return rows_.size() <= 1; }
  /// The whole box; throws usage_error (errc::invalid_request) if it is not one run.  The span is const, so that an
  /// assignment to it, which would copy nothing, does not compile.
  const std::span<T> span() const {
    if (!contiguous())
      throw usage_error(errc::invalid_request,
                        "the pinned box consists of " + std::to_string(rows_.size()) + " runs of memory; use rows()");
    return rows_.empty() ? std::span<T>{} : rows_.front();
  }

  /// Ends the pin early.
  void release() noexcept {
    if (core_) std::exchange(core_, nullptr)->unpin(region_);
    rows_.clear();
  }

 private:
  const detail::array_core* core_;
  detail::pinned_region region_;
  std::vector<std::span<T>> rows_;
};

}  // namespace ooc
