// Counters.  All of them only grow; the difference of two snapshots describes what lay between.
#pragma once

#include <cstdint>

namespace ooc {

/// The traffic of one I/O node, or of all nodes of a store.
struct io_stats {
  std::uint64_t read_requests = 0;  ///< requests (messages) to the node
  std::uint64_t write_requests = 0;
  std::uint64_t read_regions = 0;  ///< contiguous regions that they named, after merging neighbours
  std::uint64_t write_regions = 0;
  std::uint64_t bytes_read = 0;  ///< bytes delivered to the caller
  std::uint64_t bytes_written = 0;
  std::uint64_t device_reads = 0;  ///< transfers to and from the file system, data only
  std::uint64_t device_writes = 0;
  std::uint64_t device_bytes_read = 0;  ///< includes what sieving and partial chunks read in vain
  std::uint64_t device_bytes_written = 0;
  std::uint64_t syncs = 0;

  io_stats& operator+=(const io_stats& o) noexcept;
  friend io_stats operator-(io_stats a, const io_stats& b) noexcept;
};

/// The work of the pager since the runtime was made.
struct runtime_stats {
  std::uint64_t hits = 0;          ///< faults served by a block already in memory (ready)
  std::uint64_t faults = 0;        ///< faults that had to wait for the store
  std::uint64_t soft_faults = 0;   ///< touches of a block that was only protected
  std::uint64_t write_faults = 0;  ///< first writes to a clean block
  std::uint64_t evictions = 0;     ///< blocks and grains that left to make room
  std::uint64_t bytes_evicted = 0;
  std::uint64_t read_ahead_blocks = 0;  ///< blocks fetched before they were touched
  std::uint64_t read_ahead_hits = 0;    ///< of these: touched later; of grains every 16th is looked at, for all
  std::uint64_t read_ahead_waste = 0;   ///< of these: dropped untouched; likewise
  std::uint64_t loads_avoided = 0;      ///< blocks not read because of overwrite()
  std::uint64_t bytes_read = 0;         ///< by the pager and by algorithms that go past it, from stores
  std::uint64_t bytes_reread = 0;       ///< of these: of blocks that had been in memory before
  std::uint64_t bytes_written = 0;
  std::uint64_t blocks_invalidated = 0;  ///< dropped by invalidate(), or for what other ranks wrote
  std::uint64_t bytes_invalidated = 0;
  std::uint64_t read_wait_ns = 0;    ///< program threads waiting for a block to arrive
  std::uint64_t write_wait_ns = 0;   ///< ... for a frame to become free, or in writeback()
  std::uint64_t budget_bytes = 0;    ///< the limit
  std::uint64_t resident_bytes = 0;  ///< frames in use now, in flight included, with the tables of grains
  std::uint64_t userfaultfd = 0;     ///< 1 where blocks are mapped by userfaultfd (see mapping_way)
  std::uint64_t kernel_access = 0;   ///< 1 where system calls may touch elements that are not pinned
};

}  // namespace ooc
