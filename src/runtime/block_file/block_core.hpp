// The object behind a block_file and its guards: an open file, its superblocks as a segment.
//
// Shared by the block_file and every guard; the last of them closes the file.  Thread-safe except
// close().
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "oocarray/block_file.hpp"
#include "runtime/array/file_claims.hpp"
#include "runtime/block_file/superblock_source.hpp"
#include "runtime/pager/segment.hpp"
#include "storage/base/mutex.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::detail {

class block_core : public std::enable_shared_from_this<block_core> {
 public:
  enum class how { create, open, open_read_only };

  block_core(runtime& rt, const store& s, std::string_view path, const blocking& b, const block_file_options& options,
             how h);
  ~block_core();

  void read_block(const block_coordinates& at, std::span<std::byte> to);
  void write_block(const block_coordinates& at, std::span<const std::byte> from);
  block_guard pin(const block_coordinates& at, access_mode mode);
  block_guard overwrite(const block_coordinates& at);
  /// The end of a guard.
  void release(std::uint64_t superblock, access_mode mode) noexcept;
  void prefetch(const block_coordinates& at);

  void writeback(durability d);
  void invalidate(bool discard);
  void close();

  bool closed() const noexcept { return !segment_ || segment_->closed(); }
  const std::string& path() const noexcept { return path_; }
  const blocking& shape() const noexcept { return source_.shape(); }
  ooc::striping striping() const noexcept { return opened_.meta.striping; }
  std::uint64_t dirty_superblocks() const;

 private:
  /// Where a block lies: its superblock, and its bytes within the superblock's memory.
  struct place {
    std::uint64_t superblock = 0;
    std::uint64_t offset = 0;  ///< of the block's first record in the superblock's memory, bytes
    record_box outer;          ///< records of the superblock
    request in_memory;         ///< "file": the superblock's memory; "memory": the packed block
  };
  place find(const block_coordinates& at) const;
  void write_back_or_report() noexcept;
  void end_with_runtime() noexcept;
  void check_open() const;
  void check_writable() const;
  void pin_for(const place& p, access_mode mode, const block_coordinates& at);
  /// Pins for writing a block all of whose bytes the caller will overwrite, without reading the
  /// superblock if the block is the whole of it.
  void pin_for_overwrite(const place& p, const block_coordinates& at);
  /// Wraps a pin that has been made.
  block_guard guard(const place& p, access_mode mode);
  void unpin(std::uint64_t superblock, access_mode mode) noexcept;
  std::byte* memory(std::uint64_t superblock) const noexcept;

  /// The pin that a read_block() or write_block() holds while it copies.  Where the budget cannot
  /// hold one more, it waits for those of other threads, and fails only if there are none.
  template <class Pin>
  void pin_briefly(Pin&& pin);
  void unpin_briefly(std::uint64_t superblock, access_mode mode) noexcept;

  std::string path_;
  bool writable_;
  std::shared_ptr<storage::store_core> store_;
  storage::opened_file opened_;
  superblock_source source_;
  file_claim claim_;
  std::optional<segment> segment_;
  std::atomic<std::uint64_t> guards_{0};
  /// A promise is taken back if its pin fails, and no other pin may use it up: promise and pin are
  /// one step (exclusive); ordinary pins share.
  shared_mutex promise_mutex_;
  /// The last pin was for overwriting a superblock: reading ahead of such a sweep would be in vain.
  std::atomic<bool> overwriting_{false};

  mutex brief_mutex_;
  condition_variable brief_end_;
  std::uint64_t brief_pins_ OOC_GUARDED_BY(brief_mutex_) = 0;  ///< held or being tried
  std::uint64_t brief_ends_ OOC_GUARDED_BY(brief_mutex_) = 0;
};

}  // namespace ooc::detail
