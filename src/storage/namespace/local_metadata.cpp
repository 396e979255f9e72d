#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"
#include "storage/namespace/local_metadata.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

#include "storage/layout/element_order.hpp"
#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/file_locks.hpp"
#include "storage/namespace/metadata_database.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/path_resolution.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/namespace/store_path.hpp"

namespace ooc::storage {

using sqlite::query;
using sqlite::run;
using sqlite::transaction;
using sqlite::transaction_kind;

namespace {

constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t max_fill = 1 << 16;  // bytes in one element

std::string numbered_file(file_id id) {
  return "file number " + std::to_string(id);
}

void check_new_file(std::string_view path, const new_file& f) {
  const std::string name = quoted(path);
  if (f.size > max_size) refuse(EINVAL, name + ": a file has at most 2^63 - 1 bytes");
  if (f.striping.nn == 0 || f.striping.sf == 0)
    refuse(EINVAL, name + ": striping needs a number of nodes (nn) and a stripe size (sf)");
  if (f.striping.sf > max_size / f.striping.nn)
    refuse(EINVAL, name + ": nn * sf passes 2^63 - 1 bytes");
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

}  // namespace

local_metadata::local_metadata(const std::filesystem::path& file, std::string_view store_uuid,
                               credentials who)
    : metadata_caller(std::make_shared<database>(), std::move(who)) {
  db_->connection = open_metadata_database(file, store_uuid);
  db_->locks = file.parent_path() / "metadata.locks";
}

local_metadata::local_metadata(const std::filesystem::path& file, std::string_view store_uuid,
                               credentials who, const read_only_access& why)
    : metadata_caller(std::make_shared<database>(), std::move(who)) {
  db_->reader.emplace(file, std::string(store_uuid));
  db_->read_only = why;
}

local_metadata::local_metadata(std::shared_ptr<database> db, credentials who,
                               std::optional<client_call> call)
    : metadata_caller(std::move(db), std::move(who), call) {}

std::shared_ptr<metadata_service> local_metadata::as(credentials who) const {
  return std::shared_ptr<metadata_service>(new local_metadata(db_, std::move(who)));
}

// Reading.

entry local_metadata::lookup(std::string_view path) {
  const database::use lock(db_->mutex, *db_);
  const transaction t(db_->now(), transaction_kind::read);
  return read_entry(db_->now(), path_resolution(db_->now(), who_).resolve(path).id,
                    join_path(split_path(path)));
}

entry local_metadata::open(std::string_view path, bool write, bool unfinished) {
  if (write) db_->require_writable(quoted(path));
  const entry e = lookup(path);
  if (e.kind != entry_kind::file && e.kind != entry_kind::folder)
    refuse(EINVAL, quoted(path) + " is a symbolic link or a special file; only a mount (`ooc mount`) "
                                  "can follow it");
  if (e.kind == entry_kind::folder)
    refuse(EISDIR, e.path.empty() ? "the root folder is not a file"
                                  : quoted(path) + " is a folder, not a file");
  if (!permits(who_, e, write ? may_read | may_write : may_read))
    refuse(EACCES, quoted(path) + ": user " + std::to_string(who_.uid) + " may not " +
                       (write ? "write" : "read") + " it; its owner (user " +
                       std::to_string(e.owner) + ") can change the mode (`ooc chmod`)");
  if (unfinished) return e;
  const database::use lock(db_->mutex, *db_);
  query q(db_->now(), "SELECT in_progress FROM entry WHERE id = ?", e.id);
  if (const std::string what = q.next() ? q.text(0) : ""; !what.empty())
    refuse(EBUSY, quoted(path) + " is in the middle of an algorithm, its contents are neither the old "
                                 "nor the new ones (" + what + "); if that has died, make the array "
                                 "anew, or open it with options.unfinished = ooc::open_unfinished");
  return e;
}

entry local_metadata::find(file_id id) {
  const database::use lock(db_->mutex, *db_);
  const transaction t(db_->now(), transaction_kind::read);
  {
    query q(db_->now(), "SELECT 1 FROM entry WHERE id = ? AND " OOC_ENTRY_IN_USE, id);
    if (!q.next())
      refuse(ENOENT, "file number " + std::to_string(id) + " has been removed from the store");
  }
  const path_resolution walk(db_->now(), who_);
  if (call_) walk.require_way_to(id);
  return read_entry(db_->now(), id, walk.path_of(id));
}

std::vector<entry> local_metadata::list(std::string_view path) {
  const database::use lock(db_->mutex, *db_);
  const transaction t(db_->now(), transaction_kind::read);
  const path_resolution walk(db_->now(), who_);
  const path_resolution::node n = walk.resolve(path);
  const std::string clean = join_path(split_path(path));
  if (n.kind != entry_kind::folder) return {read_entry(db_->now(), n.id, clean)};
  walk.require(n, may_read, path, "list it");
  return read_folder(db_->now(), n.id, clean);
}

std::vector<file_id> local_metadata::files() {
  const database::use lock(db_->mutex, *db_);
  return read_file_ids(db_->now(), 0, max_size);
}

// Making and removing.

entry local_metadata::create(std::string_view path, const new_file& f) {
  check_new_file(path, f);
  db_->require_writable(quoted(path));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  set_ids_aside(c);
  transaction t(c, transaction_kind::write);
  const path_resolution walk(c, who_);
  const path_resolution::place p = walk.place_for(path);
  if (p.present)
    refuse(EEXIST,
           quoted(path) + (p.present->made ? " exists already; remove it first or take another name"
                                           : " is just being made by another program"));
  walk.require(p.parent, may_write | may_enter, path, "make files in that folder");
  const std::int64_t now = now_ns();
  run(c,
      "INSERT INTO entry (parent, name, kind, made, owner, grp, mode, created_ns, changed_ns, size,"
      " sn, nn, sf, sparse, fill, element_type, element_size, extents, max_extent, tile)"
      " VALUES (?, ?, 2, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      p.parent.id, p.name, f.finished, who_.uid, who_.gid, masked(f.mode), now, now, f.size,
      f.striping.sn, f.striping.nn, f.striping.sf, f.sparse, f.fill, f.array.element_type,
      f.array.element_size, numbers_to_text(f.array.extents), max_extent_column(f.array),
      numbers_to_text(f.array.tile));
  const auto id = static_cast<file_id>(c.last_insert_id());
  put_growth(c, id, f.array);
  const process_identity me = maker();
  if (!f.finished)
    run(c, "INSERT INTO making VALUES (?, ?, ?, ?, ?)", id, me.pid, me.start, me.boot,
        me.pid_space);
  entry e = read_entry(c, id, join_path(split_path(path)));
  record(e);
  t.commit();
  return e;
}

void local_metadata::commit(file_id id) {
  db_->require_writable(numbered_file(id));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  transaction t(c, transaction_kind::write);
  require_maker(id);
  run(c, "DELETE FROM making WHERE id = ?", id);
  if (c.changes() == 0)
    refuse(ENOENT, "file number " + std::to_string(id) +
                       " is not being made: committed already, "
                       "or swept as left by a dead process");
  run(c, "UPDATE entry SET made = 1, changed_ns = ? WHERE id = ?", now_ns(), id);
  record();
  t.commit();
}

void local_metadata::abandon(file_id id) {
  db_->require_writable(numbered_file(id));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  transaction t(c, transaction_kind::write);
  require_maker(id);
  run(c, "DELETE FROM making WHERE id = ?", id);
  if (c.changes() == 0) return;
  run(c, "DELETE FROM attribute WHERE entry = ?", id);
  run(c, "DELETE FROM entry WHERE id = ?", id);
  run(c, "INSERT OR IGNORE INTO removed VALUES (?)", id);
  t.commit();
}

void local_metadata::mkdir(std::string_view path, std::uint32_t mode, bool parents) {
  const auto parts = split_path(path);
  db_->require_writable(quoted(path));
  const database::use lock(db_->mutex, *db_);
  transaction t(db_->now(), transaction_kind::write);
  const path_resolution walk(db_->now(), who_);
  if (parts.empty()) {
    if (parents) return;
    refuse(EEXIST, "the root folder exists already");
  }
  path_resolution::node folder = walk.root();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if (folder.kind != entry_kind::folder)
      refuse(ENOTDIR, quoted(path) + ": '" + parts[i - 1] + "' is a file, not a folder");
    walk.require(folder, may_enter, path, "pass a folder on the way");
    const auto present = walk.child(folder, parts[i]);
    if (present && last && !(parents && present->kind == entry_kind::folder))
      refuse(EEXIST, quoted(path) + " exists already; take another name");
    if (present && !present->made)
      refuse(ENOTDIR, quoted(path) + ": '" + parts[i] + "' is being made as a file");
    if (present) {
      folder = *present;
      continue;
    }
    if (!last && !parents)
      refuse(ENOENT, quoted(path) + ": there is no folder '" + parts[i] +
                         "'; make it first, or ask for parents to be made (-p)");
    walk.require(folder, may_write | may_enter, path, "make folders there");
    folder = walk.insert_folder(folder, parts[i], masked(mode));
  }
  record();
  t.commit();
}

void local_metadata::rename(std::string_view from, std::string_view to) {
  db_->require_writable(quoted(from));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  transaction t(c, transaction_kind::write);
  const path_resolution walk(c, who_);
  const path_resolution::place source = walk.place_for(from);
  if (!source.present || !source.present->made)
    refuse(ENOENT, quoted(from) + " does not exist; `ooc ls` shows what there is");
  const path_resolution::place target = walk.place_for(to);
  if (target.present && target.present->id == source.present->id) return;
  if (target.present && target.present->kind == entry_kind::folder) {
    if (!walk.is_empty(target.present->id))
      refuse(ENOTEMPTY,
             quoted(to) + " is a folder with something in it; name the new place in full");
  }
  if (target.present)
    refuse(EEXIST, quoted(to) + " exists already; remove it first or take another name");
  walk.require(source.parent, may_write | may_enter, from, "move things out of its folder");
  walk.require(target.parent, may_write | may_enter, to, "move things into its folder");
  if (walk.is_within(target.parent.id, source.present->id))
    refuse(EINVAL, quoted(from) + " cannot be moved into itself (" + quoted(to) + ")");
  walk.move_name(source, target);
  record();
  t.commit();
}

entry local_metadata::remove(std::string_view path) {
  db_->require_writable(quoted(path));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  transaction t(c, transaction_kind::write);
  const path_resolution walk(c, who_);
  const path_resolution::place p = walk.place_for(path);
  if (!p.present || !p.present->made)
    refuse(ENOENT, quoted(path) + " does not exist; `ooc ls` shows what there is");
  walk.require(p.parent, may_write | may_enter, path, "remove things from its folder");
  const file_id id = p.present->id;
  if (p.present->kind == entry_kind::folder && !walk.is_empty(id))
    refuse(ENOTEMPTY, quoted(path) + " is not empty; remove what is in it first");
  entry e = read_entry(c, id, join_path(split_path(path)));
  --e.names;
  if (!walk.drop_further_name(p)) {
    run(c, "DELETE FROM attribute WHERE entry = ?", id);
    run(c, "DELETE FROM entry WHERE id = ?", id);
    if (e.kind == entry_kind::file) run(c, "INSERT INTO removed VALUES (?)", id);
  }
  record(e);
  t.commit();
  return e;
}

void local_metadata::forget(file_id id) {
  db_->require_writable(numbered_file(id));
  const database::use lock(db_->mutex, *db_);
  run(db_->now(), "DELETE FROM removed WHERE id = ?", id);
}

capability_ptr local_metadata::removal_capability(file_id id) {
  const database::use lock(db_->mutex, *db_);
  query q(db_->now(), "SELECT 1 FROM entry WHERE id = ?", id);
  if (q.next())
    refuse(EBUSY, "file number " + std::to_string(id) + " is in use; its stripe objects cannot be removed");
  // A right to remove a file that is yet to come is none to give away.
  query last(db_->now(), "SELECT seq FROM sqlite_sequence WHERE name = 'entry'");
  if (call_ && (!last.next() || id > last.unsigned_integer(0)))
    refuse(EINVAL, "file number " + std::to_string(id) + " was never in use");
  return {};
}

std::vector<file_id> local_metadata::unfinished() {
  const database::use lock(db_->mutex, *db_);
  std::vector<file_id> ids;
  for (const file_maker& m : read_makers(db_->now()))
    if (db_->may_be_alive(m.maker)) ids.push_back(m.file);
  return ids;
}

std::vector<file_id> local_metadata::dead() {
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  std::vector<file_id> ids;
  for (const auto& [id, maker] : read_makers(c)) {
    if (db_->may_be_alive(maker)) continue;
    if (db_->reader) {
      ids.push_back(id);
      continue;
    }
    transaction t(c, transaction_kind::write);
    run(c, "DELETE FROM making WHERE id = ?", id);
    if (c.changes() == 0) continue;  // another process swept it first
    run(c, "DELETE FROM attribute WHERE entry = ?", id);
    run(c, "DELETE FROM entry WHERE id = ?", id);
    run(c, "INSERT OR IGNORE INTO removed VALUES (?)", id);
    t.commit();
  }
  query q(c, "SELECT id FROM removed");
  while (q.next()) ids.push_back(q.unsigned_integer(0));
  return ids;
}

// Changing.

namespace {

std::uint64_t generation_of(sqlite::connection& c, file_id id) {
  query q(c, "SELECT generation FROM entry WHERE id = ? AND kind = 2 AND " OOC_ENTRY_IN_USE, id);
  if (!q.next())
    refuse(ENOENT, "file number " + std::to_string(id) + " has been removed from the store");
  return q.unsigned_integer(0);
}

}  // namespace

bool local_metadata::set_size(file_id id, std::uint64_t size,
                              const std::vector<std::uint64_t>& extents,
                              std::uint64_t generation, std::uint64_t reserved) {
  if (size > max_size || reserved > max_size) refuse(EINVAL, "a file has at most 2^63 - 1 bytes");
  if (reserved <= size) reserved = 0;
  db_->require_writable(numbered_file(id));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  std::optional<durable_commits> durable;
  if (generation > generation_of(c, id)) durable.emplace(c);  // the stripe objects have it already, durably
  transaction t(c, transaction_kind::write);
  const std::uint64_t now = generation_of(c, id);
  if (generation != 0 && now > generation) return false;
  require_writer(c, id, "change its size");
  if (const entry e = read_entry(c, id, {}); e.array.extents.empty() && std::max(size, reserved) < allocated_size(e))
    note_cut(c, id);
  if (reserved != 0) use_feature(c, feature_reserved);
  run(c,
      "UPDATE entry SET size = ?, extents = ?, changed_ns = ?, generation = ?, reserved = ?"
      " WHERE id = ?",
      size, numbers_to_text(extents), now_ns(), std::max(now, generation), reserved, id);
  note_reached(c, id, extents);
  record();
  t.commit();
  return true;
}

bool local_metadata::set_generation(file_id id, std::uint64_t generation, std::uint64_t allocated) {
  db_->require_writable(numbered_file(id));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  const durable_commits durable(c);
  transaction t(c, transaction_kind::write);
  const std::uint64_t now = generation_of(c, id);
  if (generation > now + 1)
    refuse(EINVAL, "file number " + std::to_string(id) + ": generation " +
                       std::to_string(generation) + " cannot follow " + std::to_string(now));
  require_writer(c, id, "open it for writing");
  if (now >= generation) return true;  // another opened it at the same time, and said so durably
  const entry e = read_entry(c, id, {});
  if (has_new_objects(e.striping, allocated, allocated_size(e))) return false;
  run(c, "UPDATE entry SET generation = ? WHERE id = ?", generation, id);
  record();
  t.commit();
  return true;
}

void local_metadata::set_in_progress(file_id id, std::string_view what) {
  db_->require_writable(numbered_file(id));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  const durable_commits durable(c);
  transaction t(c, transaction_kind::write);
  generation_of(c, id);  // the file is there
  require_writer(c, id, "write it");
  run(c, "UPDATE entry SET in_progress = ? WHERE id = ?", what, id);
  record();
  t.commit();
}

// Looks the entry up, has f(connection, resolution, entry) check and change it, and notes the time.
template <class F>
void local_metadata::change_entry(std::string_view path, F f) {
  db_->require_writable(quoted(path));
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  transaction t(c, transaction_kind::write);
  const path_resolution walk(c, who_);
  const path_resolution::node n = walk.resolve(path);
  f(c, walk, n);
  run(c, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), n.id);
  record();
  t.commit();
}

void local_metadata::set_attribute(std::string_view path, std::string_view key,
                                   std::string_view value) {
  change_entry(path, [&](auto& c, const path_resolution& walk, const path_resolution::node& n) {
    walk.require(n, may_write, path, "change its attributes");
    put_attribute(c, n.id, key, value, path);
  });
}

void local_metadata::remove_attribute(std::string_view path, std::string_view key) {
  change_entry(path, [&](auto& c, const path_resolution& walk, const path_resolution::node& n) {
    walk.require(n, may_write, path, "change its attributes");
    run(c, "DELETE FROM attribute WHERE entry = ? AND key = ?", n.id, key);
    if (c.changes() == 0)
      refuse(ENOENT, quoted(path) + " has no attribute '" + std::string(key) + "'");
  });
}

void local_metadata::set_mode(std::string_view path, std::uint32_t mode) {
  change_entry(path, [&](auto& c, const path_resolution& walk, const path_resolution::node& n) {
    walk.require_owner(n, path, "change its mode");
    run(c, "UPDATE entry SET mode = ? WHERE id = ?", mode & 07777, n.id);
  });
}

void local_metadata::set_owner(std::string_view path, std::uint32_t uid, std::uint32_t gid) {
  change_entry(path, [&](auto& c, const path_resolution& walk, const path_resolution::node& n) {
    walk.require_owner(n, path, "change its owner or group");
    if (uid == keep_id) uid = n.owner;
    if (gid == keep_id) gid = n.group;
    // As POSIX has it for the unprivileged.
    if (who_.uid != 0 && uid != n.owner)
      refuse(EPERM, quoted(path) + ": only user 0 may give it to user " + std::to_string(uid));
    if (who_.uid != 0 && gid != n.group && !is_member(who_, gid))
      refuse(EPERM, quoted(path) + ": user " + std::to_string(who_.uid) +
                        " may give it to a group of his own only (" + std::to_string(who_.gid) +
                        "), not to " + std::to_string(gid));
    run(c, "UPDATE entry SET owner = ?, grp = ? WHERE id = ?", uid, gid, n.id);
  });
}

size_lock_ptr local_metadata::lock_size(file_id id) {
  db_->require_writable(numbered_file(id));
  // Owes no fence: nothing of a process is on its way any more when its locks end.
  return {new size_lock, [held = storage::lock_size(db_->locks, id)](size_lock* l) { delete l; }};
}

std::shared_ptr<void> local_metadata::claim_writer(file_id id, bool together,
                                                   claim_holder* /*in_the_way*/) {
  db_->require_writable(numbered_file(id));
  return storage::claim_writer(db_->locks, id, together);
}

void local_metadata::sync() {
  db_->require_writable("the store");
  const database::use lock(db_->mutex, *db_);
  auto& c = db_->now();
  // One commit with fsync carries everything that is in the log before it.
  const durable_commits durable(c);
  run(c, "UPDATE store SET value = value + 1 WHERE key = 'syncs'");
}

}  // namespace ooc::storage
