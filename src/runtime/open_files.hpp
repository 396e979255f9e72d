// One cache per file and process: an open file is claimed, and a second open of it is refused.
//
// Two caches of one file in a process would silently disagree.  Arrays and block files claim
// (store uuid, file id) for as long as they are open.  Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "storage/io_service.hpp"

namespace ooc::detail {

/// Holds a claim until it is destroyed or released; movable.
class file_claim {
 public:
  file_claim() = default;
  /// `path` and `holder` ("an ooc_array", "a block_file") are for the message of whoever comes
  /// second: throws usage_error (errc::busy) naming both.
  file_claim(std::string_view store_uuid, storage::file_id id, std::string_view path,
             std::string_view holder);
  ~file_claim() { release(); }
  file_claim(file_claim&& o) noexcept
      : uuid_(std::move(o.uuid_)),
        id_(std::exchange(o.id_, 0)),
        held_(std::exchange(o.held_, false)) {}
  file_claim& operator=(file_claim&& o) noexcept;

  void release() noexcept;

 private:
  std::string uuid_;
  storage::file_id id_ = 0;
  bool held_ = false;
};

}  // namespace ooc::detail
