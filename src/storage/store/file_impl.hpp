// What an open ooc::file is; file.cpp has its calls, collective/collective_file.cpp those of many
// ranks.
#pragma once

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/file.hpp"
#include "storage/base/log.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/refuse.hpp"
#include "storage/layout/partition_view.hpp"
#include "storage/service/file_growth.hpp"
#include "storage/service/store_core.hpp"

namespace ooc {

/// The largest offset in a file.
inline constexpr std::uint64_t max_file_size = std::numeric_limits<std::int64_t>::max();

/// `state_mutex` guards `now`; `position_mutex` guards position and view and is held during the
/// calls that use them.  Order: position_mutex, growth_mutex, state_mutex.
struct file::impl {
  std::shared_ptr<storage::store_core> core;
  file_access access;
  std::string path;

  mutable mutex state_mutex;
  // As last seen; replaced when the size changes, by what is at least as new (refreshed, growth_mutex).
  std::shared_ptr<const storage::opened_file> now OOC_GUARDED_BY(state_mutex);

  /// Held while the file is made longer or cut off, until that is in `now`; before state_mutex.
  mutex growth_mutex;
  bool grew OOC_GUARDED_BY(growth_mutex) = false;
  /// Held from the first time on that space was reserved past the end.
  std::shared_ptr<void> claim OOC_GUARDED_BY(growth_mutex);

  mutable mutex position_mutex;
  std::uint64_t position OOC_GUARDED_BY(position_mutex) = 0;
  std::optional<partition> view OOC_GUARDED_BY(position_mutex);

  impl(std::shared_ptr<storage::store_core> c, file_access a, storage::opened_file f)
      : core(std::move(c)),
        access(a),
        path(f.meta.path),
        now(std::make_shared<const storage::opened_file>(std::move(f))) {}
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  /// Gives back what is reserved past the end.
  ~impl() {
    const lock_guard growing(growth_mutex);
    if (!claim) return;
    claim.reset();
    try {
      (void)core->give_back(*current());
    } catch (const std::exception& e) {
      detail::log_error("space past the end of '" + path + "' is given back when it is opened for writing next: " +
                        e.what());
    }
  }

  std::shared_ptr<const storage::opened_file> current() const OOC_EXCLUDES(state_mutex) {
    const lock_guard lock(state_mutex);
    return now;
  }

  std::shared_ptr<const storage::opened_file> replace(storage::opened_file f) OOC_REQUIRES(growth_mutex)
      OOC_EXCLUDES(state_mutex) {
    auto next = std::make_shared<const storage::opened_file>(std::move(f));
    const lock_guard lock(state_mutex);
    now = next;
    return next;
  }

  /// The file as the metadata have it.  What was asked before another thread has changed `now` may be older than
  /// that, and is asked again.
  std::shared_ptr<const storage::opened_file> refreshed() OOC_EXCLUDES(state_mutex) {
    for (;;) {
      const auto seen = current();
      auto next = std::make_shared<const storage::opened_file>(core->refresh(*seen));
      const lock_guard lock(state_mutex);
      if (now == seen) return now = std::move(next);
    }
  }

  /// The file as it is, if it may now reach `end`; asks the metadata service only where what was
  /// seen last is too short.
  std::shared_ptr<const storage::opened_file> reaching(std::uint64_t end) {
    const auto f = current();
    return f->meta.size >= end ? f : refreshed();
  }

  std::shared_ptr<const storage::opened_file> grown_to(std::uint64_t end) {
    if (const auto f = current(); f->meta.size >= end) return f;
    const lock_guard growing(growth_mutex);
    const auto f = reaching(end);
    if (f->meta.size >= end) return f;
    require_bytes(*f);
    // Whoever makes the file longer a second time will do so again.
    if (std::exchange(grew, true) && !claim) claim = storage::claim_to_write(*core, f->meta.id, true);
    return replace(claim ? storage::grow_ahead(*core, *f, end) : core->grow(*f, end));
  }

  /// After a write as `f` was refused because another program has cut the file off.
  void learn_of_cut(const storage::opened_file& f) {
    const lock_guard growing(growth_mutex);
    // Another thread may have learned of it.
    if (current()->meta.cuts <= f.meta.cuts) replace(storage::after_cut(*core, f));
  }

  [[noreturn]] void refuse(const std::string& why) const {
    ooc::refuse(errc::invalid_request, path, why);
  }

  void require_bytes(const storage::opened_file& f) const {
    if (!f.meta.array.extents.empty())
      refuse("it holds an array, whose size follows from its extents; resize the array");
  }

  void require_writable() const {
    if (access != file_access::read_write)
      throw usage_error({EBADF, std::generic_category()},
                        "'" + path + "' was opened for reading only");
  }

  void require_buffer(const request& r, std::size_t bytes) const {
    if (bytes < r.memory_end())
      refuse("the request needs a buffer of " + std::to_string(r.memory_end()) + " bytes, not " +
             std::to_string(bytes));
  }

  void read(const request& r, std::span<std::byte> out) {
    require_buffer(r, out.size());
    throw_if(reaching(r.file_end())->file->read(r, out.data()));
  }

  void write(const request& r, std::span<const std::byte> in) {
    require_writable();
    require_buffer(r, in.size());
    for (;;) {
      const auto f = grown_to(r.file_end());
      const failure e = f->file->write(r, in.data());
      if (e.code != errc::cut_off) return throw_if(e);
      learn_of_cut(*f);
    }
  }

  /// Up to `length` bytes from `offset` on: as far as the file goes.
  request readable_at(std::uint64_t offset, std::uint64_t length) {
    if (length == 0 || offset > max_file_size) return {};
    const std::uint64_t wanted = std::min(length, max_file_size - offset);
    const std::uint64_t size = reaching(offset + wanted)->meta.size;
    if (size <= offset) return {};
    return request::contiguous(offset, std::min(wanted, size - offset));
  }

  /// The same from the position on, through the view if there is one.
  request readable(std::uint64_t length) OOC_REQUIRES(position_mutex) {
    if (!view) return readable_at(position, length);
    if (length == 0) return {};
    auto size = storage::view_size(*view, current()->meta.size);
    if (position > size || length > size - position)
      size = storage::view_size(*view, refreshed()->meta.size);
    if (position >= size) return {};
    return storage::view_request(*view, position, std::min(length, size - position),
                                 access_kind::read);
  }

  /// `length` bytes from the position on, for writing.
  request writable(std::uint64_t length) const OOC_REQUIRES(position_mutex) {
    return view ? storage::view_request(*view, position, length, access_kind::write)
                : request::contiguous(position, length);
  }

  // collective/collective_file.cpp
  struct joint_request;
  /// Each rank's request: what `mine` returned there.
  joint_request gather(process_group& group, const std::string& call,
                       const std::function<request()>& mine) const;
  void transfer_all(process_group& group, const std::string& call, access_kind kind,
                    const joint_request& all, std::byte* memory);
};

}  // namespace ooc
