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
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "storage/chunk_locks.hpp"
#include "storage/node_folder.hpp"
#include "storage/region_locks.hpp"
#include "storage/sum_file.hpp"
#include "storage/undo_journal.hpp"

namespace ooc::storage {

class share {
 public:
  /// Opens an existing share.  Where the machine lost its power since the last write, the undo log
  /// is applied first.  EUCLEAN: the header is damaged, of another version or of another share; `why`
  /// says it.
  static int open(const node_folder& folder, const share_identity& who, bool direct_io,
                  std::shared_ptr<share>& out, std::string& why);

  const share_identity& identity() const noexcept { return identity_; }

  /// Whether the share is as new as the metadata say: 0, or EUCLEAN for a copy of an earlier time.
  int check_generation(std::uint64_t expected, std::uint64_t& found);
  /// Sets the generation, durably; the whole share is locked.
  int set_generation(std::uint64_t generation);

  int data() const noexcept { return data_.load(std::memory_order_acquire); }
  /// True while data() bypasses the page cache: memory must then be aligned to 4096 bytes.
  bool direct() const noexcept { return data() == direct_.get() && direct_; }
  /// For file systems that accept O_DIRECT at open and refuse the transfer.
  int give_up_direct();

  const sum_file& sums() const noexcept { return sums_; }
  chunk_locks& chunks() noexcept { return chunks_; }
  region_locks& regions() noexcept { return regions_; }
  undo_journal& undo() noexcept { return undo_; }

  /// sum_file::touch for the holder of the chunks' locks; `h` as from mark_unsynced().
  int touch(std::uint64_t first, std::uint64_t count, const sum_header& h);
  int read_header(sum_header& h) const;

  /// Records durably, before the first data go out, that there are unsynced writes.  `h` is then
  /// the header as it stands for the whole operation.
  int mark_unsynced(sum_header& h);

  /// Makes data and sums durable; any lock.  The long part of a sync.
  int flush();
  /// The end of a sync, with the whole share locked: everything is durable and said to be so.
  /// `chunks`: what the share has from now on, if that has changed.
  int settle_as_durable(std::optional<std::uint64_t> chunks = std::nullopt);
  /// Says durably that the share has fewer chunks, before they go; the whole share is locked.
  int shrink_to(std::uint64_t chunks);
  /// True when nothing was written since the last sync.
  bool clean() const;
  /// A failed flush is final: what it was for may be lost, whatever a later one says.
  bool sync_failed() const noexcept { return sync_failed_.load(); }

 private:
  share(const node_folder& folder, const share_identity& who, file_descriptor direct,
        file_descriptor buffered, sum_file sums);
  int recover_from_power_loss();
  int change_header(const std::function<void(sum_header&)>& change);

  const share_identity identity_;
  const std::filesystem::path data_path_;
  file_descriptor direct_;  // one of the two is open, or both after give_up_direct()
  file_descriptor buffered_;
  std::atomic<int> data_;
  sum_file sums_;
  chunk_locks chunks_;
  region_locks regions_;
  undo_journal undo_;
  std::mutex header_;    // writers of the header in this process
  std::mutex touching_;  // who prepares regions
  std::atomic<std::uint64_t> generation_{0};  // at least this
  std::atomic<bool> sync_failed_{false};
};

}  // namespace ooc::storage
