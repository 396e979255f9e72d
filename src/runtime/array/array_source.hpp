// The blocks of an array as requests to its striped file, and the boxes that the program promised
// to overwrite.
//
// A block's promise is the box of the latest promise() call that touches it; whether the promise
// still stands is the segment's to know.  Only 64 boxes are remembered: a block whose box is
// forgotten is loaded whole, which costs time and nothing else.
//
// Threads: everything may be called by any thread.  nothing_to_load() runs in fault handlers: it
// reads an immutable snapshot of the boxes and is counted while it does, so that an old snapshot is
// freed only when nobody can be reading it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/blocks/block_source.hpp"
#include "runtime/geometry/array_geometry.hpp"
#include "storage/base/mutex.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::detail {

class access_log;

class array_source : public block_source {
 public:
  using file_ptr = std::shared_ptr<const storage::striped_file>;

  /// The state of an array at one time; immutable.
  struct state {
    array_geometry geometry;
    file_ptr file;
  };
  using state_ptr = std::shared_ptr<const state>;

  explicit array_source(const array_geometry& g);
  ~array_source() override;

  /// Before the first transfer, and at every resize: transfers that have begun keep what they know.
  /// Forgets the promises.
  void set(const array_geometry& g, file_ptr file);
  state_ptr current() const;

  /// Only elements of `part` may be sent by store_diff(): refusal() names another one.  While nothing
  /// is being stored.
  void set_part(const index_box& part) { part_ = part; }

  /// Where to note what store_diff() sends; may be null.  It must outlive the source.
  void set_log(access_log* log) { log_ = log; }

  /// Remembers a box; the caller marks its blocks in the segment afterwards.
  void promise(const index_box& box);
  void clear_promises();
  /// True if a remembered box touches block b.
  bool promised(block_index b) const noexcept;

  void load(block_index b, load_part part, std::byte* frame, completion done) override;
  std::uint64_t load_inline(block_index b, std::byte* frame) noexcept override;
  unsigned fetched_together() const noexcept override { return together_.load(std::memory_order_relaxed); }
  void load_together(std::span<const block_place> blocks, completion done) override;
  void store(block_index b, const std::byte* frame, completion done) override;
  void store_together(std::span<const stored_block> blocks, completion done) override;
  failure flush() override;
  failure refusal(block_index b, const std::byte* frame, const std::byte* twin) const override;
  void store_diff(block_index b, const std::byte* frame, const std::byte* twin, completion done) override;
  bool nothing_to_load(block_index b, load_part part) const noexcept override;
  std::size_t element_at(block_index b, std::uint64_t offset, place_name& at) const noexcept override;

 private:
  struct snapshot {
    state_ptr of;
    std::vector<index_box> boxes;  ///< oldest first

    const index_box* latest(block_index b) const noexcept;
  };
  class reader;
  /// For load_inline(): a file in which blocks lie as they do in memory.
  struct plain_file {
    std::unique_ptr<const storage::striped_file::reader> file;
    std::uint64_t block_bytes;
    std::uint64_t lead;
  };

  failure outside_part(const array_geometry& g, block_index b, const request& stray) const;
  void publish(std::unique_ptr<const snapshot> next) OOC_REQUIRES(mutex_);
  void publish_file() OOC_REQUIRES(mutex_);
  void publish_outer() OOC_REQUIRES(mutex_);

  std::optional<index_box> part_;
  access_log* log_ = nullptr;
  mutable mutex mutex_;
  state_ptr state_ OOC_GUARDED_BY(mutex_);
  /// The last one is current.
  std::vector<std::unique_ptr<const snapshot>> snapshots_ OOC_GUARDED_BY(mutex_);
  std::atomic<const snapshot*> current_{nullptr};
  mutable std::atomic<std::uint32_t> readers_{0};
  /// As the snapshots.
  std::vector<std::unique_ptr<const plain_file>> files_ OOC_GUARDED_BY(mutex_);
  std::atomic<const plain_file*> current_file_{nullptr};
  /// As the snapshots; null where there are no outer tiles.
  std::vector<state_ptr> outer_states_ OOC_GUARDED_BY(mutex_);
  std::atomic<const state*> current_outer_{nullptr};
  std::atomic<unsigned> together_{1};
};

}  // namespace ooc::detail
