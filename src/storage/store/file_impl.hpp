// The state of an open ooc::file; file.cpp has its calls, collective/collective_file.cpp those of many ranks.
#pragma once

#include <algorithm>
#include <cerrno>
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
#include "storage/service/growing_file.hpp"

namespace ooc::storage {
struct joint_request;
}

namespace ooc {

/// The largest offset in a file.
inline constexpr std::uint64_t max_file_size = std::numeric_limits<std::int64_t>::max();

/// `position_mutex` guards position and view, and is held during the calls that use them; before the mutexes of
/// `bytes`.
struct file::impl {
  const file_access access;
  const std::string path;
  storage::growing_file bytes;

  mutable mutex position_mutex;
  std::uint64_t position OOC_GUARDED_BY(position_mutex) = 0;
  std::optional<partition> view OOC_GUARDED_BY(position_mutex);

  impl(std::shared_ptr<storage::store_core> store, file_access a, storage::opened_file f)
      : access(a), path(f.meta.path), bytes(std::move(store), std::move(f)) {}
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  ~impl() {
    if (!bytes.leave()) return;
    try {
      bytes.give_back();
    } catch (const std::exception& e) {
      detail::log_error("space past the end of '" + path +
                        "' is given back when it is opened for writing next: " + e.what());
    }
  }

  [[noreturn]] void refuse(const std::string& why) const { ooc::refuse(errc::invalid_request, path, why); }

  void require_writable() const {
    if (access != file_access::read_write)
      throw usage_error({EBADF, std::generic_category()}, "'" + path + "' was opened for reading only");
  }

  void require_buffer(const request& r, std::size_t has) const {
    if (has < r.memory_end())
      refuse("the request needs a buffer of " + std::to_string(r.memory_end()) + " bytes, not " + std::to_string(has));
  }

  void read(const request& r, std::span<std::byte> out) {
    require_buffer(r, out.size());
    throw_if(bytes.reaching(r.file_end())->file->read(r, out.data()));
  }

  void write(const request& r, std::span<const std::byte> in) {
    require_writable();
    require_buffer(r, in.size());
    throw_if(bytes.write(r, in.data()));
  }

  /// Up to `length` bytes from `offset` on: as far as the file goes.
  request readable_at(std::uint64_t offset, std::uint64_t length) {
    if (length == 0 || offset > max_file_size) return {};
    const std::uint64_t wanted = std::min(length, max_file_size - offset);
    const std::uint64_t size = bytes.reaching(offset + wanted)->meta.size;
    if (size <= offset) return {};
    return request::contiguous(offset, std::min(wanted, size - offset));
  }

  /// The same from the position on, through the view if there is one.
  request readable(std::uint64_t length) OOC_REQUIRES(position_mutex) {
    if (!view) return readable_at(position, length);
    if (length == 0) return {};
    auto size = storage::view_size(*view, bytes.current()->meta.size);
    if (position > size || length > size - position) size = storage::view_size(*view, bytes.refreshed()->meta.size);
    if (position >= size) return {};
    return storage::view_request(*view, position, std::min(length, size - position), access_kind::read);
  }

  /// `length` bytes from the position on, for writing.
  request writable(std::uint64_t length) const OOC_REQUIRES(position_mutex) {
    return view ? storage::view_request(*view, position, length, access_kind::write)
                : request::contiguous(position, length);
  }

  // collective_file.cpp
  void transfer_all(process_group& group, const std::string& call, access_kind kind, const storage::joint_request& all,
                    std::byte* memory);
};

}  // namespace ooc
