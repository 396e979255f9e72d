// The undo log of a stripe object: `.undo`.
//
// A write of part of a chunk rewrites the whole chunk in place.  Where the chunk was durable (the
// stripe object has been synced since), a loss of power in the middle must not take the durable bytes
// beside those written with it.  So the first such write to a chunk after a sync first puts the
// chunk as it was into this log, durably; one fdatasync serves all chunks of a batch.  A completed
// sync makes the log's records stale (they carry the number of syncs before them) and empties it.
//
// When a stripe object is opened after a loss of power, the valid records are written back, for each chunk
// the oldest: its bytes are those of the last sync or a later complete write.
//
// Any thread may call log(); callers hold the locks of the chunks they log.  replay() and forget()
// need the whole stripe object, exclusively.  Functions return an errno, 0 for success.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <unordered_set>

#include "storage/base/file_descriptor.hpp"
#include "storage/base/mutex.hpp"
#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

/// One record, at a multiple of its size in the file.  A record with a wrong CRC is not there.
struct undo_record {
  std::uint32_t magic = expected_magic;
  std::uint32_t crc = 0;    ///< CRC32C of the record with this field zero, XOR the stripe object's seed
  std::uint64_t chunk = 0;  ///< number in the stripe object
  std::uint64_t syncs = 0;  ///< checksum_header::syncs when it was logged
  std::uint32_t sum = 0;    ///< the chunk's checksum entry; 0: it had never been written
  std::uint32_t reserved = 0;
  std::byte image[chunk_size] = {};  ///< the chunk's bytes; zeros if it had never been written

  static constexpr std::uint32_t expected_magic = 0x55434f4f;  // "OOCU"
};
static_assert(sizeof(undo_record) == 32 + chunk_size);

/// A chunk as it was.
struct undo_image {
  std::uint64_t chunk = 0;
  std::uint32_t sum = 0;
  const std::byte* bytes = nullptr;  ///< not needed where sum is 0
};

class undo_journal {
 public:
  /// `seed`: of the stripe object, so that the log of another stripe object is none of this one.  `like`: an open
  /// file whose owner, group and mode the log gets where it is made; it holds the same bytes.
  undo_journal(std::filesystem::path path, std::uint32_t seed, int like = -1)
      : path_(std::move(path)), seed_(seed), like_(like) {}

  /// Makes those of `images` durable that were not logged since sync number `syncs`.
  int log(std::uint64_t syncs, std::span<const undo_image> images);
  /// Calls `restore` for the oldest valid record of each chunk.
  int replay(std::uint64_t syncs, const std::function<int(const undo_record&)>& restore);
  /// Whether replay() has anything to restore; needs no more than to read the log.
  int waits(std::uint64_t syncs, bool& yes) const;
  /// Empties the log; its records are stale already.
  void forget();

 private:
  int open(bool create) OOC_REQUIRES(mutex_);
  int scan(int fd, std::uint64_t syncs, const std::function<int(const undo_record&)>& found) const;

  const std::filesystem::path path_;
  const std::uint32_t seed_;
  const int like_;
  mutex mutex_;
  file_descriptor fd_ OOC_GUARDED_BY(mutex_);
  /// The value of `syncs` that logged_ belongs to.
  std::uint64_t logged_for_ OOC_GUARDED_BY(mutex_) = 0;
  /// Chunks logged by this process.
  std::unordered_set<std::uint64_t> logged_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
