// The calls of the metadata service as values: a client sends what a server carries out.
//
// Each struct in `calls` is one call; `answer` is the type of what comes back, if anything does.  A server carries out
// one that changes something once, however often it is sent.  metadata_front.hpp gives the calls names,
// metadata_service.hpp says what all of them promise, and storage/wire/metadata_calls.hpp puts them on the wire.
//
// Paths are '/'-separated, without "." or ".." components; leading, trailing and doubled slashes are ignored.  A
// component has 1 to 255 bytes and no NUL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "storage/layout/array_description.hpp"
#include "storage/layout/file_shape.hpp"
#include "storage/service/entry.hpp"

namespace ooc::storage {

inline constexpr file_id root_id = 1;

/// An entry, or where one may be: a path that begins at the folder with this id, wherever that has been moved to.  An
/// empty path is the entry with the id itself, whatever it is, also one that has lost its last name and is still in
/// use.  A server asks for the permission to pass the folders on the way to the id.
struct place {
  file_id folder = root_id;
  std::string path;

  place(std::string_view from_root) : path(from_root) {}
  place(const std::string& from_root) : path(from_root) {}
  place(const char* from_root) : path(from_root) {}
  place(file_id id) : folder(id) {}
  place(file_id from, std::string_view name) : folder(from), path(name) {}
};

struct new_file {
  std::uint64_t size = 0;
  ooc::striping striping;  ///< complete: sn < nodes, 0 < nn <= nodes, sf > 0
  /// By stripe index; needed where nodes sn to sn + nn - 1 are not all there.  The file gets none of those that are
  /// being emptied (namespace/placement_rows.hpp), and so may have fewer, as its entry says.
  node_list nodes;
  bool sparse = false;
  std::vector<std::byte> fill;
  array_description array;
  std::uint32_t mode = 0644;
  bool finished = false;     ///< committed with its creation: an empty file needs no stripe objects
  bool commits = false;      ///< its last commit is kept
  std::uint64_t commit = 0;  ///< of such a file that is to take another's place: the number that it begins at
  std::map<std::string, std::string> attributes;
  std::string codec{};       ///< as entry::codec
  std::uint64_t packed = 0;  ///< of a packed file: bytes of its stripe objects
};

/// An entry that needs no stripe objects: anything but a file with bytes.
struct new_entry {
  entry_kind kind = entry_kind::file;
  std::uint32_t mode = 0644;
  std::uint32_t owner = keep_id;  ///< keep_id: the caller; others for user 0 only (EPERM)
  std::uint32_t group = keep_id;  ///< keep_id: the caller's, or the folder's where that has the set-group-id bit
  std::string target;             ///< of a symbolic link
  std::uint64_t device = 0;
  ooc::striping striping;  ///< of a file; complete
  node_list nodes;         ///< as in new_file
};

/// The fields of an entry that are to change; the rest stays.
struct entry_change {
  std::optional<std::uint32_t> mode, owner, group;
  std::optional<std::int64_t> data_changed_ns, data_read_ns;
  /// The visible size becomes at least this; at most allocated_size().  Not of arrays.  The caller holds lock_size(),
  /// as store_core::change() does.
  std::optional<std::uint64_t> size_at_least;

  bool empty() const { return !mode && !owner && !group && !data_changed_ns && !data_read_ns && !size_at_least; }
};

inline entry_change mode_change(std::uint32_t mode) {
  entry_change c;
  c.mode = mode;
  return c;
}
/// keep_id leaves owner or group as it is.
inline entry_change owner_change(std::uint32_t uid, std::uint32_t gid) {
  entry_change c;
  if (uid != keep_id) c.owner = uid;
  if (gid != keep_id) c.group = gid;
  return c;
}

/// Entries of a folder by name.
struct folder_part {
  std::vector<entry> entries;
  bool more = false;  ///< others may follow the last of these
};

/// Ids in ascending order.
struct id_part {
  std::vector<file_id> ids;
  bool more = false;
};

enum class file_state : std::uint8_t { committed, unfinished, dead };

using nothing = std::monostate;

namespace calls {

struct lookup {
  place where;
  using answer = entry;
};
struct open {
  place where;
  bool write = false;
  bool unfinished = false;
  using answer = entry;
};
struct find {
  file_id id = 0;
  std::uint32_t rights = right_read | right_write;  ///< those that the capability is to have; 0: none is wanted
  bool at_commit = false;
  using answer = entry;
};
struct list {
  place where;
  std::string after;
  bool whole = false;  ///< in one part if that can be, which then is as of one moment
  using answer = folder_part;
};
struct ids {
  file_state state = file_state::committed;
  file_id after = 0;
  using answer = id_part;
};
struct capability {
  file_id id = 0;
  std::uint32_t rights = 0;
  std::uint64_t size = 0;  ///< right_resize: that the file is to have
  using answer = capability_ptr;
};
struct sync {};

struct create {
  place where;
  new_file file;
  using answer = entry;
};
struct commit {
  file_id id = 0;
};
struct abandon {
  file_id id = 0;
};
struct forget {
  file_id id = 0;
};
struct make_folder {
  place where;
  std::uint32_t mode = 0755;
  bool parents = false;
};
struct make {
  place where;
  new_entry what;
  using answer = entry;
};
struct link {
  file_id id = 0;
  place where;
  using answer = entry;
};
struct move {
  place from, to;
  bool replace = false;
  using answer = entry;
};
struct remove {
  place where;
  using answer = entry;
};
struct unlink {
  place where;
  bool folder = false;
  using answer = entry;
};
/// The file `id`, which the caller is making or has made, takes the place of the file `of`: names, owner, mode, times,
/// attributes and commits become those that `of` has, which is gone then, as after remove().  Who asks for `of` by its
/// id gets `id` from then on.  For the owner of `of`; nobody writes either file.  Durable.
/// Nothing is done where `of` has been opened for writing after this generation of its (errc::conflict).
struct take_over {
  file_id id = 0;
  file_id of = 0;
  std::uint64_t generation = 0;
  using answer = entry;
};
struct set_size {
  file_id id = 0;
  std::uint64_t size = 0;
  std::vector<std::uint64_t> extents;
  std::uint64_t generation = 0;
  std::uint64_t reserved = 0;
  using answer = bool;
};
struct set_generation {
  file_id id = 0;
  std::uint64_t generation = 0;
  std::uint64_t allocated = 0;
  using answer = bool;
};
struct set_in_progress {
  file_id id = 0;
  std::string what;
};
/// Size, extents and attributes that these files with commits have now are those of their next commit, which is their
/// last from now on, all in one step and durably.  Their nodes have prepared it.  Nothing is done where one of them has
/// another commit than it is said to have (errc::conflict).
struct decide {
  struct file {
    file_id id = 0;
    std::uint64_t after = 0;  ///< the number of its last commit
  };
  std::vector<file> files;
  std::int64_t time_ns = 0;
  std::map<std::string, std::string> attributes;
};
/// Size, extents and attributes of a file with commits become those of the last one.
struct roll_back {
  file_id id = 0;
};
struct change {
  place where;
  entry_change what;
  using answer = entry;
};
struct set_attribute {
  place where;
  std::string key, value;
};
struct remove_attribute {
  place where;
  std::string key;
};

/// Those that change something, or one of the further kinds `More`.
template <class... More>
using changing_or =
    std::variant<create, commit, abandon, forget, make_folder, make, link, move, remove, unlink, take_over, set_size,
                 set_generation, set_in_progress, decide, roll_back, change, set_attribute, remove_attribute, More...>;
template <class Call>
inline constexpr bool changes = std::is_constructible_v<changing_or<>, Call>;

}  // namespace calls

/// Any of them, or one of the further kinds `More`.
template <class... More>
using metadata_call_or = calls::changing_or<calls::lookup, calls::open, calls::find, calls::list, calls::ids,
                                            calls::capability, calls::sync, More...>;
using metadata_call = metadata_call_or<>;

template <class Call>
struct answer_to {
  using type = nothing;
};
template <class Call>
requires requires { typename Call::answer; }
struct answer_to<Call> {
  using type = typename Call::answer;
};
template <class Call>
using answer_of = typename answer_to<Call>::type;

/// Several functions as one, to visit a call with.
template <class... F>
struct overloaded : F... {
  using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;  // older clangs do not find it by themselves

/// Of the type that the call says.
using metadata_answer = std::variant<nothing, entry, folder_part, id_part, bool, capability_ptr>;

}  // namespace ooc::storage
