// Calls that make, move and take away names.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>

#include "storage/layout/element_order.hpp"
#include "storage/namespace/call_runner.hpp"
#include "storage/namespace/commit_rows.hpp"
#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/placement_rows.hpp"
#include "storage/namespace/store_path.hpp"
#include "storage/service/permission.hpp"

namespace ooc::storage {

namespace {

constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t max_fill = 1 << 16;  // bytes in one element
constexpr std::size_t max_target = 4095;

void touch_folder(sqlite::connection& c, file_id folder) {
  const std::int64_t now = now_ns();
  sqlite::run(c, "UPDATE entry SET changed_ns = ?, data_changed_ns = ? WHERE id = ?", now, now, folder);
}

void check_striping(const std::string& name, const ooc::striping& s) {
  if (s.nn == 0 || s.sf == 0) refuse(EINVAL, name + ": striping needs a number of nodes (nn) and a stripe size (sf)");
  if (s.sf > max_size / s.nn) refuse(EINVAL, name + ": nn * sf passes 2^63 - 1 bytes");
}

void check_new_file(const std::string& name, const new_file& f) {
  if (f.size > max_size) refuse(EINVAL, name + ": a file has at most 2^63 - 1 bytes");
  check_striping(name, f.striping);
  if (!f.codec.empty() && (f.commits || f.finished || f.array.extents.empty() || f.packed > f.size))
    refuse(EINVAL, name + ": only an array without commits is packed, and to less than it has");
  if (f.codec.empty() && f.packed != 0) refuse(EINVAL, name + ": it is not packed, and has no other size for that");
  if (f.fill.size() > max_fill) refuse(EINVAL, name + ": the fill value is longer than 64 KiB");
  if (f.array.extents.size() > max_dimensions)
    refuse(EINVAL, name + ": an array has at most " + std::to_string(max_dimensions) + " dimensions");
  for (const std::uint64_t e : f.array.extents)
    if (e > max_size) refuse(EINVAL, name + ": an extent passes 2^63 - 1");
  const auto& limits = f.array.max_extents;
  for (const std::uint64_t e : limits)
    if (e > max_size) refuse(EINVAL, name + ": a number of max_extents passes 2^63 - 1");
  if (limits.size() > 1 && !has_reserved_grid(f.array))
    refuse(EINVAL, name + ": only a file in tiles has max_extents in other dimensions than the first");
  if (has_reserved_grid(f.array) &&
      (f.array.tile.size() != limits.size() || std::ranges::find(f.array.tile, 0u) != f.array.tile.end()))
    refuse(EINVAL, name + ": a tile needs one number above 0 for each dimension of the array");
  if (has_reserved_grid(f.array) && !f.array.reached.empty() && f.array.reached.size() != limits.size())
    refuse(EINVAL, name + ": reached has another number of dimensions than the array");
  for (std::size_t k = 0; has_reserved_grid(f.array) && k < limits.size(); ++k)
    if (limits[k] < f.array.extents[k] || (!f.array.reached.empty() && limits[k] < f.array.reached[k]))
      refuse(EINVAL, name + ": a number of max_extents is below the extent");
}

void check_new_entry(const std::string& name, const new_entry& what) {
  if (what.kind < entry_kind::folder || what.kind > entry_kind::block_device)
    refuse(EINVAL, name + ": no such kind of entry");
  if (what.kind == entry_kind::link && (what.target.empty() || what.target.size() > max_target))
    refuse(what.target.empty() ? ENOENT : ENAMETOOLONG, name + ": the target of a symbolic link has 1 to 4095 bytes");
  if (what.target.find('\0') != what.target.npos) refuse(EINVAL, name + ": the target holds a zero byte");
  if (what.kind == entry_kind::file) check_striping(name, what.striping);
}

/// The entry whose name is to be taken away; it must be a folder, or none, where that is said, and empty.
path_resolution::slot present_at(const path_resolution& walk, const place& where, std::optional<bool> folder = {}) {
  const std::string name = shown(where);
  path_resolution::slot p = walk.slot_at(where);
  if (!p.present || !p.present->made) refuse(ENOENT, name + " does not exist; `ooc ls` shows what there is");
  walk.require(p.parent, may_write | may_enter, where.path, "remove things from its folder");
  const bool is_folder = p.present->kind == entry_kind::folder;
  if (folder && is_folder != *folder)
    refuse(*folder ? ENOTDIR : EISDIR, name + (*folder ? " is not a folder" : " is a folder"));
  if (is_folder && !walk.is_empty(p.present->id)) refuse(ENOTEMPTY, name + " is not empty; remove what is in it first");
  return p;
}

constexpr const char* to_make = "make anything in that folder";

}  // namespace

entry call_runner::run(const calls::create& q, const transacted& t) const {
  const new_file& f = q.file;
  const std::string name = shown(q.where);
  check_new_file(name, f);
  const path_resolution::slot p = t.walk.slot_at(q.where);
  if (p.present)
    refuse(EEXIST, name + (p.present->made ? " exists already; remove it first or take another name"
                                           : " is just being made by another program"));
  t.walk.require(p.parent, may_write | may_enter, q.where.path, "make files in that folder");
  const std::int64_t now = now_ns();
  ooc::striping s = f.striping;
  node_list nodes = f.nodes;
  choose_nodes(t.c, name, s, nodes);
  sqlite::run(
      t.c,
      "INSERT INTO entry (parent, name, kind, made, owner, grp, mode, created_ns, changed_ns, size,"
      " sn, nn, sf, sparse, fill, element_type, element_size, extents, max_extent, tile, stripe_map, codec, reserved)"
      " VALUES (?, ?, 2, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      p.parent.id, p.name, f.finished, who_.uid, who_.gid, masked(f.mode), now, now, f.size, s.sn, s.nn, s.sf, f.sparse,
      f.fill, f.array.element_type, f.array.element_size, numbers_to_text(f.array.extents), max_extent_column(f.array),
      numbers_to_text(f.array.tile), map_column(t.c, nodes), f.codec, f.packed);
  const auto id = static_cast<file_id>(t.c.last_insert_id());
  put_growth(t.c, id, f.array);
  if (!f.codec.empty()) use_feature(t.c, feature_packed);
  for (const auto& [key, value] : f.attributes) put_attribute(t.c, id, key, value, shown(q.where));
  if (f.commits) begin_commits(t.c, id, f.commit);
  if (f.finished)
    touch_folder(t.c, p.parent.id);
  else
    give_to_caller(t.c, id);
  return read_entry(t.c, id, join_path(split_path(q.where.path)));
}

nothing call_runner::run(const calls::commit& q, const transacted& t) const {
  require_maker(t.c, q.id);
  // One that has lost its last name is its user's as well, and gets none.
  sqlite::run(t.c,
              "DELETE FROM making WHERE id IN"
              " (SELECT id FROM entry WHERE id = ? AND substr(name, 1, 1) != '/')",
              q.id);
  if (t.c.changes() == 0)
    refuse(ENOENT, "file number " + std::to_string(q.id) +
                       " is not being made: committed already, removed, or swept as left by a dead process");
  sqlite::run(t.c, "UPDATE entry SET made = 1, changed_ns = ? WHERE id = ?", now_ns(), q.id);
  touch_folder(t.c, t.walk.folder_of(q.id));
  return {};
}

nothing call_runner::run(const calls::abandon& q, const transacted& t) const {
  require_maker(t.c, q.id);
  (void)bury(t.c, q.id);
  return {};
}

nothing call_runner::run(const calls::forget& q, const transacted& t) const {
  sqlite::run(t.c, "DELETE FROM removed WHERE id = ?", q.id);
  return {};
}

nothing call_runner::run(const calls::make_folder& q, const transacted& t) const {
  const auto parts = split_path(q.where.path);
  const std::string name = shown(q.where);
  path_resolution::node folder = t.walk.start(q.where);
  if (parts.empty() && !q.parents) refuse(EEXIST, name + " exists already");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if (folder.kind != entry_kind::folder)
      refuse(ENOTDIR,
             name + ": " + (i == 0 ? shown(q.where.folder) : shown(parts[i - 1])) + " is a file, not a folder");
    t.walk.require(folder, may_enter, q.where.path, "pass a folder on the way");
    const auto present = t.walk.child(folder, parts[i]);
    if (present && last && !(q.parents && present->kind == entry_kind::folder))
      refuse(EEXIST, name + " exists already; take another name");
    if (present && !present->made) refuse(ENOTDIR, name + ": '" + parts[i] + "' is being made as a file");
    if (present) {
      folder = *present;
      continue;
    }
    if (!last && !q.parents)
      refuse(ENOENT,
             name + ": there is no folder '" + parts[i] + "'; make it first, or ask for parents to be made (-p)");
    t.walk.require(folder, may_write | may_enter, q.where.path, "make folders there");
    touch_folder(t.c, folder.id);
    folder = t.walk.insert_folder(folder, parts[i], masked(q.mode));
  }
  return {};
}

entry call_runner::run(const calls::make& q, const transacted& t) const {
  const new_entry& what = q.what;
  const std::string name = shown(q.where);
  check_new_entry(name, what);
  const path_resolution::slot p = t.walk.slot_at(q.where);
  if (p.present) refuse(EEXIST, name + " exists already");
  t.walk.require(p.parent, may_write | may_enter, q.where.path, to_make);
  const std::uint32_t owner = what.owner == keep_id ? who_.uid : what.owner;
  const bool inherits = (p.parent.mode & S_ISGID) != 0;
  const std::uint32_t group = inherits ? p.parent.group : what.group == keep_id ? who_.gid : what.group;
  if (who_.uid != 0 && (owner != who_.uid || (!inherits && !is_member(who_, group))))
    refuse(EPERM, name + ": only user 0 may make it for another user or group");
  if (what.kind != entry_kind::file && what.kind != entry_kind::folder) use_feature(t.c, feature_kinds);
  std::uint32_t mode = what.mode & 07777;
  if (inherits && what.kind == entry_kind::folder) mode |= S_ISGID;
  const std::int64_t now = now_ns();
  const bool file = what.kind == entry_kind::file;
  ooc::striping s;
  node_list nodes;
  if (file) {
    s = what.striping;
    nodes = what.nodes;
    choose_nodes(t.c, name, s, nodes);
  }
  sqlite::run(t.c,
              "INSERT INTO entry (parent, name, kind, owner, grp, mode, created_ns, changed_ns,"
              " data_changed_ns, sn, nn, sf, sparse, target, device, stripe_map)"
              " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
              p.parent.id, p.name, static_cast<int>(what.kind), owner, group, mode, now, now, now, s.sn, s.nn, s.sf,
              file, what.target, what.device, map_column(t.c, nodes));
  const auto id = static_cast<file_id>(t.c.last_insert_id());
  touch_folder(t.c, p.parent.id);
  return read_entry(t.c, id, join_path(split_path(q.where.path)));
}

entry call_runner::run(const calls::link& q, const transacted& t) const {
  const std::string name = shown(q.where);
  const path_resolution::node n = t.walk.resolve(q.id);
  if (n.kind == entry_kind::folder) refuse(EPERM, name + ": a folder has one name");
  if (!n.made) refuse(ENOENT, name + ": the file has been removed");
  const path_resolution::slot p = t.walk.slot_at(q.where);
  if (p.present) refuse(EEXIST, name + " exists already");
  t.walk.require(p.parent, may_write | may_enter, q.where.path, to_make);
  use_feature(t.c, feature_links);
  sqlite::run(t.c, "INSERT INTO link VALUES (?, ?, ?)", p.parent.id, p.name, n.id);
  sqlite::run(t.c, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), n.id);
  touch_folder(t.c, p.parent.id);
  return read_entry(t.c, n.id, join_path(split_path(q.where.path)));
}

// Takes the name away.  A file without another one goes where no name leads, and belongs to the caller.
entry call_runner::drop_name(const transacted& t, const path_resolution::slot& p) const {
  const file_id id = p.present->id;
  entry e = read_entry(t.c, id, p.name);
  --e.names;
  touch_folder(t.c, p.parent.id);
  if (t.walk.drop_further_name(p)) return e;
  if (e.kind != entry_kind::file) {
    delete_entry(t.c, id);
    return e;
  }
  sqlite::run(t.c, "UPDATE entry SET made = 0, parent = ?, name = ?, changed_ns = ? WHERE id = ?", root_id,
              "/" + std::to_string(id), now_ns(), id);
  give_to_caller(t.c, id);
  return e;
}

entry call_runner::run(const calls::remove& q, const transacted& t) const {
  const path_resolution::slot p = present_at(t.walk, q.where);
  entry e = read_entry(t.c, p.present->id, join_path(split_path(q.where.path)));
  --e.names;
  touch_folder(t.c, p.parent.id);
  if (t.walk.drop_further_name(p)) return e;
  delete_entry(t.c, e.id);
  if (e.kind == entry_kind::file) sqlite::run(t.c, "INSERT INTO removed VALUES (?)", e.id);
  return e;
}

entry call_runner::run(const calls::unlink& q, const transacted& t) const {
  return drop_name(t, present_at(t.walk, q.where, q.folder));
}

entry call_runner::run(const calls::take_over& q, const transacted& t) const {
  const path_resolution::node old = t.walk.resolve(q.of);
  const std::string path = t.walk.path_of(old.id), name = storage::in_quotes(path);
  const entry next = read_entry(t.c, q.id, path);
  if (next.kind != entry_kind::file || old.kind != entry_kind::file || !old.made || next.id == old.id)
    refuse(EINVAL, name + ": only another file takes the place of a file");
  if (who_.uid != 0 && who_.uid != old.owner)
    refuse(EACCES, name + ": only its owner (user " + std::to_string(old.owner) + ") may give it other stripe objects");
  entry e = read_entry(t.c, old.id, path);
  if (e.generation != q.generation)
    throw usage_error(errc::conflict, name + " has been opened for writing meanwhile, and stays where it is");
  if (next.names > 1 || next.size != e.size || next.commit.has_value() != e.commit.has_value())
    refuse(EINVAL, name + ": another size, or other names or commits, than the file that is to take its place");
  if (next.names == 0) {  // it is being made
    require_maker(t.c, next.id);
    sqlite::run(t.c, "DELETE FROM making WHERE id = ?", next.id);
    if (t.c.changes() == 0) refuse(ENOENT, name + ": the file that is to take its place has been swept");
  } else {
    t.walk.require(t.walk.resolve(next.id), may_write, path, "move it");
  }
  e.names = 0;
  replace_rows(t.c, next.id, old.id);
  sqlite::run(t.c, "INSERT INTO removed VALUES (?)", old.id);
  return e;
}

entry call_runner::run(const calls::move& q, const transacted& t) const {
  const std::string name = shown(q.from), new_name = shown(q.to);
  const path_resolution::slot source = t.walk.slot_at(q.from);
  if (!source.present || !source.present->made) refuse(ENOENT, name + " does not exist; `ooc ls` shows what there is");
  const path_resolution::slot target = t.walk.slot_at(q.to);
  const bool same_name = target.parent.id == source.parent.id && target.name == source.name;
  if (target.present && target.present->id == source.present->id && (same_name || q.replace)) return {};
  const bool folder = source.present->kind == entry_kind::folder;
  if (target.present && !q.replace) {
    if (target.present->kind == entry_kind::folder && !t.walk.is_empty(target.present->id))
      refuse(ENOTEMPTY, new_name + " is a folder with something in it; name the new place in full");
    refuse(EEXIST, new_name + " exists already; remove it first or take another name");
  }
  if (target.present && !target.present->made) refuse(EBUSY, new_name + " is just being made");
  t.walk.require(source.parent, may_write | may_enter, q.from.path, "move things out of its folder");
  t.walk.require(target.parent, may_write | may_enter, q.to.path, "move things into its folder");
  if (target.present) {
    if (folder != (target.present->kind == entry_kind::folder))
      refuse(folder ? ENOTDIR : EISDIR, new_name + (folder ? " is not a folder" : " is a folder"));
    if (folder && !t.walk.is_empty(target.present->id)) refuse(ENOTEMPTY, new_name + " is not empty");
  }
  if (folder && t.walk.is_within(target.parent.id, source.present->id))
    refuse(EINVAL, name + " cannot be moved into itself (" + new_name + ")");
  entry replaced;
  if (target.present) replaced = drop_name(t, target);
  t.walk.move_name(source, target);
  touch_folder(t.c, source.parent.id);
  touch_folder(t.c, target.parent.id);
  return replaced;
}

}  // namespace ooc::storage
