// The core of an ooc::store: the metadata service and the I/O nodes, in one place.
//
// Thread-safe.  Throws ooc::error; see store.hpp and metadata_service.hpp.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oocarray/store.hpp"
#include "storage/service/file_moves.hpp"
#include "storage/service/metadata_service.hpp"
#include "storage/service/removal_queue.hpp"
#include "storage/service/store_nodes.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::storage {

/// An entry and the file it describes, open.
struct opened_file {
  entry meta;
  std::shared_ptr<const striped_file> file;
};

enum class open_mode { read, read_write };

/// Takes a claim to the file that is being opened (metadata_service::claim_writer, claim_reader), or throws.
struct claim_taker {
  /// True: there is a claim now.  The file is then looked up once more, as others may have changed it before, and if
  /// another one has its place this is called for that.
  std::function<bool(const entry&)> take;
  bool alone = false;
  /// Who takes it knows that a file with commits is written by one program at a time, and begins at the last one.
  bool knows_commits = false;
  /// Throws where the file, as it is once it is claimed, is not what the caller asked for.  May be empty.
  std::function<void(const entry&)> check = {};
};

class store_core : public std::enable_shared_from_this<store_core> {
 public:
  /// `client`: a number that others who open the store do not have, see first_of_client().  `further`: as store_nodes
  /// has it.  `unpack`: empty where no file is packed.
  store_core(std::string url, std::string uuid, std::shared_ptr<metadata_service> metadata, striped_file::nodes nodes,
             std::uint64_t client = 0, unpacked_node_maker unpack = {}, store_nodes::source further = {});
  ~store_core();
  store_core(const store_core&) = delete;
  store_core& operator=(const store_core&) = delete;

  /// Checks the caller's permission; throws EACCES, ENOENT, EISDIR, and EBUSY for a file in the middle
  /// of an algorithm unless `unfinished`.  A file with commits is read as of the last one, and who opens it for writing
  /// begins at that: what was written since and not committed is taken back.
  opened_file open(std::string_view path, open_mode mode, bool unfinished = false, const claim_taker& claim = {});
  /// The same by id, with the permissions that the metadata service finds.  A file that is opened for writing, and of
  /// which more is reserved than anybody who lives has asked for, is cut off at its size.
  opened_file open(file_id id, open_mode mode, const claim_taker& claim = {});
  /// A file that the caller has made, and then claimed.
  opened_file claimed(const opened_file& f, bool alone);
  /// The file of an entry that another process of the same program has opened: asks nobody, but for a node that the
  /// store got since it was opened.
  opened_file opened(entry e) const;
  /// Makes the entry, then the stripe objects, then commits: a failure leaves nothing behind.
  /// `f.striping` may have nn == 0 (all nodes); sf must be given.
  opened_file create(std::string_view path, const new_file& f);
  /// The same in two steps, for who fills the file before anybody may see it: a made file can be
  /// written but has no name yet; commit() gives it its name, abandon() removes it.  If the process
  /// dies before, a later open of the store removes it.  Where commit() throws, the file is gone, or, if the server's
  /// answer was lost (ETIMEDOUT), there and whole.
  opened_file make(std::string_view path, const new_file& f);
  void commit(const opened_file& f);
  void abandon(const opened_file& f) noexcept;
  /// Removes the entry of a file or an empty folder.  The stripe objects follow once that is durable: soon, and of a
  /// large file before this returns.
  void remove(std::string_view path);
  /// Keeps everybody from writing the file as an array while the pointer lives.  Throws errc::busy, naming who does,
  /// where somebody writes it, and so it cannot be `to_be` ("removed").  Null for what is no file, and where the caller
  /// may not write the file.
  std::shared_ptr<void> claim_unused(const entry& e, std::string_view to_be);
  /// Gives what is at `from` the path `to`, whose folder must exist.  What had that path is replaced in the same step
  /// and removed: a file that nobody writes as an array (errc::busy), or an empty folder by a folder.
  void replace(std::string_view from, std::string_view to);
  /// Changes mode, or owner and group (keep_id: not), of a file or folder; of a file on embedded nodes, of its
  /// stripe objects too.  If the process dies meanwhile, they may be closed to some whom the entry admits, never
  /// open to others: the same call mends that.
  void set_mode(std::string_view path, std::uint32_t mode) { (void)change(path, mode_change(mode)); }
  void set_owner(std::string_view path, std::uint32_t uid, std::uint32_t gid) {
    (void)change(path, owner_change(uid, gid));
  }
  /// Changes the size (and extents) of a file; returns it as it then is.  Resizes of one file by
  /// several processes happen one after another.  A growth leaves what is reserved.  Where a file that is no array is
  /// cut off, nodes refuse (errc::cut_off) further writes as of before, see after_cut().
  opened_file resize(const opened_file& f, std::uint64_t size, const std::vector<std::uint64_t>& extents);
  /// The stripe objects of a packed file, which have more, keep the first `bytes`.
  opened_file set_packed(const opened_file& f, std::uint64_t bytes);
  /// Makes the file at least `size` bytes long: where another process has made it longer, that
  /// stays.  Refuses the file of an array.  Where its stripe objects are too short for that, they are given `reserved`
  /// bytes if that is more, under the conditions of reserve().  Returns it as it then is.
  opened_file grow(const opened_file& f, std::uint64_t size, std::uint64_t reserved = 0);
  /// Sees to it that the stripe objects have `end` bytes: where they do not, they are given `reserved`.  The size
  /// stays.  Refuses the file of an array.  The caller holds a claim to write the file together with others
  /// (claim_to_write), and gives back what is past the size when it lets go.  Only while it holds the claim may it
  /// write there.
  opened_file reserve(const opened_file& f, std::uint64_t end, std::uint64_t reserved);
  /// Gives back what is reserved past the size, if nobody has a claim to write the file.
  opened_file give_back(const opened_file& f);
  /// Changes an entry as metadata_service::change() does, and the permissions of stripe objects as set_mode().
  entry change(const place& where, const entry_change& what);
  /// The files that were removed here and still have stripe objects.
  removal_queue& removals() noexcept { return removals_; }
  /// The file as it is now; who opened it before another process resized it sees the new size.
  opened_file refresh(const opened_file& f);
  /// Makes acknowledged writes of the file durable, and its entry with them.
  void sync(const opened_file& f);
  /// The second half of that, for who has synced the stripe objects, or has had another rank do it.
  void sync_entry(const opened_file& f);

  /// Throws usage_error (errc::busy) in a child of the process that has opened the store, which has none of its
  /// threads.
  metadata_service& metadata() const;
  /// Those that are known here: all that there were when the store was opened, and perhaps some that came later.
  striped_file::nodes nodes() const { return nodes_.all(); }
  const std::string& url() const noexcept { return url_; }
  const std::string& uuid() const noexcept { return uuid_; }
  /// Bytes that all nodes together may hold for transfers.
  std::uint64_t staging_bytes() const;

 private:
  entry change_permissions(entry e, const entry_change& what);
  opened_file resize_locked(size_lock& lock, const entry& now, std::uint64_t size,
                            const std::vector<std::uint64_t>& extents, std::uint64_t reserved = 0);

  const pid_t process_ = ::getpid();
  std::string url_;
  std::string uuid_;
  std::shared_ptr<metadata_service> metadata_;
  store_nodes nodes_;
  std::uint64_t client_;
  file_finder moved_;
  unpacked_files unpacked_;
  removal_queue removals_;  // last: it uses the others to its end
};

/// metadata_service::lock_size() for who changes the size or relies on it: from now on nodes cut nothing off in the
/// name of clients that had the lock before.  Throws also what an opening for writing throws, where that takes a new
/// generation of the file.
size_lock_ptr lock_size(store_core& store, file_id id);

/// store_core::refresh() after a write as `f` was refused (errc::cut_off): waits for who is cutting the file off, and
/// where he has died, sees to it that the stripe objects are as long as the file.  Then the write can be repeated,
/// perhaps after a growth.
opened_file after_cut(store_core& store, const opened_file& f);

/// The nodes that are on this host, ascending.  Throws io_error where one does not answer.
std::vector<std::uint32_t> near_nodes(const striped_file::nodes& nodes);

}  // namespace ooc::storage
