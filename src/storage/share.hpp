// One open share: its files, and the locks that order access to them.
//
//     <id>.data   the bytes, whole 4 KiB chunks
//     <id>.sum    header and checksums, see sum_file.hpp
//     <id>.undo   old images of durable chunks, see undo_journal.hpp; often not there
//
// Who may do what:
// - Reading data and sums needs no lock, but a mismatch means something only to the holder of a
//   chunk claim and the region locks of the chunk (a writer may have been in between).
// - Writing data and sums: an exclusive chunk claim, then region locks, then mark_unsynced().
// - Sync, resize, remove: a claim on all chunks, then region_locks::lock_share().
//
// Any thread may call, within these rules.  Functions return an errno, 0 for success.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "storage/chunk_locks.hpp"
#include "storage/node_folder.hpp"
#include "storage/region_locks.hpp"
#include "storage/sum_file.hpp"
#include "storage/undo_journal.hpp"

namespace ooc::storage {

class share {
 public:
  /// Opens an existing share.  Where the machine lost its power since the last write, the undo log
  /// is applied first.  EUCLEAN: the header is damaged or of another file.
  static int open(const node_folder& folder, file_id id, bool direct_io,
                  std::shared_ptr<share>& out);

  int data() const noexcept { return data_.load(std::memory_order_acquire); }
  /// True while data() bypasses the page cache: memory must then be aligned to 4096 bytes.
  bool direct() const noexcept { return data() == direct_.get() && direct_; }
  /// For file systems that accept O_DIRECT at open and refuse the transfer.
  int give_up_direct();

  const sum_file& sums() const noexcept { return sums_; }
  chunk_locks& chunks() noexcept { return chunks_; }
  region_locks& regions() noexcept { return regions_; }
  undo_journal& undo() noexcept { return undo_; }

  /// Records durably, before the first data go out, that there are unsynced writes.  `h` is then
  /// the header as it stands for the whole operation.
  int mark_unsynced(sum_header& h);

  /// Makes data and sums durable; any lock.  The long part of a sync.
  int flush();
  /// The end of a sync, with the whole share locked: everything is durable and said to be so.
  int settle_as_durable();
  /// True when nothing was written since the last sync.
  bool clean() const;
  /// A failed flush is final: what it was for may be lost, whatever a later one says.
  bool sync_failed() const noexcept { return sync_failed_.load(); }

 private:
  share(const node_folder& folder, file_id id, file_descriptor direct, file_descriptor buffered,
        sum_file sums);
  int recover_from_power_loss();
  int read_header(sum_header& h) const;

  const std::filesystem::path data_path_;
  file_descriptor direct_;  // one of the two is open, or both after give_up_direct()
  file_descriptor buffered_;
  std::atomic<int> data_;
  sum_file sums_;
  chunk_locks chunks_;
  region_locks regions_;
  undo_journal undo_;
  std::mutex header_;  // writers of the header in this process
  std::atomic<bool> sync_failed_{false};
};

}  // namespace ooc::storage
