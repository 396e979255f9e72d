#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>

#include "storage/layout/element_type.hpp"
#include "storage/namespace/local_metadata_by_id.hpp"
#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/metadata_database.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/service/permission.hpp"

namespace ooc::storage {

using sqlite::query;
using sqlite::run;
using sqlite::transaction;
using sqlite::transaction_kind;

namespace {

constexpr std::size_t listed_entries = 1000, listed_bytes = std::size_t{1} << 20;  // in one part
constexpr std::size_t max_target = 4095;

std::string numbered_entry(file_id id) {
  return "entry number " + std::to_string(id);
}

void touch_folder(sqlite::connection& c, file_id folder) {
  const std::int64_t now = now_ns();
  run(c, "UPDATE entry SET changed_ns = ?, data_changed_ns = ? WHERE id = ?", now, now, folder);
}

void check_new_entry(const std::string& name, const new_entry& what) {
  if (what.kind < entry_kind::folder || what.kind > entry_kind::block_device)
    refuse(EINVAL, name + ": no such kind of entry");
  if (what.kind == entry_kind::link && (what.target.empty() || what.target.size() > max_target))
    refuse(what.target.empty() ? ENOENT : ENAMETOOLONG,
           name + ": the target of a symbolic link has 1 to 4095 bytes");
  if (what.target.find('\0') != what.target.npos) refuse(EINVAL, name + ": the target holds a zero byte");
  if (what.kind == entry_kind::file && (what.striping.nn == 0 || what.striping.sf == 0))
    refuse(EINVAL, name + ": striping needs a number of nodes (nn) and a stripe size (sf)");
  if (what.kind == entry_kind::file &&
      what.striping.sf > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / what.striping.nn)
    refuse(EINVAL, name + ": nn * sf passes 2^63 - 1 bytes");
}

}  // namespace

entry local_metadata_by_id::stat(file_id id) {
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  const transaction t(c, transaction_kind::read);
  const path_resolution walk(c, who_);
  (void)walk.at(id);
  if (call_) walk.require_way_to(id);
  return read_entry(c, id, walk.path_of(id));
}

entry local_metadata_by_id::look_in(const place& at) {
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  const transaction t(c, transaction_kind::read);
  const path_resolution walk(c, who_);
  if (call_) walk.require_way_to(at.folder);
  const auto p = walk.in_folder(at.folder, at.name);
  if (!p.present || !p.present->made) refuse(ENOENT, "there is no '" + at.name + "'");
  return read_entry(c, p.present->id, at.name);
}

folder_part local_metadata_by_id::list_in(file_id folder, std::string_view after) {
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  const transaction t(c, transaction_kind::read);
  const path_resolution walk(c, who_);
  const path_resolution::node n = walk.at(folder);
  if (n.kind != entry_kind::folder) refuse(ENOTDIR, numbered_entry(folder) + " is not a folder");
  if (call_) walk.require_way_to(folder);
  walk.require(n, may_read, walk.path_of(folder), "list it");
  return read_folder_part(c, folder, "", after, listed_entries, listed_bytes);
}

entry local_metadata_by_id::make(const place& at, const new_entry& what) {
  const std::string name = storage::quoted(at.name);
  check_new_entry(name, what);
  db_->require_writable(name);
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  if (what.kind == entry_kind::file) set_ids_aside(c);
  transaction t(c, transaction_kind::write);
  const path_resolution walk(c, who_);
  if (call_) walk.require_way_to(at.folder);
  const auto p = walk.in_folder(at.folder, at.name);
  if (p.present) refuse(EEXIST, name + " exists already");
  walk.require(p.parent, may_write | may_enter, at.name, "make anything in that folder");
  const std::uint32_t owner = what.owner == keep_id ? who_.uid : what.owner;
  const bool inherits = (p.parent.mode & S_ISGID) != 0;
  const std::uint32_t group = inherits ? p.parent.group : what.group == keep_id ? who_.gid : what.group;
  if (who_.uid != 0 && (owner != who_.uid || (!inherits && !is_member(who_, group))))
    refuse(EPERM, name + ": only user 0 may make it for another user or group");
  if (what.kind != entry_kind::file && what.kind != entry_kind::folder) use_feature(c, feature_kinds);
  std::uint32_t mode = what.mode & 07777;
  if (inherits && what.kind == entry_kind::folder) mode |= S_ISGID;
  const std::int64_t now = now_ns();
  const bool file = what.kind == entry_kind::file;
  run(c,
      "INSERT INTO entry (parent, name, kind, owner, grp, mode, created_ns, changed_ns,"
      " data_changed_ns, sn, nn, sf, sparse, target, device)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      p.parent.id, p.name, static_cast<int>(what.kind), owner, group, mode, now, now, now,
      file ? what.striping.sn : 0, file ? what.striping.nn : 0, file ? what.striping.sf : 0, file,
      what.target, what.device);
  const auto id = static_cast<file_id>(c.last_insert_id());
  touch_folder(c, p.parent.id);
  entry e = read_entry(c, id, at.name);
  record(e);
  t.commit();
  return e;
}

entry local_metadata_by_id::link(file_id id, const place& at) {
  const std::string name = storage::quoted(at.name);
  db_->require_writable(name);
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  transaction t(c, transaction_kind::write);
  const path_resolution walk(c, who_);
  if (call_) walk.require_way_to(id);
  if (call_) walk.require_way_to(at.folder);
  const path_resolution::node n = walk.at(id);
  if (n.kind == entry_kind::folder) refuse(EPERM, name + ": a folder has one name");
  if (!n.made) refuse(ENOENT, name + ": the file has been removed");
  const auto p = walk.in_folder(at.folder, at.name);
  if (p.present) refuse(EEXIST, name + " exists already");
  walk.require(p.parent, may_write | may_enter, at.name, "make anything in that folder");
  use_feature(c, feature_links);
  run(c, "INSERT INTO link VALUES (?, ?, ?)", p.parent.id, p.name, id);
  run(c, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), id);
  touch_folder(c, p.parent.id);
  entry e = read_entry(c, id, at.name);
  record(e);
  t.commit();
  return e;
}

// Takes the name away.  A file without another one goes where no name leads, and belongs to the caller, as if he
// were making it: if he dies, who opens the store next finds it dead.
entry local_metadata_by_id::drop_name(const path_resolution& walk, const path_resolution::place& p) const
    OOC_REQUIRES(db_->mutex) {
  auto& c = db_->now();
  const file_id id = p.present->id;
  entry e = read_entry(c, id, p.name);
  --e.names;
  touch_folder(c, p.parent.id);
  if (walk.drop_further_name(p)) return e;
  if (e.kind != entry_kind::file) {
    run(c, "DELETE FROM attribute WHERE entry = ?", id);
    run(c, "DELETE FROM entry WHERE id = ?", id);
    return e;
  }
  run(c, "UPDATE entry SET made = 0, parent = ?, name = ?, changed_ns = ? WHERE id = ?", root_id,
      "/" + std::to_string(id), now_ns(), id);
  const process_identity me = maker();
  run(c, "INSERT INTO making VALUES (?, ?, ?, ?, ?)", id, me.pid, me.start, me.boot, me.pid_space);
  return e;
}

entry local_metadata_by_id::unlink(const place& at, bool folder) {
  const std::string name = storage::quoted(at.name);
  db_->require_writable(name);
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  transaction t(c, transaction_kind::write);
  const path_resolution walk(c, who_);
  if (call_) walk.require_way_to(at.folder);
  const auto p = walk.in_folder(at.folder, at.name);
  if (!p.present || !p.present->made) refuse(ENOENT, name + " does not exist");
  walk.require(p.parent, may_write | may_enter, at.name, "remove things from its folder");
  const bool is_folder = p.present->kind == entry_kind::folder;
  if (is_folder != folder)
    refuse(folder ? ENOTDIR : EISDIR, name + (folder ? " is not a folder" : " is a folder"));
  if (folder && !walk.is_empty(p.present->id)) refuse(ENOTEMPTY, name + " is not empty");
  const entry e = drop_name(walk, p);
  record(e);
  t.commit();
  return e;
}

entry local_metadata_by_id::move(const place& from, const place& to, bool replace) {
  const std::string name = storage::quoted(from.name), new_name = storage::quoted(to.name);
  db_->require_writable(name);
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  transaction t(c, transaction_kind::write);
  const path_resolution walk(c, who_);
  if (call_) walk.require_way_to(from.folder);
  if (call_) walk.require_way_to(to.folder);
  const auto source = walk.in_folder(from.folder, from.name);
  if (!source.present || !source.present->made) refuse(ENOENT, name + " does not exist");
  auto target = walk.in_folder(to.folder, to.name);
  if (target.present && !replace) refuse(EEXIST, new_name + " exists already");
  if (target.present && target.present->id == source.present->id) return {};
  if (target.present && !target.present->made) refuse(EBUSY, new_name + " is just being made");
  walk.require(source.parent, may_write | may_enter, from.name, "move things out of its folder");
  walk.require(target.parent, may_write | may_enter, to.name, "move things into its folder");
  const bool folder = source.present->kind == entry_kind::folder;
  if (target.present) {
    if (folder != (target.present->kind == entry_kind::folder))
      refuse(folder ? ENOTDIR : EISDIR, new_name + (folder ? " is not a folder" : " is a folder"));
    if (folder && !walk.is_empty(target.present->id)) refuse(ENOTEMPTY, new_name + " is not empty");
  }
  if (folder && walk.is_within(to.folder, source.present->id))
    refuse(EINVAL, name + " cannot be moved into itself (" + new_name + ")");
  entry replaced;
  if (target.present) replaced = drop_name(walk, target);
  walk.move_name(source, target);
  touch_folder(c, source.parent.id);
  touch_folder(c, target.parent.id);
  record(replaced);
  t.commit();
  return replaced;
}

// Looks the entry up, has f(connection, resolution, entry, path) check and change it, notes the time, and returns
// it as it is then.
template <class F>
entry local_metadata_by_id::change_entry(file_id id, F f) {
  db_->require_writable(numbered_entry(id));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  transaction t(c, transaction_kind::write);
  const path_resolution walk(c, who_);
  if (call_) walk.require_way_to(id);
  const path_resolution::node n = walk.at(id);
  const std::string path = walk.path_of(id);
  f(c, walk, n, path);
  run(c, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), id);
  entry e = read_entry(c, id, path);
  record(e);
  t.commit();
  return e;
}

entry local_metadata_by_id::change(file_id id, const entry_change& what) {
  return change_entry(id, [&](sqlite::connection& c, const path_resolution& walk,
                              const path_resolution::node& n, const std::string& path) {
    if (what.mode || what.owner || what.group) {
      const std::uint32_t owner = what.owner.value_or(n.owner), group = what.group.value_or(n.group);
      walk.require_owner(n, path, "change its mode, owner or group");
      if (who_.uid != 0 && owner != n.owner)
        refuse(EPERM, storage::quoted(path) + ": only user 0 may give it to user " + std::to_string(owner));
      if (who_.uid != 0 && group != n.group && !is_member(who_, group))
        refuse(EPERM, storage::quoted(path) + ": user " + std::to_string(who_.uid) +
                          " may give it to a group of his own only (" + std::to_string(who_.gid) + "), not to " +
                          std::to_string(group));
      run(c, "UPDATE entry SET owner = ?, grp = ?, mode = ? WHERE id = ?", owner, group,
          what.mode.value_or(n.mode) & 07777, id);
    }
    if (what.data_changed_ns || what.data_read_ns || what.size_at_least) {
      if (who_.uid != n.owner) walk.require(n, may_write, path, "change its size or times");
      if (what.data_changed_ns)
        run(c, "UPDATE entry SET data_changed_ns = ? WHERE id = ?", *what.data_changed_ns, id);
      if (what.data_read_ns)
        run(c, "UPDATE entry SET data_read_ns = ? WHERE id = ?", *what.data_read_ns, id);
    }
    if (!what.size_at_least) return;
    const entry now = read_entry(c, id, path);
    if (now.kind != entry_kind::file || !now.array.extents.empty())
      refuse(EINVAL, storage::quoted(path) + ": only a plain file gets longer by being written");
    if (*what.size_at_least > allocated_size(now))
      refuse(EINVAL, storage::quoted(path) + ": " + std::to_string(*what.size_at_least) +
                         " bytes are more than its stripe objects have");
    // What was reserved stays so, whether visible or not.
    if (*what.size_at_least > now.size)
      run(c, "UPDATE entry SET size = ?, reserved = ? WHERE id = ?", *what.size_at_least,
          now.reserved > *what.size_at_least ? now.reserved : 0, id);
  });
}

namespace {

constexpr std::string_view striping_key = "ooc.striping", type_key = "ooc.type";

// "0,2,65536": first node, nodes, bytes of a stripe.
ooc::striping striping_from_text(std::string_view text, const std::string& path) {
  ooc::striping s;
  unsigned long long sf = 0;
  char rest = 0;
  if (std::sscanf(std::string(text).c_str(), "%u,%u,%llu%c", &s.sn, &s.nn, &sf, &rest) != 3 || s.nn == 0 || sf == 0 ||
      sf > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / s.nn)
    refuse(EINVAL, storage::quoted(path) + ": '" + std::string(text) +
                       "' is no striping: give first node, nodes and bytes of a stripe, as in 0,2,65536");
  s.sf = sf;
  return s;
}

// What says how the bytes of a file are to be kept can be said as long as it has none.
void put_own_attribute(sqlite::connection& c, const entry& e, std::string_view key, std::string_view value) {
  if (e.kind != entry_kind::file || allocated_size(e) != 0 || !e.array.extents.empty())
    refuse(EPERM, storage::quoted(e.path) + ": striping and type are set as long as a file is empty");
  if (key == striping_key) {
    const ooc::striping s = striping_from_text(value, e.path);
    run(c, "UPDATE entry SET sn = ?, nn = ?, sf = ? WHERE id = ?", s.sn, s.nn, s.sf, e.id);
    return;
  }
  const std::uint32_t bytes = element_size(value);
  if (bytes == 0)
    refuse(EINVAL, storage::quoted(e.path) + ": there is no element type '" + std::string(value) + "'");
  run(c, "UPDATE entry SET element_type = ?, element_size = ? WHERE id = ?", value, bytes, e.id);
}

}  // namespace

void local_metadata_by_id::set_attribute(file_id id, std::string_view key, std::string_view value) {
  change_entry(id, [&](sqlite::connection& c, const path_resolution& walk,
                       const path_resolution::node& n, const std::string& path) {
    walk.require(n, may_write, path, "change its attributes");
    if (key == striping_key || key == type_key) return put_own_attribute(c, read_entry(c, id, path), key, value);
    put_attribute(c, id, key, value, path);
  });
}

void local_metadata_by_id::remove_attribute(file_id id, std::string_view key) {
  change_entry(id, [&](sqlite::connection& c, const path_resolution& walk,
                       const path_resolution::node& n, const std::string& path) {
    walk.require(n, may_write, path, "change its attributes");
    run(c, "DELETE FROM attribute WHERE entry = ? AND key = ?", id, key);
    if (c.changes() == 0)
      refuse(ENODATA, storage::quoted(path) + " has no attribute '" + std::string(key) + "'");
  });
}

}  // namespace ooc::storage
