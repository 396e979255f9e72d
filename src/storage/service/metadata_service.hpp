// The name space of a store: folders, files and what is known of them.  No data pass through it.
//
// Two implementations: `local_metadata` (SQLite in a folder) and the client of a server.  Calls are
// synchronous, thread-safe, and used at open, create and name-space operations only.  Failures are
// thrown as ooc::error (ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EACCES, EINVAL) whose text names
// the path.
//
// create() and mkdir() take the umask of the calling program from the mode, as open(2) does.
//
// Paths are '/'-separated, relative to the store's root, without "." or ".." components; leading,
// trailing and doubled slashes are ignored.  A component has 1 to 255 bytes and no NUL.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/layout/array_description.hpp"
#include "storage/layout/file_shape.hpp"
#include "storage/service/entry.hpp"
#include "storage/service/metadata_by_id.hpp"

namespace ooc::storage {

struct new_file {
  std::uint64_t size = 0;
  ooc::striping striping;          ///< complete: sn < nodes, 0 < nn <= nodes, sf > 0
  bool sparse = false;
  std::vector<std::byte> fill;
  array_description array;
  std::uint32_t mode = 0644;
  bool finished = false;           ///< committed with its creation: an empty file needs no stripe objects
};

/// Who is in the way of a claim.
struct claim_holder {
  std::string name;  ///< program and process; empty: not known
  /// Where it has lost its connection: the claim ends after this, unless it comes back.  0: it is
  /// there, for all that is known.
  std::chrono::milliseconds ends{0};
  /// What it does.
  std::string doing = "is open for writing in another process";
};

/// The guard of metadata_service::lock_size().
struct size_lock {
  /// Who had the lock before may have left requests that are still on their way to the nodes; they state the generation that
  /// the file has now, or an earlier one.  lock_size() of store_core.hpp gives it the next one: nodes then refuse to cut anything
  /// off in their name.
  bool owes_fence = false;
  /// True while the holder may leave such requests behind if it lets go.
  std::atomic<bool> unsettled{false};
};
using size_lock_ptr = std::shared_ptr<size_lock>;

class metadata_service {
 public:
  virtual ~metadata_service() = default;

  /// True where a claim can end before its guard goes: with a client that its server has not heard of for long.
  const bool claims_may_end = false;

  /// What is at `path`, to look at.  On served stores it carries no capability.
  virtual entry lookup(std::string_view path) = 0;
  /// A file for use: its entry carries a capability for reading, and for writing if that is asked for.
  /// Throws EISDIR for a folder, EACCES where the caller may not, and EBUSY for a file that is marked by
  /// set_in_progress(), unless `unfinished`.
  virtual entry open(std::string_view path, bool write, bool unfinished = false) = 0;
  /// Makes a file (its parent folders must exist) in state "being made": invisible to lookup and
  /// list until commit().  What was not committed when its maker died is swept at a later open.
  virtual entry create(std::string_view path, const new_file& f) = 0;
  virtual void commit(file_id id) = 0;
  /// Gives up a file that was not committed: it counts as removed, its stripe objects are to be removed.
  virtual void abandon(file_id id) = 0;
  virtual void mkdir(std::string_view path, std::uint32_t mode, bool parents) = 0;
  /// The entries of a folder by name, or the one entry of a file; without capabilities.
  virtual std::vector<entry> list(std::string_view path) = 0;
  virtual void rename(std::string_view from, std::string_view to) = 0;
  /// Removes a file or an empty folder and returns what it was; of a file that was its last name (names is
  /// 0), the caller removes the stripe objects and then says forget().
  virtual entry remove(std::string_view path) = 0;
  /// The stripe objects of a removed or abandoned file are gone from every node.
  virtual void forget(file_id id) = 0;
  /// What the nodes want to see before they remove stripe objects of a file that is gone: `id` must not be
  /// that of a file that is there or being made (EBUSY).  Empty on local stores.
  virtual capability_ptr removal_capability(file_id id) = 0;
  /// What the nodes want to see before they change the stripe objects to those of a file of `size` bytes; the
  /// caller holds lock_size().  Empty on local stores.  Throws EACCES where the caller may not write
  /// the file.
  virtual capability_ptr size_capability(file_id id, std::uint64_t size) = 0;
  /// Size and extents of a file whose stripe objects have them, and the generation that the stripe objects have been
  /// given with it.  False, and nothing is changed, where the generation is past that by now.  `reserved`: what
  /// the stripe objects have, where that is more than the size.  Counts it as a cut where the stripe objects of a file that
  /// is no array become shorter.
  virtual bool set_size(file_id id, std::uint64_t size, const std::vector<std::uint64_t>& extents,
                        std::uint64_t generation, std::uint64_t reserved = 0) = 0;
  /// The stripe objects that the file had with `allocated` bytes have this generation: it was opened for writing.  Less
  /// than it has is no change.  False, and nothing is changed, where it has got further stripe objects since.  Durable on
  /// return.
  virtual bool set_generation(file_id id, std::uint64_t generation, std::uint64_t allocated) = 0;
  /// Marks a file whose contents are neither old nor new: `what` says who is doing what with it.  Empty:
  /// they are whole again.  Durable on return.
  virtual void set_in_progress(file_id id, std::string_view what) = 0;
  virtual void set_attribute(std::string_view path, std::string_view key, std::string_view value) = 0;
  virtual void remove_attribute(std::string_view path, std::string_view key) = 0;
  /// set_mode() and set_owner() change the entry only: see store_core for the stripe objects.
  virtual void set_mode(std::string_view path, std::uint32_t mode) = 0;
  /// keep_id leaves owner or group as it is.  Who is not uid 0 may give nothing away, and sets the group of
  /// what is his own to one of his own (EPERM).
  virtual void set_owner(std::string_view path, std::uint32_t uid, std::uint32_t gid) = 0;
  /// Ids of every committed file: what `ooc verify` walks and what stripe objects are compared with.
  virtual std::vector<file_id> files() = 0;
  /// Ids of the files being made by a process that may be alive.  Ids are never used again, and an
  /// entry is there before its stripe objects: a stripe object listed *before* these calls whose id is in none of
  /// unfinished(), files() and dead() is an orphan.
  virtual std::vector<file_id> unfinished() = 0;
  /// Ids of the files that were removed, abandoned, or not committed by a maker that has died, and
  /// not yet forgotten: their stripe objects may be removed at any time by anybody.
  virtual std::vector<file_id> dead() = 0;

  /// The entry of a committed file, wherever it is now in the name space (attributes included), for
  /// use as after open().
  virtual entry find(file_id id) = 0;
  /// While the guard lives, no other holder of one (of any process) can be changing the size of this
  /// file.  It goes by itself when its process dies.  Throws ETIMEDOUT after 60 s.  Who is going to change the size, or to rely
  /// on it, calls lock_size() of store_core.hpp.
  virtual size_lock_ptr lock_size(file_id id) = 0;
  /// Says that the caller writes the file through a cache of whole blocks: alone, or `together`
  /// with others that send only what they changed.  The claim holds until the guard goes or the
  /// process dies.  An empty pointer where another claim is in the way; `*in_the_way` then says whose.
  virtual std::shared_ptr<void> claim_writer(file_id id, bool together,
                                             claim_holder* in_the_way = nullptr) = 0;
  /// The same of a caller who only reads.  In a store nobody is in his way.
  virtual std::shared_ptr<void> claim_reader(file_id, claim_holder* /*in_the_way*/ = nullptr) {
    return std::make_shared<int>();
  }

  /// The entries by their ids; lives as long as this.
  virtual metadata_by_id& by_id() noexcept = 0;

  /// Changes acknowledged so far survive the death of the process; after sync() also the loss of
  /// power.
  virtual void sync() = 0;

 protected:
  metadata_service() = default;
  explicit metadata_service(bool may_end) : claims_may_end(may_end) {}
};

}  // namespace ooc::storage
