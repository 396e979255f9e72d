// Capabilities: what a client may do with a file, and the geometry of that file, signed by the
// metadata server of the store.
//
// I/O servers verify them alone, with the store's public key.  The secret half is the metadata
// server's: a cluster key is of no use for making one.  The bytes (208, fixed; docs/wire-format.md,
// "Capability") travel as the access_capability of a file.  They are of no use on a connection of anybody
// else than the user, and the key, that they were made for.
//
// The geometry is signed because the work that a request makes follows from it: a client that could
// state another size would have an I/O server walk over chunks that nobody ever made.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "oocarray/error.hpp"
#include "storage/layout/file_shape.hpp"

namespace ooc::wire {

// Bits of capability::rights.
using storage::right_make, storage::right_read, storage::right_remove, storage::right_resize, storage::right_write;

/// Where the bytes of a file lie, and what it reads as where nothing was written.
struct file_geometry {
  std::uint64_t size = 0;  ///< bytes of the whole file when it was signed; of a resize, the larger
  ooc::striping striping;
  bool sparse = false;
  std::array<std::uint8_t, 16> fill{};  ///< BLAKE2b of the fill value; zeros where there is none

  /// True where all but the sizes are equal.
  bool same_layout(const file_geometry& o) const noexcept {
    return striping == o.striping && sparse == o.sparse && fill == o.fill;
  }
  bool operator==(const file_geometry&) const = default;
};

file_geometry geometry_of(std::uint64_t size, const ooc::striping& s, bool sparse, std::span<const std::byte> fill);

/// Which key somebody has proven: BLAKE2b of its identity; zeros where there are no keys.
using holder_mark = std::array<std::uint8_t, 16>;
holder_mark mark_of(std::string_view identity);

struct capability {
  storage::file_id file = 0;
  std::uint32_t rights = 0;
  std::uint32_t uid = 0;     ///< for whom it was made
  std::int64_t expiry = 0;   ///< seconds since 1970, UTC: refused from then on
  std::uint64_t serial = 0;  ///< counts what a metadata server has signed; for logs
  std::string store_uuid;    ///< at most 40 bytes
  file_geometry geometry;    ///< without meaning where `rights` is right_remove alone
  holder_mark holder{};      ///< with which key

  bool operator==(const capability&) const = default;
};

inline constexpr std::size_t capability_size = 208;        // bytes, the signature included
inline constexpr std::size_t capability_public_size = 32;  // bytes

using capability_public_key = std::array<std::uint8_t, capability_public_size>;

/// Makes capabilities.  Thread-safe.
class capability_signer {
 public:
  /// The key in `file`, which is made (mode 0600) where there is none.  Throws as
  /// read_secret_file() does.
  explicit capability_signer(const std::filesystem::path& file);
  ~capability_signer();
  capability_signer(const capability_signer&) = delete;
  capability_signer& operator=(const capability_signer&) = delete;

  const capability_public_key& public_key() const noexcept { return public_; }
  /// Throws usage_error where store_uuid is too long.
  std::string sign(const capability& c) const;

 private:
  std::array<std::uint8_t, 64> secret_{};
  capability_public_key public_{};
};

enum class capability_fault { none, malformed, forged, other_store, expired };

struct verified_capability {
  capability_fault fault = capability_fault::none;
  capability granted;  ///< valid where fault is none or expired
  failure reason;      ///< EACCES, EPROTO, ESTALE or EKEYEXPIRED, and a text for the client and the log
};

/// Checks signature, store and expiry, in this order.  `now` in seconds since 1970.
verified_capability verify_capability(const capability_public_key& key, std::string_view store_uuid,
                                      std::string_view bytes, std::int64_t now);

/// Seconds since 1970.
std::int64_t seconds_now();

}  // namespace ooc::wire
