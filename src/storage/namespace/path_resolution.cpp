#include "storage/namespace/path_resolution.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/namespace/store_path.hpp"

namespace ooc::storage {

using sqlite::query;
using sqlite::run;

namespace {

constexpr std::size_t shown_of_long_path = 80;

}  // namespace

std::string quoted(std::string_view path) {
  if (path.size() > max_path)  // of an entry that was found by its number
    return "'..." + std::string(path.substr(path.size() - shown_of_long_path)) + "'";
  const auto parts = split_path(path);
  return parts.empty() ? "the root folder" : "'" + join_path(parts) + "'";
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

path_resolution::node path_resolution::root() const {
  query q(c_, "SELECT owner, grp, mode FROM entry WHERE id = 1");
  if (!q.next()) throw integrity_error(errc::corrupt, "metadata database: no root folder");
  node n;
  n.owner = static_cast<std::uint32_t>(q.integer(0));
  n.group = static_cast<std::uint32_t>(q.integer(1));
  n.mode = static_cast<std::uint32_t>(q.integer(2));
  return n;
}

std::optional<path_resolution::node> path_resolution::child(const node& folder, const std::string& name) const {
  query q(c_,
          "SELECT id, kind, made, owner, grp, mode FROM entry WHERE parent = ?1 AND name = ?2"
          " UNION ALL SELECT e.id, e.kind, e.made, e.owner, e.grp, e.mode"
          " FROM link l JOIN entry e ON e.id = l.entry WHERE l.parent = ?1 AND l.name = ?2",
          folder.id, name);
  if (!q.next()) return std::nullopt;
  return node{q.unsigned_integer(0),
              static_cast<entry_kind>(q.integer(1)),
              q.integer(2) != 0,
              static_cast<std::uint32_t>(q.integer(3)),
              static_cast<std::uint32_t>(q.integer(4)),
              static_cast<std::uint32_t>(q.integer(5))};
}

path_resolution::node path_resolution::enter(const node& folder, const std::string& name,
                                 std::string_view path) const {
  if (folder.kind != entry_kind::folder)
    refuse(ENOTDIR, quoted(path) + ": a file is where '" + name + "' needs a folder");
  require(folder, may_enter, path, "pass a folder on the way");
  const auto n = child(folder, name);
  if (!n || !n->made)
    refuse(ENOENT, quoted(path) + ": there is no '" + name + "'; `ooc ls` shows what there is");
  return *n;
}

path_resolution::node path_resolution::resolve(std::string_view path) const {
  node n = root();
  for (const std::string& name : split_path(path)) n = enter(n, name, path);
  return n;
}

path_resolution::place path_resolution::place_for(std::string_view path) const {
  auto parts = split_path(path);
  if (parts.empty()) refuse(EINVAL, "the root folder cannot be made, moved or removed");
  place p;
  p.name = std::move(parts.back());
  parts.pop_back();
  p.parent = root();
  for (const std::string& name : parts) {
    if (const auto n = p.parent.kind == entry_kind::folder ? child(p.parent, name) : std::nullopt;
        p.parent.kind == entry_kind::folder && (!n || !n->made))
      refuse(ENOENT, quoted(path) + ": there is no folder '" + name +
                         "' on the way; `ooc mkdir -p` makes all that are missing");
    p.parent = enter(p.parent, name, path);
  }
  if (p.parent.kind != entry_kind::folder)
    refuse(ENOTDIR, quoted(path) + ": '" + join_path(parts) + "' is a file, not a folder");
  require(p.parent, may_enter, path, "pass its folder");
  p.present = child(p.parent, p.name);
  return p;
}

path_resolution::node path_resolution::at(file_id id) const {
  query q(c_, "SELECT kind, made, owner, grp, mode FROM entry WHERE id = ? AND " OOC_ENTRY_IN_USE, id);
  if (!q.next())
    refuse(ENOENT, "entry number " + std::to_string(id) + " has been removed from the store");
  return node{id,
              static_cast<entry_kind>(q.integer(0)),
              q.integer(1) != 0,
              static_cast<std::uint32_t>(q.integer(2)),
              static_cast<std::uint32_t>(q.integer(3)),
              static_cast<std::uint32_t>(q.integer(4))};
}

path_resolution::place path_resolution::in_folder(file_id folder, const std::string& name) const {
  const auto parts = split_path(name);
  if (parts.size() != 1 || parts[0] != name)
    refuse(EINVAL, "'" + name + "' is a path where a name is wanted");
  place p;
  p.parent = at(folder);
  p.name = name;
  if (p.parent.kind != entry_kind::folder)
    refuse(ENOTDIR, "'" + name + "': entry number " + std::to_string(folder) + " is not a folder");
  require(p.parent, may_enter, name, "pass its folder");
  p.present = child(p.parent, name);
  return p;
}

bool path_resolution::is_empty(file_id folder) const {
  query q(c_,
          "SELECT 1 FROM entry WHERE parent = ?1 UNION ALL SELECT 1 FROM link WHERE parent = ?1 LIMIT 1",
          folder);
  return !q.next();
}

bool path_resolution::is_within(file_id folder, file_id outer) const {
  for (file_id up = folder; up != root_id;) {
    if (up == outer) return true;
    query q(c_, "SELECT parent FROM entry WHERE id = ?", up);
    if (!q.next())
      throw integrity_error(errc::corrupt, "metadata database: an entry has no folder");
    up = q.unsigned_integer(0);
  }
  return false;
}

void path_resolution::move_name(const place& from, const place& to) const {
  run(c_, "UPDATE link SET parent = ?, name = ? WHERE parent = ? AND name = ?", to.parent.id, to.name,
      from.parent.id, from.name);
  if (c_.changes() == 0)
    run(c_, "UPDATE entry SET parent = ?, name = ? WHERE id = ?", to.parent.id, to.name,
        from.present->id);
  run(c_, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), from.present->id);
}

bool path_resolution::drop_further_name(const place& p) const {
  const file_id id = p.present->id;
  run(c_, "DELETE FROM link WHERE parent = ? AND name = ?", p.parent.id, p.name);
  if (c_.changes() == 0) {
    file_id parent = 0;
    std::string name;
    {
      query q(c_, "SELECT parent, name FROM link WHERE entry = ? LIMIT 1", id);
      if (!q.next()) return false;
      parent = q.unsigned_integer(0);
      name = q.text(1);
    }
    run(c_, "DELETE FROM link WHERE parent = ? AND name = ?", parent, name);
    run(c_, "UPDATE entry SET parent = ?, name = ? WHERE id = ?", parent, name, id);
  }
  run(c_, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), id);
  return true;
}

std::string path_resolution::path_of(file_id id) const {
  std::vector<std::string> parts;
  while (id != root_id) {
    query q(c_, "SELECT parent, name FROM entry WHERE id = ?", id);
    if (!q.next())
      throw integrity_error(errc::corrupt, "metadata database: an entry has no folder");
    id = q.unsigned_integer(0);
    parts.push_back(q.text(1));
  }
  std::reverse(parts.begin(), parts.end());
  return join_path(parts);
}

void path_resolution::require_way_to(file_id id) const {
  (void)at(id);  // what has been removed has no way
  // By numbers, not by names: together these may be longer than a path may be.
  const std::string path = path_of(id);
  while (id != root_id) {
    query q(c_, "SELECT parent FROM entry WHERE id = ?", id);
    if (!q.next())
      throw integrity_error(errc::corrupt, "metadata database: an entry has no folder");
    id = q.unsigned_integer(0);
    require(at(id), may_enter, path, "pass a folder on the way");
  }
}

void path_resolution::require(const node& n, std::uint32_t bits, std::string_view path,
                        const char* to_do) const {
  if (!permits(who_, n.owner, n.group, n.mode, bits))
    refuse(EACCES, quoted(path) + ": user " + std::to_string(who_.uid) + " may not " + to_do +
                       "; its owner (user " + std::to_string(n.owner) + ") can change the mode (`ooc chmod`)");
}

void path_resolution::require_owner(const node& n, std::string_view path, const char* to_do) const {
  if (who_.uid != 0 && who_.uid != n.owner)
    refuse(EACCES,
           quoted(path) + ": only its owner (user " + std::to_string(n.owner) + ") may " + to_do);
}

path_resolution::node path_resolution::insert_folder(const node& parent, const std::string& name,
                                         std::uint32_t mode) const {
  const std::int64_t now = now_ns();
  run(c_,
      "INSERT INTO entry (parent, name, kind, owner, grp, mode, created_ns, changed_ns)"
      " VALUES (?, ?, 1, ?, ?, ?, ?, ?)",
      parent.id, name, who_.uid, who_.gid, mode & 07777, now, now);
  return {static_cast<file_id>(c_.last_insert_id()),
          entry_kind::folder,
          true,
          who_.uid,
          who_.gid,
          mode & 07777};
}

}  // namespace ooc::storage
