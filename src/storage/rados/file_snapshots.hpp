// The commits of files in RADOS: a commit is a snapshot of the file's objects.
//
//     written, then prepared:  `next` is a new snapshot, kept in the file's object
//     decided by the metadata: that is the last commit, for all who know its number; its writer says so at its next step
//     not decided:             `next` is dropped; where something was written since the last commit, every object goes
//                              back to its snapshot
//
// Only the writer of the file, of which there is one (its ranks make the same change), changes its object.  Each of its
// ranks says, before its first write after a commit or a roll back, that something is written since: so a rank forgets
// what it knows when another one has rolled back (forget_writers), and in each opening (the generation) it begins anew.
// Who reads a commit looks at the object again after each read: a snapshot is dropped after it has ceased to be named.
//
// All calls wait, but for cached().  Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"
#include "storage/layout/file_shape.hpp"
#include "storage/rados/file_object.hpp"
#include "storage/rados/rados_pool.hpp"

namespace ooc::storage {

class file_snapshots {
 public:
  explicit file_snapshots(std::shared_ptr<rados_pool> pool) : pool_(std::move(pool)) {}

  /// The objects as the writer of `f` (file_shape::commit) writes them, or as who reads that commit sees them
  /// (at_commit); null where that is not known yet.
  std::shared_ptr<rados_pool> cached(const file_shape& f) const;
  /// The same, known from now on; of a writer, durably, that something is written since.  Throws io_error, usage_error
  /// (errc::conflict) where that commit is no longer kept.
  std::shared_ptr<rados_pool> open(const file_shape& f);

  void prepare(const file_shape& f);
  void roll_back(const file_shape& f);
  void forget(file_id id);
  /// What writers know: another rank has rolled back.
  void forget_writers();

 private:
  using of_file = std::pair<file_id, bool>;  ///< true: at_commit
  struct view {
    std::uint64_t commit = 0;
    std::uint64_t generation = 0;  ///< in which opening; 0: of who reads
    std::shared_ptr<rados_pool> objects;

    bool is_of(const file_shape& f) const noexcept {
      return commit == f.commit && (f.at_commit || generation == f.generation);
    }
  };

  file_object find(const file_shape& f) const;
  void keep(const file_shape& f, const file_object& o) const;
  /// As the writer finds it: what the metadata have decided is the last commit, and what they have not is dropped.
  /// `to_write`: it says from then on that something is written since.
  file_object settled(const file_shape& f, bool to_write) const;
  std::shared_ptr<rados_pool> remember(const file_shape& f, std::shared_ptr<rados_pool> objects);

  const std::shared_ptr<rados_pool> pool_;
  mutable mutex mutex_;
  std::map<of_file, view> views_ OOC_GUARDED_BY(mutex_);
};

/// What is said to who reads a commit after which its writer has made another.
failure commit_is_gone(const file_shape& f);

/// The snapshot that has commit `number`; 0 where it is not kept.
std::uint64_t snapshot_of(const file_object& o, std::uint64_t number);

}  // namespace ooc::storage
