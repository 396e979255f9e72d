// The two sides of a chunk, in a stripe object whose file has commits.
//
// Such a stripe object has two places for each chunk, its *sides*.  One holds the chunk as of the last commit, and
// is not written to before the next one; what is written since goes to the other.  So a commit copies nothing, and
// who goes back to it copies nothing either: both only say which side counts.  A region of 4 MiB has its first
// sides together, then its second ones, so that what is written in order lies in order.  Everything below the
// choice of the side knows *places* only: a place is a chunk of the data file, with a checksum entry of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/object/chunk_locks.hpp"
#include "storage/object/side_file.hpp"

namespace ooc::storage {

class stripe_object;

/// Where side `side` (0 or 1) of a chunk is.
constexpr std::uint64_t place_of(std::uint64_t chunk, unsigned side) noexcept {
  constexpr std::uint64_t n = checksum_file::region_chunks;
  return (chunk / n * 2 + side) * n + chunk % n;
}
/// The chunk that has a side there.
constexpr std::uint64_t chunk_at(std::uint64_t place) noexcept {
  constexpr std::uint64_t n = checksum_file::region_chunks;
  return place / (2 * n) * n + place % n;
}
/// Places that a stripe object has for so many chunks.  Those of the last region's first sides are all there.
constexpr std::uint64_t places_for(std::uint64_t chunks) noexcept {
  return chunks == 0 ? 0 : place_of(chunks - 1, 1) + 1;
}

/// Where the chunks of one operation are.  Of a stripe object without commits each is at its own number, and nothing
/// is looked up.  Belongs to the operation; functions return an errno, 0 for success.
class chunk_places {
 public:
  /// The state that a reader sees: the bytes that were written last, or the commit of that number.
  static constexpr std::uint64_t newest = ~std::uint64_t{0};

  /// For reading these chunks (sorted).  EBADMSG where the file of sides is damaged, or, without the locks of the
  /// chunks, where somebody is writing it.
  int find(stripe_object& s, std::span<const chunk_range> chunks, std::uint64_t commit = newest);
  /// For writing them as what comes after `commit`, with their locks held: none of them at the side that counts in it.
  int choose(stripe_object& s, std::span<const chunk_range> chunks, std::uint64_t commit);
  /// They have been written there: from now on this is where they are read.
  int settle(stripe_object& s) const;

  /// Each at its own number.
  bool are_chunks() const noexcept { return regions_.empty(); }
  std::uint64_t of(std::uint64_t chunk) const noexcept {
    return are_chunks() ? chunk : place_of(chunk, side_of(here(chunk).sides, chunk));
  }
  /// Where the chunk is read until settle(): the bytes that a write of a part of it leaves as they are.
  std::uint64_t base(std::uint64_t chunk) const noexcept {
    return are_chunks() ? chunk : place_of(chunk, side_of(here(chunk).bases, chunk));
  }
  /// How many chunks from this one on, at most `most`, are one after another there.
  std::uint64_t run(std::uint64_t chunk, std::uint64_t most) const noexcept;
  /// The chunk at a place.
  std::uint64_t chunk(std::uint64_t place) const noexcept { return are_chunks() ? place : chunk_at(place); }

 private:
  struct looked_up {
    std::uint64_t region = 0;
    side_bits sides{}, bases{};
  };

  const looked_up& here(std::uint64_t chunk) const noexcept;

  std::vector<looked_up> regions_;
  std::vector<chunk_range> written_;  ///< choose()
};

}  // namespace ooc::storage
