// Stripe objects that are made without waiting for the disk, and which of them a loss of power may have taken.
//
// A stripe object of a file's first generation is *late*: it becomes durable by its first sync, which also ends that
// generation.  A loss of power before may take its files, or leave them without their bytes; it then counts as never
// written.  That must not be said of one that somebody has removed or damaged.  So the node notes in its folder,
// durably, before the first late stripe object of a boot is made, this boot and the id of that file
// (`oocarray-unsynced`, see docs/disk-format.md).  Ids rise: later ones are at least that.  When the boot is another
// one, what it had made late is what may be missing.
//
// Any thread, any process.
#pragma once

#include <optional>

#include "storage/base/file_descriptor.hpp"
#include "storage/base/mutex.hpp"
#include "storage/object/node_folder.hpp"

namespace ooc::storage {

class late_objects {
 public:
  explicit late_objects(const node_folder& folder) : folder_(folder) {}

  /// Whether the file's stripe object may be made late.  False where that cannot be noted, and for files with an id
  /// before the first one of this boot.
  bool allows(file_id id);
  /// Whether a boot has ended that had made the file's stripe object late, if at all.
  bool may_be_lost(file_id id);
  /// Held by who makes a lost stripe object again.
  file_descriptor lock() const;

 private:
  struct note {
    std::string boot;
    file_id first = 0;  // the first late one of that boot
    file_id lost = 0;   // the same of all boots before; 0: there was none
  };

  std::optional<note> read() const;
  bool write(const note& n) const;

  const node_folder& folder_;
  mutex mutex_;
  file_id first_ OOC_GUARDED_BY(mutex_) = 0;  // noted for this boot; 0: not known to be
};

}  // namespace ooc::storage
