// The belongings of one I/O thread: a transfer engine, a bounce buffer and scratch memory that is used again from
// request to request.  They belong to that thread alone; the counters are the node's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "storage/layout/regions.hpp"
#include "storage/object/sides.hpp"
#include "storage/object/stripe_object.hpp"
#include "storage/object/transfer.hpp"
#include "storage/service/node_counters.hpp"

namespace ooc::storage {

/// Why a transfer did not succeed, and where.
struct object_error {
  int error = 0;                  ///< an errno; 0: none
  verdict found = verdict::good;  ///< unreadable: the chunk at `offset` cannot be trusted
  std::uint64_t offset = 0;       ///< byte of the stripe object
  const char* step = "";          ///< what was being done

  explicit operator bool() const noexcept { return error != 0 || unreadable(found); }
};

/// A chunk, or a run of chunks, and the memory that its bytes come to or from.
struct chunk_slot {
  std::uint64_t place = 0;    ///< of the first in the data file, in chunks (sides.hpp)
  std::uint32_t count = 0;    ///< number of chunks; 1 in the bounce buffer
  std::uint32_t covered = 0;  ///< bounce buffer, writing: bytes that the request supplies
  std::byte* at = nullptr;
  bool bounced = false;
  std::uint32_t* sums = nullptr;  ///< of `count` chunks: to be delivered (read), or as given (write)
  std::uint64_t base = 0;         ///< writing: the place of what a write of a part leaves as it is
};

/// True where direct transfers reach the memory.
inline bool aligned(const std::byte* p) noexcept { return reinterpret_cast<std::uintptr_t>(p) % chunk_size == 0; }

class io_worker {
 public:
  /// Chunks of a batch, 64 MiB of them: bounds the checksum entries held at a time.
  static constexpr std::uint64_t batch_chunks = 16384;

  /// `staging`: bytes of bounce buffer, a multiple of 64 KiB.
  io_worker(std::uint64_t staging, bool io_uring, node_counters& counters);

  /// Runs `plan` on the data of `s` and counts it.  Where the file system refuses direct transfers,
  /// the stripe object goes over to buffered ones and the rest is repeated.
  void run(stripe_object& s, direction d);
  /// The first extent of `plan` with an error.
  object_error first_error(const char* step, const chunk_places& places) const noexcept;
  /// By their places, whatever the order of the chunks.
  void sort_slots();
  /// Appends the checksum entries of the slots' chunks to `sums`, in the order of the slots.  Sets
  /// `untouched` where some are in a region that was never written to.
  int load_sums(const stripe_object& s, bool& untouched);

  /// Bounce buffer: memory for chunks, a spare chunk, and a place for bytes that nobody wants.
  std::byte* bounce_chunk(std::size_t i) const noexcept { return buffer_.get() + sink_bytes + (i + 1) * chunk_size; }
  std::size_t bounce_chunks() const noexcept { return bounce_chunks_; }
  std::byte* spare() const noexcept { return buffer_.get() + sink_bytes; }
  std::byte* sink() const noexcept { return buffer_.get(); }
  /// Gaps up to this size between wanted chunks are read and dropped: one longer transfer is
  /// cheaper than two (docs/decisions/0005-sieving.md).
  static constexpr std::uint64_t sink_bytes = max_sieved_gap;

  // Scratch for the batch in progress.
  transfer_list plan;
  std::vector<chunk_slot> slots;
  std::vector<checksum_entry> sums;

  void forget_batch() noexcept {
    plan.clear();
    slots.clear();
  }

  node_counters& counters;

 private:
  struct unmap {
    void operator()(std::byte* p) const noexcept { ::operator delete (p, std::align_val_t{4096}); }
  };

  std::unique_ptr<transfer_engine> engine_;
  std::unique_ptr<transfer_engine> copier_;  ///< for writes to the page cache
  std::unique_ptr<std::byte, unmap> buffer_;
  std::size_t bounce_chunks_;
  std::vector<checksum_entry> row_;
};

}  // namespace ooc::storage
