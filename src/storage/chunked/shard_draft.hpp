// Chunks that have been written and are in no shard yet: in a file without a name, which goes with the process.
//
// Who uses it holds its mutex.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "oocarray/file_chunks.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::storage {

/// Which file it is, and whether somebody has written to it.
struct file_version {
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const file_version&) const = default;
};
/// Of an open file; `code`: why not.
file_version state_of(int fd, std::error_code& code);

/// Where a shard has its index.
struct index_place {
  bool first = false;  ///< at the beginning, and not at the end
  bool summed = true;
};

class shard_draft {
 public:
  explicit shard_draft(std::size_t chunks) : chunks_(chunks) {}

  mutex lock;

  /// Makes the file, in a folder that is made where it is missing.
  std::error_code open(const std::string& folder) OOC_REQUIRES(lock);
  int fd() const OOC_REQUIRES(lock) { return file_.get(); }
  /// Of no bytes: it is not here.
  const file_chunk& at(std::size_t in_shard) const OOC_REQUIRES(lock) { return chunks_[in_shard]; }
  std::error_code put(std::size_t in_shard, std::span<const std::byte> packed) OOC_REQUIRES(lock);
  std::size_t count() const OOC_REQUIRES(lock) { return count_; }
  /// What was written here and has been replaced since.
  std::uint64_t wasted() const OOC_REQUIRES(lock) { return wasted_; }

  /// Writes a shard to `to` that has what is here, and of `others`, in the file `other`, the chunks that are not.
  /// `shard`: where all lie then.
  std::error_code write_shard(int to, int other, const std::vector<file_chunk>& others, const index_place& i,
                              std::vector<file_chunk>& shard) const OOC_REQUIRES(lock);

  bool published OOC_GUARDED_BY(lock) = false;  ///< what is written from now on goes into another draft

 private:
  file_descriptor file_;
  std::vector<file_chunk> chunks_;
  std::size_t count_ = 0;
  std::uint64_t end_ = 0, wasted_ = 0;
};

}  // namespace ooc::storage
