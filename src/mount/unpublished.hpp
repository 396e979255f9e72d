// The size and the time of an open file as a mount knows them, and the part of them that the metadata service has not
// been told.
//
//     told --wrote()--> not told --stored()--> not told, with an end --told()--> told
//
// The size is the file's own while anything is not told: what others say of it can only make it longer.  The end of
// what was stored counts for the cuts and moves that were known when it was sent (stored_end).  Guarded by its owner.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "storage/service/growing_file.hpp"

namespace ooc::mount {

/// The time of day as entries have it.
inline std::int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

class unpublished {
 public:
  std::uint64_t size() const { return size_; }
  /// Something is not told.
  bool any() const { return modified_ns_.has_value(); }

  /// Bytes came, which are not stored yet.
  void wrote(std::uint64_t begin, std::uint64_t end) {
    appended_ = appended_ && last_.value_or(begin) == begin && !no_room_from_;
    last_ = end;
    changed(std::max(size_, end));
  }
  void stored(const storage::stored_end& s) {
    if (s.state() > stored_.state()) stored_ = s;
    if (s.state() == stored_.state()) stored_.end = std::max(s.end, stored_.end);
  }
  /// Bytes from there on found no room.
  void refused(std::uint64_t begin) { no_room_from_ = std::min(no_room_from_.value_or(begin), begin); }
  /// The file has room up to there, which counts as stored.
  void allocated(const storage::stored_end& s) {
    stored(s);
    appended_ = false;
    changed(std::max(size_, s.end));
  }
  /// The file was made that long here.
  void resized(std::uint64_t size) {
    stored_ = {};
    changed(size);
  }
  /// Nobody has the file open here yet, so that the kernel keeps nothing of it.
  void begins(const storage::entry& e) { known_ns_ = e.data_changed_ns; }
  /// The metadata service says so.
  void learned(std::uint64_t size) { size_ = any() ? std::max(size_, size) : size; }

  struct news {
    storage::stored_end stored;
    std::int64_t modified_ns = 0;
    std::int64_t shown_ns = 0;  // what the kernel may know
    std::int64_t known_ns = 0;

    /// The time that is told of a file that is now as `e`: a new one where others have changed it as well, as in
    /// overlay().
    std::int64_t time_beside(const storage::entry& e) {
      if (e.data_changed_ns != known_ns) shown_ns = now_ns();
      return shown_ns;
    }
  };
  /// The news to be told of a file that was `known` to have so many bytes.
  std::optional<news> to_tell(std::uint64_t known) {
    if (!modified_ns_) return {};
    // Several MiB are on their way together: where one of them finds no room, and one behind it does, the file would
    // get a hole.  Only of what was appended in one run: else bytes would go that their writer knows to be stored.
    if (appended_ && no_room_from_ && *no_room_from_ >= known) stored_.end = std::min(stored_.end, *no_room_from_);
    return news{stored_, *modified_ns_, std::max(*modified_ns_, shown_ns_), known_ns_};
  }
  /// It was told, and the file has `size` bytes.  `all`: nothing is on its way.
  void told(const news& n, bool all, std::uint64_t size) {
    all = all && stored_ == n.stored && modified_ns_ == n.modified_ns;
    if (stored_ == n.stored) stored_ = {};
    if (all) *this = unpublished(size);
    if (!all) shown_ns_ = std::max(shown_ns_, n.shown_ns);
    known_ns_ = n.shown_ns;
  }
  /// `e` as it is with all this.  Where others have changed it as well, the time is a new one: by that the kernel knows
  /// that what it keeps of the file is old.
  void overlay(storage::entry& e) {
    const bool by_others = std::exchange(known_ns_, e.data_changed_ns) != e.data_changed_ns;
    if (!any()) return;
    if (by_others) shown_ns_ = now_ns();
    e.size = std::max(e.size, size_);
    e.data_changed_ns = std::max(*modified_ns_, shown_ns_);
    e.changed_ns = std::max(e.changed_ns, e.data_changed_ns);
  }

  explicit unpublished(std::uint64_t size = 0) : size_(size) {}

 private:
  void changed(std::uint64_t size) {
    size_ = size;
    modified_ns_ = now_ns();
  }

  std::uint64_t size_;
  std::optional<std::int64_t> modified_ns_;
  std::int64_t shown_ns_ = 0;  // when others were seen to have changed it meanwhile
  std::int64_t known_ns_ = 0;  // the time of modification that the metadata service had last
  storage::stored_end stored_;
  std::optional<std::uint64_t> last_;  // end of the last write
  bool appended_ = true;               // each write began where the one before ended, and before any was refused
  std::optional<std::uint64_t> no_room_from_;  // the first byte that was refused
};

}  // namespace ooc::mount
