// One cache per file and process where somebody in it writes, and one writer of whole blocks among all processes.
//
// Two caches of one file in a process would silently disagree if one of them were written to, so a second open is
// refused then.  Any number of readers, each with a cache of its own, may have the file open: they see what others,
// who can only be other processes, have written as a single reader does, after invalidate().  Two
// processes that write back whole blocks would undo each other's elements, so a second writer is
// refused as well, unless all of them send only what they changed.  Arrays and block files hold a
// claim for as long as they are open.  Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "storage/service/store_core.hpp"

namespace ooc::detail {

/// How the holder of a claim writes to the file.
enum class writing : std::uint8_t {
  no,
  exclusive,  ///< whole blocks
  shared,     ///< changed elements only, beside others who do the same
};

/// Holds a claim until it is destroyed or released; movable.
class file_claim {
 public:
  file_claim() = default;
  /// `path` and `holder` ("an ooc_array", "a block_file") are for the message of whoever comes
  /// second: throws usage_error (errc::busy) naming both.  A claim of another process is waited for
  /// as long as `patience` says, with a line on standard error if that takes longer than 2 s; `meanwhile`, if there is
  /// one, is called all the time, and what it throws ends that.
  file_claim(storage::store_core& store, storage::file_id id, std::string_view path, std::string_view holder, writing w,
             std::chrono::milliseconds patience, const std::function<void()>& meanwhile = {});
  /// Of a rank whose leader has claimed the file for all, as `claimant` (metadata_service::join): a claim within this
  /// process only.
  file_claim(storage::store_core& store, const storage::entry& e, std::string_view path, std::string_view holder,
             writing w, const std::string& claimant);
  ~file_claim() { release(); }
  file_claim(file_claim&& o) noexcept
      : uuid_(std::move(o.uuid_)),
        id_(std::exchange(o.id_, 0)),
        held_(std::exchange(o.held_, false)),
        claim_(std::move(o.claim_)) {}
  file_claim& operator=(file_claim&& o) noexcept;

  void release() noexcept;

 private:
  file_claim(const storage::store_core& store, storage::file_id id, std::string_view path, std::string_view holder,
             writing w);

  std::string uuid_;
  storage::file_id id_ = 0;
  bool held_ = false;
  std::shared_ptr<void> claim_;
};

}  // namespace ooc::detail
