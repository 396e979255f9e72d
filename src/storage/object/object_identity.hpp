// Which stripe object this is, and the seeds by which its checksums prove their place.
//
// A checksum that is stored at rest is that of the chunk's bytes XOR a seed that belongs to this
// store, file, stripe index and chunk.  CRC is linear, so a node translates to and from the plain value that
// travels on the wire by one XOR; an entry that comes from elsewhere matches nothing here.
//
// docs/disk-format.md, "Seeds", has the formulas.  Values; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

using store_id = std::array<std::uint8_t, 16>;

/// The 16 bytes of a UUID in its usual text; zeros for an empty text.  Throws usage_error.
store_id store_id_from(std::string_view uuid);

/// The fields that both the header of a stripe object and the metadata have.
struct object_identity {
  store_id store{};
  file_id id = 0;
  std::uint32_t stripe_index = 0;
  std::uint32_t sn = 0;
  std::uint32_t nn = 0;
  std::uint64_t sf = 0;
  std::uint32_t fill_bytes = 0;  ///< length of the fill pattern
  std::uint32_t fill_sum = 0;    ///< CRC32C of the fill pattern

  bool operator==(const object_identity&) const = default;
};

object_identity identity_of(const store_id& store, const file_shape& f, std::uint32_t stripe_index);

/// Empty if both are one; else what a stripe object that says `found` is, where `wanted` is looked for, and
/// what helps.
std::string difference(const object_identity& wanted, const object_identity& found);

class object_seeds {
 public:
  object_seeds() = default;  ///< of no stripe object
  explicit object_seeds(const object_identity& who) noexcept;

  /// XORed to both checksums of a chunk's entry.  Never 0, so that zeros on disk are no entry; never
  /// the checksum of 4096 zeros, so that they do not fit a chunk of zeros either.
  std::uint32_t of_chunk(std::uint64_t chunk) const noexcept {
    const auto s = static_cast<std::uint32_t>(mixed(base_ ^ chunk));
    return s == 0 || s == sum_of_zeros ? s ^ 0x80000000U : s;
  }
  /// The check of a region's mark.
  std::uint32_t of_mark(std::uint64_t region, std::uint32_t value) const noexcept {
    return static_cast<std::uint32_t>(mixed(mixed(~base_ ^ region) ^ value));
  }
  /// XORed to the checksums of the undo log's records.
  std::uint32_t of_undo() const noexcept { return static_cast<std::uint32_t>(mixed(~base_)); }

  /// XORed to the checksums of the file of sides: `record` tells its records apart.
  std::uint32_t of_sides(std::uint64_t record) const noexcept {
    return static_cast<std::uint32_t>(mixed(mixed(mixed(~base_)) ^ record));
  }

  static constexpr std::uint32_t sum_of_zeros = 0x98f94189;  ///< CRC32C of 4096 zero bytes

  /// The output function of splitmix64.
  static constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

 private:
  std::uint64_t base_ = 0;
};

}  // namespace ooc::storage
