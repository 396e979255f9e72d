// A file that gets other stripe objects: another file takes its place (docs/disk-format.md, "Moves").  file_move.hpp
// keeps it as it is until then.
//
// Any thread may call.
#pragma once

#include <functional>
#include <memory>

#include "storage/base/job_threads.hpp"
#include "storage/base/mutex.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::storage {

class store_core;
struct entry;
struct opened_file;

/// The file `made`, which is made (or committed) and whole, takes the place of `of` (metadata_service::take_over),
/// whose stripe objects are removed.  `of` is as a file_move that lives has it; errc::conflict where somebody has
/// opened it for writing since, and then nothing is done.  Who has `of` open for reading reads on from `made`.
void take_over(store_core& store, const opened_file& made, const entry& of);

/// A file that is open, as far as it needs to be known to find it again.
class moved_file {
 public:
  explicit moved_file(const entry& e);
  /// Where it is now, as of the same commit; where it was, if a loss of power may have taken stripe objects of it; null
  /// where it has not been moved else, or nobody can say.  Waits.
  std::shared_ptr<const striped_file> place_in(const store_core& store) const;

 private:
  std::uint64_t id_;
  bool at_commit_;
  std::uint64_t opened_;
  std::uint64_t commit_ = 0;
};

/// Looks for files, one after the other, on a thread that is made when the first one is looked for.  Where none can be
/// made, nothing is found.
class file_finder {
 public:
  void find(std::function<std::shared_ptr<const striped_file>()> look,
            std::function<void(std::shared_ptr<const striped_file>)> found) const OOC_EXCLUDES(mutex_);

 private:
  mutable mutex mutex_;
  mutable std::unique_ptr<job_threads<>> thread_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
