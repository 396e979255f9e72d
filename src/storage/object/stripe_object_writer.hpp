// Writing regions to a stripe object, in batches, by the protocol of checksum_file.hpp.
//
// Whole chunks whose memory is aligned go straight from the caller; everything else is put together
// in the bounce buffer.  A chunk that the request covers only in part is first read and checked, or
// filled with the pattern if it was never written or has been cut off meanwhile, so its other bytes are written again
// as they were.
//
// A chunk that was last written before the commit (sides.hpp) goes to its other side: what is there counts no more,
// and what a write of a part leaves as it is comes from where the chunk is read until then.  Nothing that such a
// write may damage has been promised to survive a loss of power, so it needs no undo log.
//
// The caller holds the exclusive claim and the region locks of all chunks, and has marked the stripe object
// unsynced.  After a failure every chunk outside the failed extents reads as before or after;
// inside them each is looked at and its entry settled to what is there.
#pragma once

#include <span>
#include <vector>

#include "storage/object/io_worker.hpp"

namespace ooc::storage {

class stripe_object_writer {
 public:
  /// `h`: the stripe object's header as mark_unsynced() returned it.  `places`: where the chunks are to be that it
  /// will be asked to write; the caller settles them.
  stripe_object_writer(io_worker& w, stripe_object& s, const file_shape& f, std::uint32_t stripe_index,
                       const chunk_places& places, const checksum_header& h)
      : w_(w), s_(s), f_(f), stripe_index_(stripe_index), places_(places), header_(h) {}

  /// `regions` by node offset, not overlapping.  `sums`, if given: the checksums of the chunks that a
  /// region covers whole, in order.
  object_error write(std::span<const region> regions, const std::byte* memory, const std::uint32_t* sums = nullptr);

  /// Makes the bytes of one chunk from `from` on read as never written; for shrinking.  The last that this writes.
  object_error erase_tail(std::uint64_t chunk, std::uint64_t from);

 private:
  struct patch {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };

  void plan_slot(std::uint64_t chunk, chunk_slot slot);
  std::uint64_t offset_of(std::uint64_t place) const noexcept { return places_.chunk(place) * chunk_size; }
  object_error flush();
  int touch_regions();
  void forget_cut_off();
  object_error resolve();
  /// The request has all bytes that the stripe object has in its last chunk.
  bool covers_end(const chunk_slot& slot) const noexcept;
  object_error load_bases();
  object_error log_bases();
  int read_bases(std::vector<checksum_entry>& bases);
  int put_sums();
  void settle_failed();
  int settle(std::uint64_t place, checksum_entry& e, std::uint32_t intended);
  template <class F>
  void each_chunk(F&& f);
  template <class F>
  void each_partial(F&& f);

  io_worker& w_;
  stripe_object& s_;
  const file_shape& f_;
  const std::uint32_t stripe_index_;
  const chunk_places& places_;
  const checksum_header& header_;
  std::size_t bounced_ = 0;
  std::uint64_t planned_ = 0;
  std::vector<patch> patches_;
  bool past_end_ = false;  // what is written lies behind the bytes that the stripe object has: erase_tail()
};

}  // namespace ooc::storage
