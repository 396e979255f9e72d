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
#include <utility>

#include "storage/base/refuse.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/metadata_call.hpp"
#include "storage/service/permission.hpp"

namespace ooc::storage {

/// A path for messages: "'plate/a'", "the root folder".
std::string in_quotes(std::string_view path);
/// The same, or "entry number 7".
std::string shown(const place& where);

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
  struct slot {
    node parent;
    std::string name;
    std::optional<node> present;
  };

  /// `by_client`: of a server, who must have the right to pass the folders on the way to an entry that he names by its
  /// id.
  path_resolution(sqlite::connection& c, credentials who, bool by_client)
      : c_(c), who_(std::move(who)), by_client_(by_client) {}

  /// Where the path of a place begins.
  node start(const place& where) const;
  std::optional<node> child(const node& folder, const std::string& name) const;
  /// The entry there, which is committed, or named by its id and in use (OOC_ENTRY_IN_USE).
  node resolve(const place& where) const;
  /// The same that is or would be made there; its folders must exist.
  slot slot_at(const place& where) const;
  /// Of its first name; for a client of a server, of the first whose folders he may pass.
  std::string path_of(file_id id) const;
  /// Of its first name.
  file_id folder_of(file_id id) const;
  /// The path by which an answer names the entry that was found there.
  std::string path_of(const place& where, const node& n) const;

  void require(const node& n, std::uint32_t bits, std::string_view path, const char* to_do) const;

  bool is_empty(file_id folder) const;
  /// True where `folder` is `outer`, or below it.
  bool is_within(file_id folder, file_id outer) const;
  /// Gives what has the name `from` the name `to`, which is free.
  void move_name(const slot& from, const slot& to) const;
  /// Takes the name away, if what has it has another one; false: it has none.
  bool drop_further_name(const slot& p) const;

  /// Adds a folder that belongs to the caller.
  node insert_folder(const node& parent, const std::string& name, std::uint32_t mode) const;

 private:
  node at(file_id id) const;
  /// The uppermost folder, from this one up, that the caller may not pass: he may learn its name.
  std::optional<node> barred_above(file_id folder) const;
  /// To one of its names.
  void require_way_to(file_id id) const;
  node enter(const node& folder, const std::string& name, std::string_view path) const;

  sqlite::connection& c_;
  const credentials who_;
  const bool by_client_;
};

}  // namespace ooc::storage
