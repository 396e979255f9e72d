// One open stripe object: its files, and the locks that order access to them.
//
//     <id>.data   the bytes, whole 4 KiB chunks
//     <id>.sum    header and checksums, see checksum_file.hpp
//     <id>.undo   old images of durable chunks, see undo_journal.hpp; often not there
//     <id>.side   of a file with commits: which of the two sides of each chunk counts, see sides.hpp
//
// Rules of access:
// - Reading data and sums needs no lock, but a mismatch means something only to the holder of a
//   chunk claim and the region locks of the chunk (a writer may have been in between).
// - Writing data and sums: an exclusive chunk claim, then region locks, then mark_unsynced().
// - Sync, resize, remove: a claim on all chunks, then range_locks::lock_object().
//
// Any thread may call, within these rules.  Functions return an errno, 0 for success.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "storage/base/mutex.hpp"
#include "storage/object/checksum_file.hpp"
#include "storage/object/chunk_locks.hpp"
#include "storage/object/node_folder.hpp"
#include "storage/object/object_files.hpp"
#include "storage/object/object_sides.hpp"
#include "storage/object/range_locks.hpp"
#include "storage/object/undo_journal.hpp"

namespace ooc::storage {

class stripe_object {
 public:
  /// Opens an existing stripe object; for reading only where the caller may not write its files.  Where the machine
  /// lost its power since the last write, the undo log is applied first; where it did so before a change of size was
  /// synced, the stripe object gets the `chunks` that its file has, the missing ones never written. EUCLEAN: the
  /// header is damaged, of another version or of another stripe object; EBADMSG: there is none, as where it never
  /// came to the disk; EACCES or EROFS: it may not be read, or the undo log waits for somebody who may write; `why`
  /// says it.
  static int open(const node_folder& folder, const object_identity& who, bool direct_io, std::uint64_t chunks,
                  std::shared_ptr<stripe_object>& out, std::string& why);

  /// 0, or the errno with which its files cannot be opened for writing.
  int read_only() const noexcept { return read_only_; }

  const object_identity& identity() const noexcept { return identity_; }

  /// Whether the stripe object is as new as the metadata say: 0, or EUCLEAN for a copy of an earlier time.
  int check_generation(std::uint64_t expected, std::uint64_t& found);
  /// Sets the generation, durably; the whole stripe object is locked.  A stripe object that leaves the first
  /// generation becomes durable as a whole: only those of the first one may be lost with the power.
  /// Ends the claims that `begins` does not go together with; `ends_writes`: all writes of who has looked the file up
  /// so far.
  int advance(std::uint64_t generation, const write_claim& begins, bool ends_writes = false);

  int data() const noexcept { return data_.load(std::memory_order_acquire); }
  /// True while data() bypasses the page cache: memory must then be aligned to 4096 bytes.
  bool direct() const noexcept { return data() == direct_.get() && direct_; }
  /// For file systems that accept O_DIRECT at open and refuse the transfer.
  int give_up_direct();

  const checksum_file& sums() const noexcept { return sums_; }
  chunk_locks& chunks() noexcept { return chunks_; }
  range_locks& ranges() noexcept { return ranges_; }
  undo_journal& undo() noexcept { return undo_; }

  /// Of a file with commits; then all that counts chunks on the disk counts places (sides.hpp).
  object_sides& sides() noexcept { return sides_; }

  /// checksum_file::touch for the holder of the chunks' locks; `h` as from mark_unsynced().
  int touch(std::uint64_t first, std::uint64_t count, const checksum_header& h);
  int read_header(checksum_header& h) const;

  /// For the holder of the whole stripe object, or where all processes that do it at a time write the same bytes.
  int change_header(const std::function<void(checksum_header&)>& change, bool durably = true);

  /// Records durably, before the first data go out, that there are unsynced writes, and after which commit.  `h` is
  /// then the header as it stands for the whole operation.
  int mark_unsynced(checksum_header& h, std::uint64_t commit = 0);

  /// Makes one of its files durable; any lock.  A failure is final, for the kernel tells each open file of it once:
  /// what it was for may be lost, whatever a later attempt says, so none is made.
  int make_durable(int file) OOC_EXCLUDES(flushing_);
  /// All of them.  The long part of a sync.
  int flush();
  /// The end of a sync, with the whole stripe object locked: everything is durable and said to be so.
  int settle_as_durable();
  /// Both with the whole stripe object locked.  Before its size changes to `chunks`: as mark_unsynced(), and says,
  /// durably if that is news, how many chunks are sure to be kept.
  int mark_resized(checksum_header& h, std::uint64_t chunks);
  /// The stripe object has so many chunks, and has been cut off so often (0: as often as before); both survive the
  /// death of the process.
  int set_chunks(std::uint64_t chunks, std::uint64_t cuts = 0);
  /// The files get room for chunks [have, chunks), all of them never written, or lose what is past `chunks`.
  int lengthen(std::uint64_t have, std::uint64_t chunks, bool reserved) const;
  int cut_off(std::uint64_t chunks) const;
  /// Whether make_durable() has failed, or its like for the names of the files.
  bool sync_failed() const noexcept { return sync_failed_.load(); }

 private:
  stripe_object(const node_folder& folder, const object_identity& who, file_descriptor direct, file_descriptor buffered,
                checksum_file sums, int read_only);
  int require_nothing_waits(std::string& why);
  int recover_from_power_loss();
  int recover_size(int data_file, const checksum_header& h) const;
  int restore_size(std::uint64_t chunks);
  int write_mark(checksum_header& h) OOC_REQUIRES(header_);

  const object_identity identity_;
  const std::filesystem::path data_path_;
  const int read_only_;
  file_descriptor direct_;  // one of the two is open, or both after give_up_direct()
  file_descriptor buffered_;
  std::atomic<int> data_;
  checksum_file sums_;
  object_sides sides_;
  chunk_locks chunks_;
  range_locks ranges_;
  undo_journal undo_;
  mutex header_;                              // writers of the header in this process
  mutex flushing_;                            // who is told of a failure, and who must know of it
  mutex touching_;                            // who prepares regions
  std::atomic<std::uint64_t> generation_{0};  // at least this
  std::atomic<bool> sync_failed_{false};
};

}  // namespace ooc::storage
