// The part of a file's metadata that a node needs to find its part of a request: identity, striping, size and fill.
//
// Plain data, filled from the metadata and handed down with every operation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "oocarray/striping.hpp"
#include "storage/layout/placement.hpp"

namespace ooc::storage {

/// Bytes covered by one checksum.
inline constexpr std::uint64_t chunk_size = 4096;

/// Chunks that so many bytes begin.
constexpr std::uint64_t in_chunks(std::uint64_t bytes) noexcept {
  return bytes / chunk_size + (bytes % chunk_size != 0);
}

using file_id = std::uint64_t;

/// Counts up, from 1: what has happened in this process in which order, as openings of files and losses that it has
/// heard of.
inline std::uint64_t next_moment() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// The rights that a capability may give.
enum : std::uint32_t {
  right_read = 1,     ///< read and verify
  right_write = 2,    ///< write, sync
  right_make = 4,     ///< make the stripe objects of a file that is being made
  right_remove = 8,   ///< remove the stripe objects of a file that is gone or being made
  right_resize = 16,  ///< change the stripe objects to those of a file of at most the signed size
};

/// Proof of a right to a file, handed out by the metadata service of a served store and shown to its
/// nodes.  Renewed behind the scenes while anybody holds it.  Thread-safe.
class access_capability {
 public:
  virtual ~access_capability() = default;
  virtual std::string bytes() const = 0;
};
using capability_ptr = std::shared_ptr<const access_capability>;

/// For owners and groups: no change, or not known.
inline constexpr std::uint32_t keep_id = ~std::uint32_t{0};

/// Owner, group and mode of a file, as in POSIX.
struct file_permissions {
  std::uint32_t owner = keep_id;
  std::uint32_t group = keep_id;
  std::uint32_t mode = 0600;  ///< permission bits
};

/// In whose name a file is written: of a claim (metadata_service::claim_writer) that a client may lose without knowing,
/// when its server takes it for lost, or the process ends that holds it for several ranks.  Nodes refuse the writes of
/// those whose claims ended before another's began.
struct write_claim {
  std::uint64_t since = 0;  ///< the generation that the file got with the claim; 0: there is none
  bool alone = false;       ///< whole blocks, and nobody else writes

  bool operator==(const write_claim&) const = default;
};

/// The part of a file's metadata that a node needs to find its part of a request.  Kept alive by shared_ptr until the
/// last operation on it is done.
struct file_shape {
  file_id id = 0;
  ooc::striping striping;
  node_list nodes;              ///< where the stripe objects are; nodes themselves are not told
  std::uint64_t size = 0;       ///< bytes of the whole file
  bool sparse = false;          ///< do not reserve space at creation
  std::vector<std::byte> fill;  ///< repeated from file offset 0 where nothing was written; empty: zeros
  std::string name;             ///< path in the store, for messages only
  capability_ptr capability;    ///< empty on local stores, which ask for none
  /// The count of openings for writing that the metadata had when the file was looked up: no stripe object is older.
  std::uint64_t generation = 0;
  write_claim claim;  ///< of who asks
  /// How often the file had been cut off when it was looked up, and 1; 0: not said.  Writes of who does not know of
  /// the last cut are refused (errc::cut_off).
  std::uint64_t cuts = 0;
  /// resize: so many there are from now on.  advance: writes of who has looked the file up so far are refused
  /// (errc::cut_off), as it is about to be moved.
  bool cut = false;
  bool commits = false;  ///< its stripe objects keep its last commit beside what was written since
  /// The number of the last commit that the metadata knew when the file was looked up; 0: as it was made.
  std::uint64_t commit = 0;
  bool at_commit = false;  ///< read: what that commit has
  /// read: the metadata still have the file, and a stripe object that is not there went with the power if it may have.
  bool still_there = false;
  /// When this process opened it (next_moment()); 0: nobody has said.  What was lost later must not be used as if
  /// nothing had happened.
  std::uint64_t opened = 0;
  /// Owner, group and mode of the stripe objects of an embedded node in the file system; those of a server belong to
  /// the server alone.
  file_permissions permissions;
};

using shape_ptr = std::shared_ptr<const file_shape>;

}  // namespace ooc::storage
