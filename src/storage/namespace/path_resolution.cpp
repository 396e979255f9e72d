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

[[noreturn]] void refuse(int err, const std::string& what) {
  throw usage_error({err, std::generic_category()}, what);
}

std::string quoted(std::string_view path) {
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
  query q(c_, "SELECT id, kind, made, owner, grp, mode FROM entry WHERE parent = ? AND name = ?",
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
                         "' on the way; mkdir with parents makes all that are missing");
    p.parent = enter(p.parent, name, path);
  }
  if (p.parent.kind != entry_kind::folder)
    refuse(ENOTDIR, quoted(path) + ": '" + join_path(parts) + "' is a file, not a folder");
  require(p.parent, may_enter, path, "pass its folder");
  p.present = child(p.parent, p.name);
  return p;
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
  const std::string path = path_of(id);
  auto parts = split_path(path);
  if (parts.empty()) return;
  parts.pop_back();
  node n = root();
  for (const std::string& name : parts) n = enter(n, name, path);
  require(n, may_enter, path, "pass its folder");
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
