// The files of one server with changes that are acknowledged and not durable, and what a loss of power makes of them.
//
// Where another epoch of the server is met (docs/wire-format.md, "Epochs"), the files that had such changes are lost:
// who had one open by then must not use it as if nothing had happened.  Who opens it later begins with what is there.
//
// The metadata server's changes of names belong to file 0, which is none.
//
// A change counts from its acknowledgement: a request that is repeated in the new epoch has lost nothing.
//
// Any thread may call.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "storage/base/mutex.hpp"
#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

class unsynced_files {
 public:
  /// A server of this epoch is there; 0: it does not say, or loses nothing.
  void meet(std::uint64_t epoch);
  /// A server of this epoch has acknowledged a change.
  void changed(file_id file, std::uint64_t epoch);
  /// All that was acknowledged before `asked` (next_moment()) is durable: of the file, or of every file.
  void synced(file_id file, std::uint64_t asked);
  void synced_all(std::uint64_t asked);
  /// Nobody reads it any more.
  void removed(file_id file);

  std::uint64_t epoch() const;
  /// The epoch of the file's changes that are not durable; 0: there are none.
  std::uint64_t unsynced_in(file_id file) const;
  /// Whether something of the file has been lost since that moment.
  bool lost_since(file_id file, std::uint64_t opened) const;
  /// The moment of the last loss; 0: there was none.
  std::uint64_t last_loss() const;

 private:
  mutable mutex mutex_;
  std::uint64_t epoch_ OOC_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_loss_ OOC_GUARDED_BY(mutex_) = 0;
  std::uint64_t changed_in_ OOC_GUARDED_BY(mutex_) = 0;  // the epoch of all of `changed_`
  // By file: the moment of the last change, and of the loss.
  std::unordered_map<file_id, std::uint64_t> changed_ OOC_GUARDED_BY(mutex_);
  std::unordered_map<file_id, std::uint64_t> lost_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
