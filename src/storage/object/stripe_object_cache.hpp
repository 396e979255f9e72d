// The stripe objects that a node has open, so that a request need not open files.
//
// Holds up to `limit` stripe objects, dropping the one that was used longest ago and is not in use, and
// closes those whose files another process removed when others are opened, and when asked to.  Two `stripe object`
// objects for one file never exist at the same time: its locks depend on that.  (One that is open for reading only may
// be left beside a new one until its last reader ends: it counts as another process then, whose locks are shared.) Any
// thread.
//
// Files are opened, and their undo journals replayed, without the lock: only who wants the same
// stripe object waits for that.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/object/stripe_object.hpp"

namespace ooc::storage {

class stripe_object_cache {
 public:
  stripe_object_cache(const node_folder& folder, bool direct_io, std::size_t limit = default_limit())
      : folder_(folder), direct_io_(direct_io), limit_(limit) {}

  /// The open stripe object; kept open at least as long as the caller keeps the pointer.  Returns an errno,
  /// and `why` as stripe_object::open() does; EUCLEAN where what is there is not this stripe object.
  /// `to_write`: one that is open for reading only is opened anew, for the permissions may have changed.
  /// `chunks`: as many as the file has, for stripe_object::open().
  int get(const object_identity& who, std::shared_ptr<stripe_object>& out, std::string& why, bool to_write = false,
          std::uint64_t chunks = 0);
  /// The stripe object if it is open already.
  std::shared_ptr<stripe_object> find(file_id id);
  /// The same for fault handlers: without waiting, and the order of use stays.
  std::shared_ptr<stripe_object> find_now(file_id id) noexcept;
  /// Forgets a stripe object whose files are gone, once nobody is opening it, who may be waiting for its locks.
  void drop(file_id id);
  /// Closes those whose files another process removed.
  void close_removed() OOC_EXCLUDES(mutex_);
  /// Closes half of the stripe objects that are not in use: the process has run out of descriptors.
  void close_some() OOC_EXCLUDES(mutex_);
  /// The limit that the descriptors of the process allow: a stripe object has up to four, and there are other nodes
  /// and the program.
  static std::size_t default_limit();

 private:
  using order = std::list<std::pair<file_id, std::shared_ptr<stripe_object>>>;  // last used first

  using closed = std::vector<std::shared_ptr<stripe_object>>;  // closed when the lock is no longer held
  void trim(std::size_t limit, closed& out) OOC_REQUIRES(mutex_);
  void take_removed(closed& out) OOC_REQUIRES(mutex_);

  const node_folder& folder_;
  const bool direct_io_;
  const std::size_t limit_;
  mutex mutex_;
  condition_variable opened_;
  std::set<file_id> opening_ OOC_GUARDED_BY(mutex_);          // one thread each is opening these
  std::size_t opened_since_look_ OOC_GUARDED_BY(mutex_) = 0;  // since take_removed()
  order order_ OOC_GUARDED_BY(mutex_);
  std::unordered_map<file_id, order::iterator> by_id_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
