// Walking the name space: from paths to rows of the table `entry`, with POSIX's permission checks.
//
// A path_resolution is a short-lived view: made and used inside one transaction, with the connection's
// mutex held.  Failures are usage_error (ENOENT, ENOTDIR, EACCES, EINVAL) that name the path and
// the remedy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/base/refuse.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/metadata_service.hpp"
#include "storage/service/permission.hpp"

namespace ooc::storage {

/// A path for messages: "'plate/a'", "the root folder".
std::string quoted(std::string_view path);

/// Nanoseconds since 1970.
std::int64_t now_ns();

/// Of a row of `entry`: it is committed, or it was removed and is still used by who removed it (its name then begins
/// with a slash, which no other has).
#define OOC_ENTRY_IN_USE "(made = 1 OR substr(name, 1, 1) = '/')"

class path_resolution {
 public:
  /// A row, as far as walking needs it.
  struct node {
    file_id id = root_id;
    entry_kind kind = entry_kind::folder;
    bool made = true;
    std::uint32_t owner = 0, group = 0, mode = 0;
  };

  /// A folder and a name in it, which may or may not be there (perhaps still being made).
  struct place {
    node parent;
    std::string name;
    std::optional<node> present;
  };

  path_resolution(sqlite::connection& c, credentials who) : c_(c), who_(who) {}

  node root() const;
  std::optional<node> child(const node& folder, const std::string& name) const;
  /// The committed entry at `path`.
  node resolve(std::string_view path) const;
  /// Where `path` is or would be; its folders must exist.
  place place_for(std::string_view path) const;
  /// The entry with this id, if it is in use (OOC_ENTRY_IN_USE).
  node at(file_id id) const;
  /// The same, of a folder and a name in it.
  place in_folder(file_id folder, const std::string& name) const;
  std::string path_of(file_id id) const;
  /// Throws EACCES where the caller may not pass one of the folders on the way to `id`.
  void require_way_to(file_id id) const;

  void require(const node& n, std::uint32_t bits, std::string_view path, const char* to_do) const;
  void require_owner(const node& n, std::string_view path, const char* to_do) const;

  bool is_empty(file_id folder) const;
  /// True where `folder` is `outer`, or below it.
  bool is_within(file_id folder, file_id outer) const;
  /// Gives what has the name `from` the name `to`, which is free.
  void move_name(const place& from, const place& to) const;
  /// Takes the name away, if what has it has another one; false: it has none.
  bool drop_further_name(const place& p) const;

  /// Adds a folder that belongs to the caller.
  node insert_folder(const node& parent, const std::string& name, std::uint32_t mode) const;

 private:
  node enter(const node& folder, const std::string& name, std::string_view path) const;

  sqlite::connection& c_;
  credentials who_;
};

}  // namespace ooc::storage
