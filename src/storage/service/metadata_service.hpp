// The name space of a store: folders, files and what is known of them.  No data pass through it.
//
// Implementations: `local_metadata` (SQLite in a folder), the client of a server, and the one file in place.  Calls are
// synchronous, thread-safe, and used at open, create and name-space operations only.  Failures are
// thrown as ooc::error (ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EACCES, EINVAL) whose text names
// the path.  Each call is carried out as a whole or not at all.
//
// create() and mkdir() take the umask of the calling program from the mode, as open(2) does.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "storage/layout/known_epoch.hpp"
#include "storage/service/metadata_front.hpp"

namespace ooc::storage {

/// The holder of a claim that is in the way of another.
struct claim_holder {
  std::string name;  ///< program and process; empty: not known
  /// Where it has lost its connection: the claim ends after this, unless it comes back.  0: it is
  /// there, for all that is known.
  std::chrono::milliseconds ends{0};
  /// Its use of the file, for messages.
  std::string doing = "is open for writing in another process";
};

/// The guard of metadata_service::lock_size().
struct size_lock {
  /// The client that had the lock before may have left requests that are still on their way to the nodes; they state
  /// the generation that the file has now, or an earlier one.  lock_size() of store_core.hpp gives it the next one:
  /// nodes then refuse to cut anything off in their name.
  bool owes_fence = false;
  /// True while the holder may leave such requests behind if it lets go.
  std::atomic<bool> unsettled{false};
};
using size_lock_ptr = std::shared_ptr<size_lock>;

class metadata_service : public metadata_front {
 public:
  /// Changes acknowledged so far survive the death of the process; after sync() also the loss of
  /// power.  Throws EIO, once, where some were lost with the power of the server's machine before.
  void sync() {
    ask(calls::sync{});
    throw_if(untold_loss());
  }
  /// set_mode() and set_owner() change the entry only: see store_core for the stripe objects.
  void set_mode(const place& where, std::uint32_t mode) { (void)change(where, mode_change(mode)); }
  void set_owner(const place& where, std::uint32_t uid, std::uint32_t gid) {
    (void)change(where, owner_change(uid, gid));
  }

  /// As io_service::epoch_of(), of the file's entry and of all names.
  virtual known_epoch epoch_of(const entry& /*file*/) const { return {}; }
  /// Another process has made a sync in the same epoch, after it was told of all that had been acknowledged here
  /// `before` (next_moment()).
  virtual void synced_elsewhere(std::uint64_t /*before*/) {}

  /// While the guard lives, no other holder of one (of any process) can be changing the size of this
  /// file.  It goes by itself when its process dies.  Throws ETIMEDOUT after 60 s.  Who is going to change the size, or
  /// to rely on it, calls lock_size() of store_core.hpp.
  virtual size_lock_ptr lock_size(file_id id) = 0;
  /// Says that the caller writes the file through a cache of whole blocks: alone, or `together`
  /// with others that send only what they changed.  The claim holds until the guard goes or the
  /// process dies.  An empty pointer where another claim is in the way; `*in_the_way` then says whose.
  virtual std::shared_ptr<void> claim_writer(file_id id, bool together, claim_holder* in_the_way = nullptr) = 0;
  /// True where the claim to write the file that was taken here last, and is still held, has been lost, as far as is
  /// known here since the last answer: the server took this client for lost, and somebody else may have had it since.
  virtual bool has_lost_claim(file_id) { return false; }
  /// claim_writer() of a caller who only reads.  In a store nobody is in his way.
  virtual std::shared_ptr<void> claim_reader(file_id, claim_holder* /*in_the_way*/ = nullptr) {
    return std::make_shared<int>();
  }
  /// Who holds the claims of this process, for ranks that write under them; empty where nodes compare the claims that
  /// are stated (file_shape::claim), and need not know them.
  virtual std::string claimant() const { return {}; }
  /// By a rank, before it writes the file under a claim of `claimant` and until the pointer goes: it is kept from the
  /// store when another claim ends that.  Throws io_error, ESTALE where `claimant` has been lost.
  virtual std::shared_ptr<void> join(const std::string& /*claimant*/, file_id, const write_claim&) { return nullptr; }

 private:
  /// That changes were lost which had not been synced, if that has not been told yet.
  virtual failure untold_loss() { return {}; }
};

}  // namespace ooc::storage
