#include "storage/local_metadata.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <limits>
#include <thread>

#include "storage/file_descriptor.hpp"
#include "storage/metadata_schema.hpp"
#include "storage/process_identity.hpp"
#include "storage/sqlite.hpp"
#include "storage/store_path.hpp"

namespace ooc::storage {

using sqlite::query;
using sqlite::run;
using sqlite::transaction;
using sqlite::transaction_kind;

namespace {

constexpr std::uint32_t may_read = 4, may_write = 2, may_enter = 1;
constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t max_fill = 1 << 16;             // bytes in one element
constexpr std::size_t max_attribute = std::size_t{1} << 20;
constexpr std::size_t max_dimensions = 32;

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

std::string numbers_to_text(const std::vector<std::uint64_t>& v) {
  std::string s;
  for (const std::uint64_t n : v) s += (s.empty() ? "" : ",") + std::to_string(n);
  return s;
}

std::vector<std::uint64_t> numbers_from_text(const std::string& s) {
  std::vector<std::uint64_t> v;
  const char* p = s.data();
  const char* end = p + s.size();
  while (p < end) {
    std::uint64_t n = 0;
    const auto r = std::from_chars(p, end, n);
    if (r.ec != std::errc()) break;
    v.push_back(n);
    p = r.ptr + 1;
  }
  return v;
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
    refuse(EINVAL, name + ": an array has at most 32 dimensions");
  for (const std::uint64_t e : f.array.extents)
    if (e > max_size) refuse(EINVAL, name + ": an extent passes 2^63 - 1");
  if (f.array.max_extent > max_size) refuse(EINVAL, name + ": max_extent passes 2^63 - 1");
}

}  // namespace

struct local_metadata::database {
  std::mutex mutex;
  std::unique_ptr<sqlite::connection> connection;
  std::filesystem::path locks;  // the file whose byte ranges are the locks of lock_size()
  process_identity me = this_process();
};

struct local_metadata::node {
  file_id id = root_id;
  entry_kind kind = entry_kind::folder;
  bool made = true;
  std::uint32_t owner = 0, group = 0, mode = 0;
};

struct local_metadata::place {
  node parent;
  std::string name;
  std::optional<node> present;
};

local_metadata::local_metadata(const std::filesystem::path& file, std::string_view store_uuid,
                               credentials who)
    : db_(std::make_shared<database>()), who_(who) {
  db_->connection = open_metadata_database(file, store_uuid);
  db_->locks = file.parent_path() / "metadata.locks";
}

local_metadata::local_metadata(std::shared_ptr<database> db, credentials who)
    : db_(std::move(db)), who_(who) {}

local_metadata::~local_metadata() = default;

std::shared_ptr<metadata_service> local_metadata::as(credentials who) const {
  return std::shared_ptr<metadata_service>(new local_metadata(db_, who));
}

// Walking.  All of it runs inside a transaction with the mutex held.

local_metadata::node local_metadata::root() const {
  query q(*db_->connection, "SELECT owner, grp, mode FROM entry WHERE id = 1");
  if (!q.next()) throw integrity_error(errc::corrupt, "metadata database: no root folder");
  node n;
  n.owner = static_cast<std::uint32_t>(q.integer(0));
  n.group = static_cast<std::uint32_t>(q.integer(1));
  n.mode = static_cast<std::uint32_t>(q.integer(2));
  return n;
}

std::optional<local_metadata::node> local_metadata::child(const node& folder,
                                                          const std::string& name) const {
  query q(*db_->connection,
          "SELECT id, kind, made, owner, grp, mode FROM entry WHERE parent = ? AND name = ?",
          folder.id, name);
  if (!q.next()) return std::nullopt;
  return node{q.unsigned_integer(0),
              static_cast<entry_kind>(q.integer(1)),
              q.integer(2) != 0,
              static_cast<std::uint32_t>(q.integer(3)),
              static_cast<std::uint32_t>(q.integer(4)),
              static_cast<std::uint32_t>(q.integer(5))};
}

local_metadata::node local_metadata::enter(const node& folder, const std::string& name,
                                           std::string_view path) const {
  if (folder.kind != entry_kind::folder)
    refuse(ENOTDIR, quoted(path) + ": a file is where '" + name + "' needs a folder");
  require(folder, may_enter, path, "pass a folder on the way");
  const auto n = child(folder, name);
  if (!n || !n->made)
    refuse(ENOENT, quoted(path) + ": there is no '" + name + "'; `ooc ls` shows what there is");
  return *n;
}

local_metadata::node local_metadata::resolve(std::string_view path) const {
  node n = root();
  for (const std::string& name : split_path(path)) n = enter(n, name, path);
  return n;
}

local_metadata::place local_metadata::place_for(std::string_view path) const {
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
                         "' on the way; make it first (mkdir, with parents)");
    p.parent = enter(p.parent, name, path);
  }
  if (p.parent.kind != entry_kind::folder)
    refuse(ENOTDIR, quoted(path) + ": '" + join_path(parts) + "' is a file, not a folder");
  require(p.parent, may_enter, path, "pass its folder");
  p.present = child(p.parent, p.name);
  return p;
}

std::string local_metadata::path_of(file_id id) const {
  std::vector<std::string> parts;
  while (id != root_id) {
    query q(*db_->connection, "SELECT parent, name FROM entry WHERE id = ?", id);
    if (!q.next()) throw integrity_error(errc::corrupt, "metadata database: an entry has no folder");
    id = q.unsigned_integer(0);
    parts.push_back(q.text(1));
  }
  std::reverse(parts.begin(), parts.end());
  return join_path(parts);
}

bool local_metadata::permits(const node& n, std::uint32_t bits) const noexcept {
  if (who_.uid == 0) return true;
  const std::uint32_t mine = who_.uid == n.owner   ? n.mode >> 6
                             : who_.gid == n.group ? n.mode >> 3
                                                   : n.mode;
  return (mine & bits) == bits;
}

void local_metadata::require(const node& n, std::uint32_t bits, std::string_view path,
                             const char* to_do) const {
  if (!permits(n, bits))
    refuse(EACCES, quoted(path) + ": user " + std::to_string(who_.uid) + " may not " + to_do +
                       "; its owner (user " + std::to_string(n.owner) + ") can change the mode");
}

void local_metadata::require_owner(const node& n, std::string_view path, const char* to_do) const {
  if (who_.uid != 0 && who_.uid != n.owner)
    refuse(EACCES, quoted(path) + ": only its owner (user " + std::to_string(n.owner) + ") may " +
                       to_do);
}

// Reading.

namespace {

#define OOC_ENTRY_COLUMNS                                                                     \
  "e.id, e.kind, e.owner, e.grp, e.mode, e.created_ns, e.changed_ns, e.size, e.sn, e.nn, "   \
  "e.sf, e.sparse, e.fill, e.element_type, e.element_size, e.extents, e.max_extent, e.tile, " \
  "e.name"

entry entry_from(const query& q) {
  entry e;
  e.id = q.unsigned_integer(0);
  e.kind = static_cast<entry_kind>(q.integer(1));
  e.owner = static_cast<std::uint32_t>(q.integer(2));
  e.group = static_cast<std::uint32_t>(q.integer(3));
  e.mode = static_cast<std::uint32_t>(q.integer(4));
  e.created_ns = q.integer(5);
  e.changed_ns = q.integer(6);
  e.size = q.unsigned_integer(7);
  e.striping.sn = static_cast<std::uint32_t>(q.integer(8));
  e.striping.nn = static_cast<std::uint32_t>(q.integer(9));
  e.striping.sf = q.unsigned_integer(10);
  e.sparse = q.integer(11) != 0;
  e.fill = q.blob(12);
  e.array.element_type = q.text(13);
  e.array.element_size = static_cast<std::uint32_t>(q.integer(14));
  e.array.extents = numbers_from_text(q.text(15));
  e.array.max_extent = q.unsigned_integer(16);
  e.array.tile = numbers_from_text(q.text(17));
  e.path = q.text(18);
  return e;
}

}  // namespace

entry local_metadata::read_entry(file_id id, std::string path) const {
  entry e;
  {
    query q(*db_->connection, "SELECT " OOC_ENTRY_COLUMNS " FROM entry e WHERE e.id = ?", id);
    if (!q.next()) refuse(ENOENT, "'" + path + "' has been removed");
    e = entry_from(q);
  }
  e.path = std::move(path);
  query q(*db_->connection, "SELECT key, value FROM attribute WHERE entry = ?", id);
  while (q.next()) e.attributes.emplace(q.text(0), q.text(1));
  return e;
}

entry local_metadata::lookup(std::string_view path) {
  const std::lock_guard lock(db_->mutex);
  const transaction t(*db_->connection, transaction_kind::read);
  return read_entry(resolve(path).id, join_path(split_path(path)));
}

entry local_metadata::find(file_id id) {
  const std::lock_guard lock(db_->mutex);
  const transaction t(*db_->connection, transaction_kind::read);
  {
    query q(*db_->connection, "SELECT 1 FROM entry WHERE id = ? AND made = 1", id);
    if (!q.next())
      refuse(ENOENT, "file number " + std::to_string(id) + " has been removed from the store");
  }
  return read_entry(id, path_of(id));
}

std::vector<entry> local_metadata::list(std::string_view path) {
  const std::lock_guard lock(db_->mutex);
  const transaction t(*db_->connection, transaction_kind::read);
  const node n = resolve(path);
  std::string folder = join_path(split_path(path));
  if (n.kind == entry_kind::file) return {read_entry(n.id, std::move(folder))};
  require(n, may_read, path, "list it");
  if (!folder.empty()) folder += '/';

  std::vector<entry> entries;
  {
    query q(*db_->connection,
            "SELECT " OOC_ENTRY_COLUMNS
            " FROM entry e WHERE e.parent = ? AND e.made = 1 AND e.id != 1 ORDER BY e.name",
            n.id);
    while (q.next()) entries.push_back(entry_from(q));
  }
  {
    query q(*db_->connection,
            "SELECT e.name, a.key, a.value FROM entry e JOIN attribute a ON a.entry = e.id"
            " WHERE e.parent = ? AND e.made = 1 AND e.id != 1 ORDER BY e.name",
            n.id);
    auto e = entries.begin();
    while (q.next()) {
      const std::string name = q.text(0);
      while (e != entries.end() && e->path != name) ++e;
      if (e != entries.end()) e->attributes.emplace(q.text(1), q.text(2));
    }
  }
  for (entry& e : entries) e.path.insert(0, folder);
  return entries;
}

std::vector<file_id> local_metadata::files() {
  const std::lock_guard lock(db_->mutex);
  query q(*db_->connection, "SELECT id FROM entry WHERE kind = 2 AND made = 1");
  std::vector<file_id> ids;
  while (q.next()) ids.push_back(q.unsigned_integer(0));
  return ids;
}

// Making and removing.

entry local_metadata::create(std::string_view path, const new_file& f) {
  check_new_file(path, f);
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  transaction t(c, transaction_kind::write);
  const place p = place_for(path);
  if (p.present)
    refuse(EEXIST, quoted(path) + (p.present->made
                                       ? " exists already; remove it first or take another name"
                                       : " is just being made by another program"));
  require(p.parent, may_write | may_enter, path, "make files in that folder");
  const std::int64_t now = now_ns();
  run(c,
      "INSERT INTO entry (parent, name, kind, made, owner, grp, mode, created_ns, changed_ns, size,"
      " sn, nn, sf, sparse, fill, element_type, element_size, extents, max_extent, tile)"
      " VALUES (?, ?, 2, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      p.parent.id, p.name, who_.uid, who_.gid, f.mode & 07777, now, now, f.size, f.striping.sn,
      f.striping.nn, f.striping.sf, f.sparse, f.fill, f.array.element_type, f.array.element_size,
      numbers_to_text(f.array.extents), f.array.max_extent, numbers_to_text(f.array.tile));
  const auto id = static_cast<file_id>(c.last_insert_id());
  const process_identity& me = db_->me;
  run(c, "INSERT INTO making VALUES (?, ?, ?, ?, ?)", id, me.pid, me.start, me.boot, me.pid_space);
  entry e = read_entry(id, join_path(split_path(path)));
  t.commit();
  return e;
}

void local_metadata::commit(file_id id) {
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  transaction t(c, transaction_kind::write);
  run(c, "DELETE FROM making WHERE id = ?", id);
  if (c.changes() == 0)
    refuse(ENOENT, "file number " + std::to_string(id) + " is not being made: committed already, "
                                                         "or swept as left by a dead process");
  run(c, "UPDATE entry SET made = 1, changed_ns = ? WHERE id = ?", now_ns(), id);
  t.commit();
}

void local_metadata::abandon(file_id id) {
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  transaction t(c, transaction_kind::write);
  run(c, "DELETE FROM making WHERE id = ?", id);
  if (c.changes() == 0) return;
  run(c, "DELETE FROM entry WHERE id = ?", id);
  run(c, "INSERT OR IGNORE INTO removed VALUES (?)", id);
  t.commit();
}

file_id local_metadata::insert_folder(const node& parent, const std::string& name,
                                      std::uint32_t mode) const {
  auto& c = *db_->connection;
  const std::int64_t now = now_ns();
  run(c,
      "INSERT INTO entry (parent, name, kind, owner, grp, mode, created_ns, changed_ns)"
      " VALUES (?, ?, 1, ?, ?, ?, ?, ?)",
      parent.id, name, who_.uid, who_.gid, mode & 07777, now, now);
  return static_cast<file_id>(c.last_insert_id());
}

void local_metadata::mkdir(std::string_view path, std::uint32_t mode, bool parents) {
  const auto parts = split_path(path);
  const std::lock_guard lock(db_->mutex);
  transaction t(*db_->connection, transaction_kind::write);
  if (parts.empty()) {
    if (parents) return;
    refuse(EEXIST, "the root folder exists already");
  }
  node folder = root();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if (folder.kind != entry_kind::folder)
      refuse(ENOTDIR, quoted(path) + ": '" + parts[i - 1] + "' is a file, not a folder");
    require(folder, may_enter, path, "pass a folder on the way");
    const auto present = child(folder, parts[i]);
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
    require(folder, may_write | may_enter, path, "make folders there");
    folder = node{insert_folder(folder, parts[i], mode), entry_kind::folder, true, who_.uid,
                  who_.gid, mode & 07777};
  }
  t.commit();
}

void local_metadata::rename(std::string_view from, std::string_view to) {
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  transaction t(c, transaction_kind::write);
  const place source = place_for(from);
  if (!source.present || !source.present->made)
    refuse(ENOENT, quoted(from) + " does not exist; `ooc ls` shows what there is");
  const place target = place_for(to);
  if (target.present && target.present->id == source.present->id) return;
  if (target.present && target.present->kind == entry_kind::folder) {
    query q(c, "SELECT 1 FROM entry WHERE parent = ? LIMIT 1", target.present->id);
    if (q.next())
      refuse(ENOTEMPTY, quoted(to) + " is a folder with something in it; name the new place in full");
  }
  if (target.present)
    refuse(EEXIST, quoted(to) + " exists already; remove it first or take another name");
  require(source.parent, may_write | may_enter, from, "move things out of its folder");
  require(target.parent, may_write | may_enter, to, "move things into its folder");
  for (file_id up = target.parent.id; up != root_id;) {
    if (up == source.present->id)
      refuse(EINVAL, quoted(from) + " cannot be moved into itself (" + quoted(to) + ")");
    query q(c, "SELECT parent FROM entry WHERE id = ?", up);
    if (!q.next()) throw integrity_error(errc::corrupt, "metadata database: an entry has no folder");
    up = q.unsigned_integer(0);
  }
  run(c, "UPDATE entry SET parent = ?, name = ?, changed_ns = ? WHERE id = ?", target.parent.id,
      target.name, now_ns(), source.present->id);
  t.commit();
}

entry local_metadata::remove(std::string_view path) {
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  transaction t(c, transaction_kind::write);
  const place p = place_for(path);
  if (!p.present || !p.present->made)
    refuse(ENOENT, quoted(path) + " does not exist; `ooc ls` shows what there is");
  require(p.parent, may_write | may_enter, path, "remove things from its folder");
  const file_id id = p.present->id;
  if (p.present->kind == entry_kind::folder) {
    query q(c, "SELECT 1 FROM entry WHERE parent = ? LIMIT 1", id);
    if (q.next()) refuse(ENOTEMPTY, quoted(path) + " is not empty; remove what is in it first");
  }
  entry e = read_entry(id, join_path(split_path(path)));
  run(c, "DELETE FROM attribute WHERE entry = ?", id);
  run(c, "DELETE FROM entry WHERE id = ?", id);
  if (e.kind == entry_kind::file) run(c, "INSERT INTO removed VALUES (?)", id);
  t.commit();
  return e;
}

void local_metadata::forget(file_id id) {
  const std::lock_guard lock(db_->mutex);
  run(*db_->connection, "DELETE FROM removed WHERE id = ?", id);
}

namespace {

struct unfinished_file {
  file_id id;
  process_identity maker;
};

std::vector<unfinished_file> read_unfinished(sqlite::connection& c) {
  std::vector<unfinished_file> all;
  query q(c, "SELECT id, pid, start, boot, pid_space FROM making");
  while (q.next())
    all.push_back(
        {q.unsigned_integer(0), {q.integer(1), q.unsigned_integer(2), q.text(3), q.text(4)}});
  return all;
}

}  // namespace

std::vector<file_id> local_metadata::unfinished() {
  const std::lock_guard lock(db_->mutex);
  std::vector<file_id> ids;
  for (const auto& u : read_unfinished(*db_->connection))
    if (may_be_alive(u.maker)) ids.push_back(u.id);
  return ids;
}

std::vector<file_id> local_metadata::dead() {
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  for (const auto& u : read_unfinished(c)) {
    if (may_be_alive(u.maker)) continue;
    transaction t(c, transaction_kind::write);
    run(c, "DELETE FROM making WHERE id = ?", u.id);
    if (c.changes() == 0) continue;  // another process swept it first
    run(c, "DELETE FROM entry WHERE id = ?", u.id);
    run(c, "INSERT OR IGNORE INTO removed VALUES (?)", u.id);
    t.commit();
  }
  std::vector<file_id> ids;
  query q(c, "SELECT id FROM removed");
  while (q.next()) ids.push_back(q.unsigned_integer(0));
  return ids;
}

// Changing.

void local_metadata::set_size(file_id id, std::uint64_t size,
                              const std::vector<std::uint64_t>& extents) {
  if (size > max_size) refuse(EINVAL, "a file has at most 2^63 - 1 bytes");
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  run(c,
      "UPDATE entry SET size = ?, extents = ?, changed_ns = ? WHERE id = ? AND kind = 2 AND made = 1",
      size, numbers_to_text(extents), now_ns(), id);
  if (c.changes() == 0)
    refuse(ENOENT, "file number " + std::to_string(id) + " has been removed from the store");
}

void local_metadata::set_attribute(std::string_view path, std::string_view key,
                                   std::string_view value) {
  if (key.empty() || key.size() > max_name || key.find('\0') != key.npos)
    refuse(EINVAL, quoted(path) + ": an attribute's name has 1 to 255 bytes");
  if (value.size() > max_attribute)
    refuse(EINVAL, quoted(path) + ": an attribute's value has at most 1 MiB");
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  transaction t(c, transaction_kind::write);
  const node n = resolve(path);
  require(n, may_write, path, "change its attributes");
  run(c, "INSERT INTO attribute VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
      n.id, key, value);
  run(c, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), n.id);
  t.commit();
}

void local_metadata::remove_attribute(std::string_view path, std::string_view key) {
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  transaction t(c, transaction_kind::write);
  const node n = resolve(path);
  require(n, may_write, path, "change its attributes");
  run(c, "DELETE FROM attribute WHERE entry = ? AND key = ?", n.id, key);
  if (c.changes() == 0)
    refuse(ENOENT, quoted(path) + " has no attribute '" + std::string(key) + "'");
  run(c, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), n.id);
  t.commit();
}

void local_metadata::set_mode(std::string_view path, std::uint32_t mode) {
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  transaction t(c, transaction_kind::write);
  const node n = resolve(path);
  require_owner(n, path, "change its mode");
  run(c, "UPDATE entry SET mode = ?, changed_ns = ? WHERE id = ?", mode & 07777, now_ns(), n.id);
  t.commit();
}

void local_metadata::set_owner(std::string_view path, std::uint32_t uid, std::uint32_t gid) {
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  transaction t(c, transaction_kind::write);
  const node n = resolve(path);
  require_owner(n, path, "give it away");
  run(c, "UPDATE entry SET owner = ?, grp = ?, changed_ns = ? WHERE id = ?", uid, gid, now_ns(),
      n.id);
  t.commit();
}

std::shared_ptr<void> local_metadata::lock_size(file_id id) {
  // One byte of the lock file stands for one file.  The lock belongs to this descriptor alone (not
  // to the process, as with plain fcntl locks) and goes when it is closed.
  auto guard = std::make_shared<file_descriptor>(
      ::open(db_->locks.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!*guard)
    throw io_error({errno, std::generic_category()},
                   "'" + db_->locks.string() + "' cannot be opened");
  struct flock byte = {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(id & max_size);
  byte.l_len = 1;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (auto pause = std::chrono::microseconds(200);
       ::fcntl(guard->get(), F_OFD_SETLK, &byte) != 0;
       pause = std::min(2 * pause, std::chrono::microseconds(50'000))) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
      throw io_error({errno, std::generic_category()},
                     "'" + db_->locks.string() + "' cannot be locked");
    if (std::chrono::steady_clock::now() > deadline)
      throw io_error({ETIMEDOUT, std::generic_category()},
                     "file number " + std::to_string(id) +
                         ": another process has been changing its size for 60 s: look for one "
                         "that is stopped");
    std::this_thread::sleep_for(pause);
  }
  return guard;
}

void local_metadata::sync() {
  const std::lock_guard lock(db_->mutex);
  auto& c = *db_->connection;
  // One commit with fsync carries everything that is in the log before it.
  c.execute("PRAGMA synchronous = FULL");
  try {
    run(c, "UPDATE store SET value = value + 1 WHERE key = 'syncs'");
  } catch (...) {
    c.execute("PRAGMA synchronous = NORMAL");
    throw;
  }
  c.execute("PRAGMA synchronous = NORMAL");
}

}  // namespace ooc::storage
