// The `.sum` file beside a share's data: a header, and two CRC32C values for each 4 KiB chunk.
//
// An entry {current, next} is a write-intent record.  A chunk is written in three steps:
//
//     (a) entry := {old, new}      (b) data := new      (c) entry := {new, new}
//
// so at every moment the data match one of the two, or the overwrite of that chunk was cut short.
// 0 stands for "never written"; a true CRC of 0 is stored as 1.  judge() is the whole rule.
//
// docs/disk-format.md describes the bytes.  All numbers are little-endian.  The class is a file
// descriptor with typed access: no state, no locks; who may touch an entry is decided by the locks
// of `share`.  Functions return an errno, 0 for success.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/crc32c.hpp"
#include "storage/file_descriptor.hpp"
#include "storage/io_service.hpp"

namespace ooc::storage {

static_assert(std::endian::native == std::endian::little,
              "the disk format is written as it lies in memory");

struct sum_entry {
  std::uint32_t current = 0;  ///< CRC32C of the chunk as it was last completed, 0: never written
  std::uint32_t next = 0;     ///< CRC32C of the overwrite in progress; equal to `current` if none

  bool operator==(const sum_entry&) const = default;
  bool settled() const noexcept { return current == next; }
};
static_assert(sizeof(sum_entry) == 8);

using boot_id = std::array<std::uint8_t, 16>;

struct sum_header {
  static constexpr std::uint32_t power_lost = 1;   ///< flag: a boot with unsynced writes has ended
  static constexpr std::uint32_t synced_once = 2;  ///< flag: there are durable data to protect

  std::array<char, 8> magic = {'O', 'O', 'C', 'S', 'U', 'M', '1', '\0'};
  std::uint32_t version = 1;
  std::uint32_t chunk_bytes = 4096;
  std::uint64_t id = 0;     ///< the file's id
  boot_id unsynced{};       ///< the boot during which unsynced writes were made; zeros: none
  std::uint64_t syncs = 0;  ///< completed syncs; makes records of the undo log stale
  std::uint32_t flags = 0;
  std::uint32_t crc = 0;                      ///< CRC32C of the 4096 bytes with this field zero
  std::array<std::uint8_t, 4040> reserved{};  ///< zeros
};
// Everything that changes lies in the first 64 bytes, hence in one sector: no torn headers.
static_assert(sizeof(sum_header) == 4096 && offsetof(sum_header, unsynced) == 24 &&
              offsetof(sum_header, syncs) == 40 && offsetof(sum_header, crc) == 52);

/// The boot that this machine is in; all ones where the kernel does not say.
const boot_id& this_boot();


enum class verdict {
  good,     ///< the data are an acknowledged or at least a complete write
  fill,     ///< never written, or a first write cut short: reads as the fill pattern
  torn,     ///< an overwrite cut short: neither the old nor the new bytes
  corrupt,  ///< the data changed after they were written
};

/// What a chunk with checksum `sum` is, under `e`.
constexpr verdict judge(sum_entry e, std::uint32_t sum) noexcept {
  if (e.current == 0 && e.next == 0) return verdict::fill;
  if (sum == e.current || sum == e.next) return verdict::good;
  // The first write of a chunk was never acknowledged and nothing was there before: whatever lies
  // on disk (zeros of a reservation, half of the new bytes) has no meaning.
  if (e.current == 0) return verdict::fill;
  return e.settled() ? verdict::corrupt : verdict::torn;
}

class sum_file {
 public:
  explicit sum_file(file_descriptor fd) noexcept : fd_(std::move(fd)) {}

  int fd() const noexcept { return fd_.get(); }

  static std::uint64_t bytes_for(std::uint64_t chunks) noexcept {
    return sizeof(sum_header) + chunks * sizeof(sum_entry);
  }

  /// Entries of consecutive chunks.  Entries past the end of the file read as never written.
  int read(std::uint64_t chunk, std::span<sum_entry> out) const noexcept;
  int write(std::uint64_t chunk, std::span<const sum_entry> entries) const noexcept;

  /// EINVAL: not a header (magic, version or CRC).
  int read_header(sum_header& h) const noexcept;
  int write_header(sum_header h) const noexcept;
  int make_durable() const noexcept;

 private:
  file_descriptor fd_;
};

}  // namespace ooc::storage
