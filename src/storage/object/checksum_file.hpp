// The `.sum` file beside a stripe object's data: a header, marks, and two checksums for each 4 KiB chunk.
//
// An entry {current, next} is a write-intent record.  A chunk is written in three steps:
//
//     (a) entry := {old, new}      (b) data := new      (c) entry := {new, new}
//
// so at every moment the data match one of the two, or the overwrite of that chunk was cut short.
// In memory the values are the plain ones: the CRC32C of the chunk (1 for a true 0), or 0, "never
// written".  On disk each is XORed with the seed of its place (object_identity.hpp), which is never
// 0: zeros on disk are no entry.  judge() is the whole rule.
//
// So that a stripe object of any size is made at once, entries are written only when a write first comes to
// their region (4 MiB of data, 1024 entries).  A mark for each region says whether that has been;
// marks are checked as well, so that zeros are no mark.  Where the mark says "untouched", entries of
// zeros stand for "never written"; else they are *lost*.
//
// docs/disk-format.md describes the bytes.  All numbers are little-endian.  The class is a file
// descriptor with typed access: no state, no locks; who may touch an entry is decided by the locks
// of `stripe_object`.  Functions return an errno, 0 for success.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/base/file_descriptor.hpp"
#include "storage/layout/claim_fence.hpp"
#include "storage/layout/crc32c.hpp"
#include "storage/object/object_identity.hpp"

namespace ooc::storage {

static_assert(std::endian::native == std::endian::little, "the disk format is written as it lies in memory");

struct checksum_entry {
  std::uint32_t current = 0;  ///< CRC32C of the chunk as it was last completed, 0: never written
  std::uint32_t next = 0;     ///< CRC32C of the overwrite in progress; equal to `current` if none

  bool operator==(const checksum_entry&) const = default;
  bool settled() const noexcept { return current == next; }
};
static_assert(sizeof(checksum_entry) == 8);

using boot_id = std::array<std::uint8_t, 16>;

struct checksum_header {
  static constexpr std::uint32_t power_lost = 1;   ///< flag: a boot with unsynced writes has ended
  static constexpr std::uint32_t synced_once = 2;  ///< flag: there are durable data to protect
  /// flag: that there are unsynced writes is said durably, or the whole header is no more durable than they are
  static constexpr std::uint32_t unsynced_known = 4;
  /// flag: a boot with unsynced writes has ended, so nobody reads what came after the commit before roll_back()
  static constexpr std::uint32_t roll_back_due = 8;
  static constexpr std::uint32_t size_unsynced = 1;  ///< required: see synced_chunks
  static constexpr std::uint32_t two_sides = 2;      ///< required: see sides.hpp

  std::array<char, 8> magic = {'O', 'O', 'C', 'S', 'U', 'M', '2', '\0'};
  std::uint32_t version = 2;
  std::uint32_t chunk_bytes = 4096;
  std::uint64_t id = 0;     ///< the file's id
  boot_id unsynced{};       ///< the boot during which unsynced writes were made; zeros: none
  std::uint64_t syncs = 0;  ///< completed syncs; makes records of the undo log stale
  std::uint32_t flags = 0;
  std::uint32_t crc = 0;  ///< CRC32C of the 512 bytes with this field zero
  store_id store{};       ///< the UUID of the store
  std::uint32_t stripe_index = 0;
  std::uint32_t sn = 0;
  std::uint32_t nn = 0;
  std::uint32_t required = 0;    ///< features that a reader must know
  std::uint64_t sf = 0;          ///< bytes in a stripe
  std::uint64_t chunks = 0;      ///< of the stripe object; with two_sides, places
  std::uint64_t generation = 0;  ///< of the last opening for writing; see store_core
  std::uint32_t fill_bytes = 0;
  std::uint32_t fill_sum = 0;
  std::array<char, 16> codec{};  ///< reserved: how chunks are packed; zeros: as they are
  std::uint32_t copies = 0;      ///< reserved: further copies of the stripe object
  std::uint32_t copy = 0;        ///< reserved: which of them this is
  /// With size_unsynced: the stripe object was made, or its size changed, since the last sync, and at every moment
  /// since then it had at least so many chunks.  A loss of power may have taken the others.
  std::uint64_t synced_chunks = 0;
  claim_fence claims;  ///< writers whose claims have ended are refused
  /// A client that states fewer does not know that the file has been cut off; see file_shape::cuts.  0: it was not.
  std::uint64_t cuts = 0;
  /// With two_sides: what is written now comes after this commit, so earlier ones can be read no longer.
  std::uint64_t commit = 0;
  /// Writes of who looked the file up before this generation are refused: it was about to be moved elsewhere then.
  std::uint64_t writes_since = 0;
  std::array<std::uint8_t, 320> reserved{};  ///< zeros

  /// Whether data may go out: a loss of power finds out that they were unsynced.
  bool says_unsynced(const boot_id& boot) const noexcept { return unsynced == boot && (flags & unsynced_known) != 0; }
  /// All of it survives a loss of power, from its first sync on.
  bool is_durable() const noexcept { return unsynced == boot_id{} && (flags & synced_once) != 0; }
  object_identity identity() const noexcept { return {store, id, stripe_index, sn, nn, sf, fill_bytes, fill_sum}; }
  void set_identity(const object_identity& s) noexcept {
    store = s.store;
    id = s.id;
    stripe_index = s.stripe_index;
    sn = s.sn;
    nn = s.nn;
    sf = s.sf;
    fill_bytes = s.fill_bytes;
    fill_sum = s.fill_sum;
  }
};
// One sector: no torn headers.
static_assert(sizeof(checksum_header) == 512 && offsetof(checksum_header, unsynced) == 24 &&
              offsetof(checksum_header, syncs) == 40 && offsetof(checksum_header, crc) == 52 &&
              offsetof(checksum_header, store) == 56 && offsetof(checksum_header, stripe_index) == 72 &&
              offsetof(checksum_header, required) == 84 && offsetof(checksum_header, sf) == 88 &&
              offsetof(checksum_header, generation) == 104 && offsetof(checksum_header, codec) == 120 &&
              offsetof(checksum_header, synced_chunks) == 144 && offsetof(checksum_header, claims) == 152 &&
              offsetof(checksum_header, cuts) == 168 && offsetof(checksum_header, commit) == 176 &&
              offsetof(checksum_header, writes_since) == 184 && offsetof(checksum_header, reserved) == 192);

/// The boot that this machine is in; all ones where the kernel does not say.
const boot_id& this_boot();

enum class verdict {
  good,     ///< the data are an acknowledged or at least a complete write
  fill,     ///< never written, or a first write cut short: reads as the fill pattern
  torn,     ///< an overwrite cut short: neither the old nor the new bytes
  corrupt,  ///< the data changed after they were written
  lost,     ///< the entry itself is gone: whether and what was written, nobody can say
};

/// Whether a read of such a chunk is an error.
constexpr bool unreadable(verdict v) noexcept {
  return v == verdict::torn || v == verdict::corrupt || v == verdict::lost;
}

/// The verdict on a chunk with checksum `sum`, under `e`.  `seed`: the chunk's, that is, the value as which an entry
/// of zeros on disk is read.
constexpr verdict judge(checksum_entry e, std::uint32_t sum, std::uint32_t seed = 0) noexcept {
  if (e.current == 0 && e.next == 0) return verdict::fill;
  if (sum == e.current || sum == e.next) return verdict::good;
  // The first write of a chunk was never acknowledged and nothing was there before: whatever lies
  // on disk (zeros of a reservation, half of the new bytes) has no meaning.
  if (e.current == 0) return verdict::fill;
  if (e.current != e.next) return verdict::torn;
  return e.current == seed ? verdict::lost : verdict::corrupt;
}

class checksum_file {
 public:
  static constexpr std::uint64_t region_chunks = 1024;  ///< 4 MiB of data share a mark

  checksum_file(file_descriptor fd, const object_seeds& seeds) noexcept : fd_(std::move(fd)), seeds_(seeds) {}

  int fd() const noexcept { return fd_.get(); }
  const object_seeds& seeds() const noexcept { return seeds_; }

  /// Where the entry of a chunk lies, and the mark of a region.
  static std::uint64_t entry_offset(std::uint64_t chunk) noexcept;
  static std::uint64_t mark_offset(std::uint64_t region) noexcept;
  /// The length of the file for so many chunks.
  static std::uint64_t bytes_for(std::uint64_t chunks) noexcept {
    return chunks == 0 ? first_entry : entry_offset(chunks - 1) + sizeof(checksum_entry);
  }
  static std::uint64_t regions_for(std::uint64_t chunks) noexcept {
    return chunks / region_chunks + (chunks % region_chunks != 0);
  }
  /// The entry on disk for a plain entry, and the other way round.
  checksum_entry seeded(std::uint64_t chunk, checksum_entry e) const noexcept {
    const std::uint32_t s = seeds_.of_chunk(chunk);
    return {e.current ^ s, e.next ^ s};
  }

  /// Plain entries of consecutive chunks.  Those whose region was never touched are {0, 0} and set
  /// `untouched`, if given; others of zeros are lost: {seed, seed}.
  int read(std::uint64_t chunk, std::span<checksum_entry> out, bool* untouched = nullptr) const noexcept;
  /// Regions must have been touched.
  int write(std::uint64_t chunk, std::span<const checksum_entry> entries) const;

  /// Prepares the regions of these chunks (of a stripe object with `chunks`) for being written to: where
  /// the mark says "untouched", entries of zeros become "never written", then the mark "touched
  /// after `syncs`".  The caller holds the locks of those regions and keeps out other threads that
  /// do the same.
  int touch(std::uint64_t first, std::uint64_t count, std::uint64_t syncs, std::uint64_t chunks) const;
  /// Whether anything was ever written to a region; a damaged mark does not say no.
  int is_touched(std::uint64_t region, bool& touched) const noexcept;
  /// Marks these regions as untouched; their entries must be zeros.
  int mark_untouched(std::uint64_t first_region, std::uint64_t end_region) const;
  /// Marks a region whose entries are written.
  int mark_touched(std::uint64_t region, std::uint64_t syncs) const noexcept;
  /// Makes entries [first, end) "never written"; the rest of a region that is in use, when it grows.
  int clear(std::uint64_t first, std::uint64_t end) const;
  /// After a loss of power: in regions first touched after `syncs` nothing was durable, so entries
  /// of zeros there become "never written".
  int mend_touched_after(std::uint64_t syncs, std::uint64_t chunks) const;
  /// After a loss of power: chunks [first, chunks) came after `syncs`, and nothing of them was durable.  Entries of
  /// zeros become "never written", and damaged marks of their regions "touched after `syncs`".
  int mend_new(std::uint64_t first, std::uint64_t chunks, std::uint64_t syncs) const;

  /// False where the header never came to the disk: zeros, or nothing at all.
  bool has_header() const noexcept;
  /// EINVAL: not a header (magic, version or CRC).
  int read_header(checksum_header& h) const noexcept;
  int write_header(checksum_header h) const noexcept;
  int make_durable() const noexcept;

 private:
  struct mark {
    std::uint32_t value = 0;  ///< 0: untouched; else the syncs before the first touch, and bit 31
    std::uint32_t check = 0;
  };

  static constexpr std::uint64_t first_entry = 4096;

  /// Entries [chunk, ...) that lie together on disk, of at most `count`.
  static std::uint64_t together(std::uint64_t chunk, std::uint64_t count) noexcept;
  bool intact(std::uint64_t region, const mark& m) const noexcept { return m.check == seeds_.of_mark(region, m.value); }
  int read_mark(std::uint64_t region, mark& m) const noexcept;
  int write_mark(std::uint64_t region, std::uint32_t value) const noexcept;
  int replace_zeros(std::uint64_t region, std::uint64_t chunks, std::uint64_t from = 0) const;

  file_descriptor fd_;
  object_seeds seeds_;
};

}  // namespace ooc::storage
