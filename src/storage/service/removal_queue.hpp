// Files that have lost their last name and wait for their stripe objects to be removed.
//
// A loss of power may bring a name back whose removal was not durable yet, and the file must then be whole.  So stripe
// objects are removed only after a sync of the metadata.  One sync serves all files that are removed within
// `gathering` of the first; it comes earlier where they have `most_bytes` together, or where somebody needs the space.
//
// Where the process dies, or a node cannot be reached, the metadata service still has the file among the dead, and who
// opens the store next removes its stripe objects (store_core::sweep).
//
// Any thread may call.  The thread of the queue is made when the first file comes.  A forked child, which does not
// have it, leaves everything to its parent.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/base/ticker.hpp"
#include "storage/service/entry.hpp"

namespace ooc::storage {

class removal_queue {
 public:
  static constexpr std::chrono::milliseconds gathering{1000};
  static constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;

  /// Gets what has come together, on the thread of the queue or in its destructor, and returns what could not be
  /// removed; that has its turn again with what comes next, or when somebody needs the space.  Must not throw.
  using remover = std::function<std::vector<entry>(std::vector<entry>)>;

  explicit removal_queue(remover remove);
  /// Removes what is left.
  ~removal_queue();
  removal_queue(const removal_queue&) = delete;
  removal_queue& operator=(const removal_queue&) = delete;

  /// An entry that has the right to remove the file.
  void add(entry e) OOC_EXCLUDES(mutex_);
  /// A file that has no name any more (metadata_service::unlink) and is not in use.
  void add_unnamed(entry e) OOC_EXCLUDES(mutex_) {
    e.capability.reset();
    add(std::move(e));
  }
  /// Returns when everything that was added before has had its turn.  False: nothing was removed.
  bool finish() OOC_EXCLUDES(mutex_);

 private:
  ticker::clock::time_point turn() OOC_EXCLUDES(mutex_);
  void try_again() OOC_REQUIRES(mutex_);

  const remover remove_;
  const pid_t owner_;
  mutex mutex_;
  condition_variable changed_;
  std::vector<entry> waiting_ OOC_GUARDED_BY(mutex_);
  std::vector<entry> kept_ OOC_GUARDED_BY(mutex_);                                     // could not be removed
  std::uint64_t bytes_ OOC_GUARDED_BY(mutex_) = 0;                                     // of what waits
  std::uint64_t added_ OOC_GUARDED_BY(mutex_) = 0, tried_ OOC_GUARDED_BY(mutex_) = 0;  // files, in all
  std::uint64_t removed_ OOC_GUARDED_BY(mutex_) = 0;                                   // of those
  bool hurry_ OOC_GUARDED_BY(mutex_) = false;
  ticker::clock::time_point due_ OOC_GUARDED_BY(mutex_);
  std::unique_ptr<ticker> thread_;
};

}  // namespace ooc::storage
