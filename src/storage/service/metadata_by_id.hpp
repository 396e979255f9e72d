// The entries of a name space by their ids, for who follows them through renames, as a mount does.
//
// A part of the metadata service, under the same rules for threads and failures; metadata_service::by_id()
// gives it.  The root has the id 1.  The callers' umask is not applied.  Servers also ask for the permission
// to pass the folders on the way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/service/entry.hpp"

namespace ooc::storage {

/// A name in a folder.
struct place {
  file_id folder = 0;
  std::string name;
};

/// An entry that needs no stripe objects: anything but a file with bytes.
struct new_entry {
  entry_kind kind = entry_kind::file;
  std::uint32_t mode = 0644;
  std::uint32_t owner = keep_id;   ///< keep_id: the caller; others for user 0 only (EPERM)
  std::uint32_t group = keep_id;   ///< keep_id: the caller's, or the folder's where that has the set-group-id bit
  std::string target;              ///< of a symbolic link
  std::uint64_t device = 0;
  ooc::striping striping;          ///< of a file; complete
};

/// What is to change of an entry; the rest stays.
struct entry_change {
  std::optional<std::uint32_t> mode, owner, group;
  std::optional<std::int64_t> data_changed_ns, data_read_ns;
  /// The visible size becomes at least this; at most allocated_size().  Not of arrays.  The caller holds lock_size(),
  /// as store_core::change() does.
  std::optional<std::uint64_t> size_at_least;

  bool empty() const {
    return !mode && !owner && !group && !data_changed_ns && !data_read_ns && !size_at_least;
  }
};

/// Entries of a folder by name.
struct folder_part {
  std::vector<entry> entries;
  bool more = false;  ///< others may follow the last of these
};

class metadata_by_id {
 public:
  virtual ~metadata_by_id() = default;

  /// Whatever it is, also a file that the caller has removed and still uses.  Without a capability.
  virtual entry stat(file_id id) = 0;
  /// What has this name; its path is the name.
  virtual entry look_in(const place& at) = 0;
  /// The entries whose names are greater than `after`; their paths are their names.
  virtual folder_part list_in(file_id folder, std::string_view after) = 0;
  virtual entry make(const place& at, const new_entry& what) = 0;
  /// A further name of anything but a folder (EPERM).
  virtual entry link(file_id id, const place& at) = 0;
  /// Takes a name away, of an empty folder or of anything else (EISDIR, ENOTDIR), and returns what had it.  A
  /// file without another name (names is 0) stays in use by the caller, until it says abandon() or dies.
  virtual entry unlink(const place& at, bool folder) = 0;
  /// Moves a name; what has the new one is replaced in the same step, if that is asked for (else EEXIST), and
  /// returned as by unlink(); id 0: nothing was there.
  virtual entry move(const place& from, const place& to, bool replace) = 0;
  /// Returns the entry as it is then.  Mode and owner of the entry only, see store_core for the stripe objects.
  virtual entry change(file_id id, const entry_change& what) = 0;
  /// The keys `ooc.striping` and `ooc.type` stand for the entry's own; of a file that has no bytes yet (EPERM).  The
  /// caller then holds lock_size(), and has seen to it that the store has the nodes.
  virtual void set_attribute(file_id id, std::string_view key, std::string_view value) = 0;
  virtual void remove_attribute(file_id id, std::string_view key) = 0;
};

}  // namespace ooc::storage
