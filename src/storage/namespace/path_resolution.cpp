#include "storage/namespace/path_resolution.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/store_path.hpp"

namespace ooc::storage {

using sqlite::query;
using sqlite::run;

namespace {

constexpr std::size_t shown_of_long_path = 80;

/// Of a row with the columns id, kind, made, owner, grp, mode.
path_resolution::node node_from(const query& q) {
  return {q.unsigned_integer(0),
          static_cast<entry_kind>(q.integer(1)),
          q.integer(2) != 0,
          static_cast<std::uint32_t>(q.integer(3)),
          static_cast<std::uint32_t>(q.integer(4)),
          static_cast<std::uint32_t>(q.integer(5))};
}

/// The folder that an entry is in, and its name there.
using folder_and_name = std::pair<file_id, std::string>;

folder_and_name first_name(sqlite::connection& c, file_id id) {
  query q(c, "SELECT parent, name FROM entry WHERE id = ?", id);
  if (!q.next()) throw integrity_error(errc::corrupt, "metadata database: an entry has no folder");
  return {q.unsigned_integer(0), q.text(1)};
}

/// The first one before its further ones.
std::vector<folder_and_name> all_names(sqlite::connection& c, file_id id) {
  std::vector<folder_and_name> all = {first_name(c, id)};
  query q(c, "SELECT parent, name FROM link WHERE entry = ?", id);
  while (q.next()) all.emplace_back(q.unsigned_integer(0), q.text(1));
  return all;
}

}  // namespace

std::string in_quotes(std::string_view path) {
  if (path.size() > max_path)  // of an entry that was found by its number
    return "'..." + std::string(path.substr(path.size() - shown_of_long_path)) + "'";
  const auto parts = split_path(path);
  return parts.empty() ? "the root folder" : "'" + join_path(parts) + "'";
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string shown(const place& where) {
  if (where.folder != root_id && where.path.empty()) return "entry number " + std::to_string(where.folder);
  return in_quotes(std::string_view(where.path));
}

path_resolution::node path_resolution::start(const place& where) const {
  const node n = at(where.folder);
  if (by_client_) require_way_to(n.id);
  return n;
}

std::optional<path_resolution::node> path_resolution::child(const node& folder, const std::string& name) const {
  query q(c_,
          "SELECT id, kind, made, owner, grp, mode FROM entry WHERE parent = ?1 AND name = ?2"
          " UNION ALL SELECT e.id, e.kind, e.made, e.owner, e.grp, e.mode"
          " FROM link l JOIN entry e ON e.id = l.entry WHERE l.parent = ?1 AND l.name = ?2",
          folder.id, name);
  return q.next() ? std::optional(node_from(q)) : std::nullopt;
}

path_resolution::node path_resolution::enter(const node& folder, const std::string& name, std::string_view path) const {
  if (folder.kind != entry_kind::folder)
    refuse(ENOTDIR, in_quotes(path) + ": a file is where '" + name + "' needs a folder");
  require(folder, may_enter, path, "pass a folder on the way");
  const auto n = child(folder, name);
  if (!n || !n->made) refuse(ENOENT, in_quotes(path) + ": there is no '" + name + "'; `ooc ls` shows what there is");
  return *n;
}

path_resolution::node path_resolution::resolve(const place& where) const {
  const auto parts = split_path(where.path);
  node n = start(where);
  for (const std::string& name : parts) n = enter(n, name, where.path);
  return n;
}

path_resolution::slot path_resolution::slot_at(const place& where) const {
  auto parts = split_path(where.path);
  if (parts.empty()) refuse(EINVAL, shown(where) + " cannot be made, moved or removed");
  slot p;
  p.name = std::move(parts.back());
  parts.pop_back();
  p.parent = start(where);
  for (const std::string& name : parts) {
    if (const auto n = p.parent.kind == entry_kind::folder ? child(p.parent, name) : std::nullopt;
        p.parent.kind == entry_kind::folder && (!n || !n->made))
      refuse(ENOENT, shown(where) + ": there is no folder '" + name +
                         "' on the way; `ooc mkdir -p` makes all that are missing");
    p.parent = enter(p.parent, name, where.path);
  }
  if (p.parent.kind != entry_kind::folder)
    refuse(ENOTDIR, shown(where) + ": " + shown(parts.empty() ? place(where.folder) : place(join_path(parts))) +
                        " is a file, not a folder");
  require(p.parent, may_enter, where.path, "pass its folder");
  p.present = child(p.parent, p.name);
  return p;
}

path_resolution::node path_resolution::at(file_id id) const {
  {
    query q(c_, "SELECT id, kind, made, owner, grp, mode FROM entry WHERE id = ? AND " OOC_ENTRY_IN_USE, id);
    if (q.next()) return node_from(q);
  }
  if (const file_id now = now_at(c_, id); now != 0) return at(now);
  if (id == root_id) throw integrity_error(errc::corrupt, "metadata database: no root folder");
  refuse(ENOENT, "entry number " + std::to_string(id) + " has been removed from the store");
}

bool path_resolution::is_empty(file_id folder) const {
  query q(c_, "SELECT 1 FROM entry WHERE parent = ?1 UNION ALL SELECT 1 FROM link WHERE parent = ?1 LIMIT 1", folder);
  return !q.next();
}

bool path_resolution::is_within(file_id folder, file_id outer) const {
  for (file_id up = folder; up != root_id; up = folder_of(up))
    if (up == outer) return true;
  return false;
}

void path_resolution::move_name(const slot& from, const slot& to) const {
  run(c_, "UPDATE link SET parent = ?, name = ? WHERE parent = ? AND name = ?", to.parent.id, to.name, from.parent.id,
      from.name);
  if (c_.changes() == 0)
    run(c_, "UPDATE entry SET parent = ?, name = ? WHERE id = ?", to.parent.id, to.name, from.present->id);
  run(c_, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), from.present->id);
}

bool path_resolution::drop_further_name(const slot& p) const {
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

file_id path_resolution::folder_of(file_id id) const { return first_name(c_, id).first; }

std::string path_resolution::path_of(file_id id) const {
  std::vector<std::string> parts;
  if (id != root_id && by_client_) {
    const std::vector<folder_and_name> names = all_names(c_, id);
    auto n = names.begin();
    if (names.size() > 1) n = std::ranges::find_if(names, [&](const auto& i) { return !barred_above(i.first); });
    if (n == names.end()) n = names.begin();
    id = n->first;
    parts.push_back(n->second);
  }
  while (id != root_id) {
    auto [folder, name] = first_name(c_, id);
    id = folder;
    parts.push_back(std::move(name));
  }
  std::reverse(parts.begin(), parts.end());
  return join_path(parts);
}

std::string path_resolution::path_of(const place& where, const node& n) const {
  const auto parts = split_path(where.path);
  return parts.empty() ? path_of(n.id) : join_path(parts);
}

std::optional<path_resolution::node> path_resolution::barred_above(file_id folder) const {
  for (std::optional<node> barred;; folder = folder_of(folder)) {
    const node n = at(folder);
    if (!permits(who_, n.owner, n.group, n.mode, may_enter)) barred = n;
    if (folder == root_id) return barred;
  }
}

void path_resolution::require_way_to(file_id id) const {
  if (id == root_id) return;
  // By numbers, not by names: together these may be longer than a path may be.
  const std::vector<folder_and_name> names = all_names(c_, id);
  if (std::ranges::any_of(names, [&](const auto& n) { return !barred_above(n.first); })) return;
  const std::string to_do = "pass it on the way to entry number " + std::to_string(id);
  const node barred = *barred_above(names.front().first);
  require(barred, may_enter, path_of(barred.id), to_do.c_str());
}

void path_resolution::require(const node& n, std::uint32_t bits, std::string_view path, const char* to_do) const {
  if (!permits(who_, n.owner, n.group, n.mode, bits))
    refuse(EACCES, in_quotes(path) + ": user " + std::to_string(who_.uid) + " may not " + to_do + "; its owner (user " +
                       std::to_string(n.owner) + ") can change the mode (`ooc chmod`)");
}

path_resolution::node path_resolution::insert_folder(const node& parent, const std::string& name,
                                                     std::uint32_t mode) const {
  const std::int64_t now = now_ns();
  run(c_,
      "INSERT INTO entry (parent, name, kind, owner, grp, mode, created_ns, changed_ns)"
      " VALUES (?, ?, 1, ?, ?, ?, ?, ?)",
      parent.id, name, who_.uid, who_.gid, mode & 07777, now, now);
  return {static_cast<file_id>(c_.last_insert_id()), entry_kind::folder, true, who_.uid, who_.gid, mode & 07777};
}

}  // namespace ooc::storage
