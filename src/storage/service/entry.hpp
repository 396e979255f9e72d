// The metadata of one entry of a store's name space, and the credentials of its callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/layout/array_description.hpp"
#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

/// The user and the groups of a caller.  Local callers are taken as they are; servers authenticate.
struct credentials {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups{};  ///< further ones; local callers only
};

enum class entry_kind : std::uint8_t {
  folder = 1,
  file = 2,
  link = 3,  ///< symbolic
  fifo = 4,
  socket = 5,
  character_device = 6,
  block_device = 7,
};

/// The last commit of a file that keeps one.
struct last_commit {
  std::uint64_t number = 0;                       ///< 0: there was none, and the file as it was made counts as one
  std::int64_t time_ns = 0;                       ///< since 1970, UTC, by the clock of who made it
  std::map<std::string, std::string> attributes;  ///< given with it
};

struct entry {
  file_id id = 0;
  file_id number = 0;  ///< of a file whose place this one took: the first id that it had; 0: it was never moved
  entry_kind kind = entry_kind::file;
  std::string path;
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  std::uint32_t mode = 0;            ///< permission bits as in POSIX
  std::int64_t created_ns = 0;       ///< since 1970, UTC
  std::int64_t changed_ns = 0;       ///< last change of these metadata
  std::int64_t data_changed_ns = 0;  ///< last change of the data, as far as recorded; 0: never
  std::int64_t data_read_ns = 0;     ///< the same of reading
  std::uint32_t names = 1;           ///< 0: removed, and still in use by who removed it
  std::string target;                ///< symbolic links only
  std::uint64_t device = 0;          ///< devices only
  std::uint64_t size = 0;            ///< bytes; files only
  std::uint64_t reserved = 0;        ///< bytes that the stripe objects have room for, where that is more
  /// How the file is packed (chunked/packed_codec.hpp); empty: it is not.  Else its stripe objects hold a packed file
  /// of `reserved` bytes, and it is only read.
  std::string codec;
  ooc::striping striping;  ///< files only
  node_list nodes;         ///< files only: where the stripe objects are
  bool sparse = false;
  std::uint64_t generation = 0;  ///< counts openings for writing; files only
  std::uint64_t cuts = 0;        ///< 1, and one more for each time that a file was cut off; 0: not known
  std::vector<std::byte> fill;   ///< one element's bytes; empty: zeros
  array_description array;
  std::map<std::string, std::string> attributes;  ///< free, set by users
  std::optional<last_commit> commit;              ///< of a file with commits
  /// Files whose place this one took (take_over), and whose stripe objects are still there.  They must be gone before
  /// it is written: who had them open would read on there.
  std::vector<file_id> left_behind;
  bool at_commit = false;  ///< size, extents and attributes are those of that commit, and so is what will be read
  bool in_place = false;  ///< of no store: a file that lies where somebody else has made it; never told to anybody else
  std::uint64_t lead = 0;     ///< in place: bytes from a page of the file to the first element
  write_claim claim;          ///< of who has opened it
  std::uint64_t opened = 0;   ///< as file_shape::opened; not of who is told of it
  capability_ptr capability;  ///< for the nodes: what the asker may do with a file; see io_service
};

/// Bytes of a file that its stripe objects have: one that is not packed may be visible up to there without asking them.
inline std::uint64_t allocated_size(const entry& e) {
  return e.reserved > e.size || !e.codec.empty() ? e.reserved : e.size;
}

/// What stays when a file is moved: its first id, by which every call finds it.
inline file_id lasting_number(const entry& e) { return e.number != 0 ? e.number : e.id; }

/// Throws EROFS for a file that is packed.  `name`: for the message; empty: its path.
void require_unpacked(const entry& e, std::string name = {});

/// Whether no space is reserved for its stripe objects.  What a packed file will have is not known when it is made.
inline bool has_sparse_objects(const entry& e) { return e.sparse || !e.codec.empty(); }

/// Bytes that its stripe objects have of the file, or of the packed one.
inline std::uint64_t object_bytes(const entry& e) { return e.codec.empty() ? e.size : e.reserved; }

/// Whether a file that grows from `before` to `after` bytes gets stripe objects on nodes where it had none.
inline bool has_new_objects(const striping& s, std::uint64_t before, std::uint64_t after) {
  for (std::uint32_t t = 0; t < s.nn; ++t)
    if (s.object_size(t, before) == 0 && s.object_size(t, after) != 0) return true;
  return false;
}

/// Bytes that a file takes: packed ones, or all without tiles that are no part of its array
/// (array_description::max_extents).
inline std::uint64_t stored_size(const entry& e) {
  if (!e.codec.empty()) return e.reserved;
  return has_reserved_grid(e.array) ? array_stored_bytes(e.array) : e.size;
}

}  // namespace ooc::storage
