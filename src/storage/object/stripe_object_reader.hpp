// Reading regions of a stripe object, every delivered chunk checked.
//
// Whole chunks whose memory is aligned go straight to the caller; everything else comes through the
// bounce buffer and is copied.  Chunks that are near each other on disk are read as one extent, the
// gap into the sink.  Checksums are read after the data: see stripe object.hpp for what a mismatch means.
#pragma once

#include <span>
#include <vector>

#include "storage/object/io_worker.hpp"
#include "storage/object/sides.hpp"
#include "storage/service/served_node.hpp"

namespace ooc::storage {

/// A chunk whose bytes match none of its checksums.
struct bad_chunk {
  std::uint64_t chunk = 0;
  verdict found = verdict::good;
};

/// Theirs, sorted.
std::vector<chunk_range> chunks_of(std::vector<bad_chunk>& bad);

class stripe_object_reader {
 public:
  /// `chunks`, if known: how many the stripe object has, as its header says to the holder of the locks.  Those that
  /// were cut off since the request was made are then no losses but read as the fill pattern.  `places`: where the
  /// chunks are that it will be asked for.
  stripe_object_reader(io_worker& w, stripe_object& s, const file_shape& f, std::uint32_t stripe_index,
                       const chunk_places& places, std::uint64_t chunks = all_chunks.end)
      : w_(w), s_(s), f_(f), stripe_index_(stripe_index), places_(places), chunks_(chunks) {}

  /// Reads `regions` (by node offset) to memory + memory_offset.  Chunks that fail their check are
  /// appended to `bad`; the bytes of regions in them are undefined.  `bounce_all`: deliver nothing
  /// that has not been checked in memory of our own.  `sums`, if given, receives the checksum of
  /// each chunk that a region covers whole, in order.
  object_error read(std::span<const region> regions, std::byte* memory, bool bounce_all, std::vector<bad_chunk>& bad,
                    std::uint32_t* sums = nullptr, checking who = checking::here);

  /// Reads chunks [first, first + count) only to check them (count <= bounce_chunks()); adds the
  /// number of those that were ever written to `written`.
  object_error check(std::uint64_t first, std::uint32_t count, std::uint64_t& written, std::vector<bad_chunk>& bad);

 private:
  struct copy {
    const std::byte* from;
    std::byte* to;
    std::size_t bytes;
  };

  void plan_slot(const chunk_slot& slot);
  void plan_transfers();
  object_error flush(std::vector<bad_chunk>& bad);
  void judge_slots(std::vector<bad_chunk>& bad);

  io_worker& w_;
  stripe_object& s_;
  const file_shape& f_;
  const std::uint32_t stripe_index_;
  const chunk_places& places_;
  const std::uint64_t chunks_;
  std::size_t bounced_ = 0;    // chunks of the bounce buffer in use
  std::uint64_t planned_ = 0;  // chunks in the batch
  std::vector<copy> copies_;
  checking who_ = checking::here;
};

}  // namespace ooc::storage
