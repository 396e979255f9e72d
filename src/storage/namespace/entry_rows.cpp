#include "storage/namespace/entry_rows.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/namespace/commit_rows.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/path_resolution.hpp"
#include "storage/namespace/placement_rows.hpp"
#include "storage/namespace/store_path.hpp"

namespace ooc::storage {

using sqlite::query;
using sqlite::run;

namespace {

constexpr std::size_t max_attribute = std::size_t{1} << 20;
constexpr std::uint64_t max_integer = std::numeric_limits<std::int64_t>::max();  // that a row can have
constexpr std::size_t max_attributes = std::size_t{4} << 20;                     // of one entry, names included

#define OOC_ENTRY_COLUMNS                                                                     \
  "e.id, e.kind, e.owner, e.grp, e.mode, e.created_ns, e.changed_ns, e.size, e.sn, e.nn, "    \
  "e.sf, e.sparse, e.fill, e.element_type, e.element_size, e.extents, e.max_extent, e.tile, " \
  "e.generation, e.target, e.device, e.data_changed_ns, e.data_read_ns, e.reserved, "         \
  "e.stripe_map, e.codec, "                                                                   \
  "e.made + (SELECT count(*) FROM link WHERE link.entry = e.id)"
#define OOC_ENTRY_COLUMNS_AND(name) OOC_ENTRY_COLUMNS ", " name
constexpr int shown_name = 27;  // of the column behind those
// Those in a folder: by their own names, and by further ones.
#define OOC_NAMED_IN_FOLDER \
  "SELECT " OOC_ENTRY_COLUMNS_AND("e.name AS shown")                                         \
  " FROM entry e WHERE e.parent = ?1 AND e.name > ?2 AND e.made = 1 AND e.id != 1 UNION ALL " \
  "SELECT " OOC_ENTRY_COLUMNS_AND("l.name AS shown")                                         \
  " FROM link l JOIN entry e ON e.id = l.entry WHERE l.parent = ?1 AND l.name > ?2 ORDER BY shown"

constexpr std::int64_t in_growth = -1;  // of the column max_extent

void read_growth(sqlite::connection& c, entry& e) {
  query q(c, "SELECT max_extents, reached FROM growth WHERE entry = ?", e.id);
  if (!q.next()) refuse(EIO, "the metadata database has no limits of the array with number " + std::to_string(e.id));
  e.array.max_extents = numbers_from_text(q.text(0));
  e.array.reached = numbers_from_text(q.text(1));
}

entry entry_from(sqlite::connection& c, const query& q) {
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
  if (const std::int64_t first = q.integer(16); first == in_growth)
    read_growth(c, e);
  else if (first != 0)
    e.array.max_extents = {static_cast<std::uint64_t>(first)};
  e.array.tile = numbers_from_text(q.text(17));
  if (e.kind == entry_kind::file) e.generation = q.unsigned_integer(18);
  if (e.kind == entry_kind::file) e.cuts = 1;
  e.target = q.text(19);
  e.device = q.unsigned_integer(20);
  e.data_changed_ns = q.integer(21);
  e.data_read_ns = q.integer(22);
  e.reserved = q.unsigned_integer(23);
  e.nodes = nodes_from_column(q.blob(24));
  e.codec = q.text(25);
  e.names = static_cast<std::uint32_t>(q.integer(26));
  return e;
}

void read_attributes(sqlite::connection& c, entry& e) {
  query q(c, "SELECT key, value FROM attribute WHERE entry = ?", e.id);
  while (q.next()) e.attributes.emplace(q.text(0), q.text(1));
}

}  // namespace

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

std::string numbers_to_text(const std::vector<std::uint64_t>& v) {
  std::string s;
  for (const std::uint64_t n : v) s += (s.empty() ? "" : ",") + std::to_string(n);
  return s;
}

std::int64_t max_extent_column(const array_description& a) {
  if (has_reserved_grid(a)) return in_growth;
  return a.max_extents.empty() ? 0 : static_cast<std::int64_t>(a.max_extents.front());
}

void put_growth(sqlite::connection& c, file_id id, const array_description& a) {
  if (!has_reserved_grid(a)) return;
  use_feature(c, feature_max_extents);
  // A copy counts as having reached all that its bytes have: the same as its source.
  const std::vector<std::uint64_t>& reached = a.reached.empty() ? a.extents : a.reached;
  run(c, "INSERT INTO growth (entry, max_extents, reached) VALUES (?, ?, ?)", id, numbers_to_text(a.max_extents),
      numbers_to_text(reached));
}

void note_reached(sqlite::connection& c, file_id id, const std::vector<std::uint64_t>& extents) {
  entry e;
  e.id = id;
  {
    query q(c, "SELECT max_extent FROM entry WHERE id = ?", id);
    if (!q.next() || q.integer(0) != in_growth) return;
  }
  read_growth(c, e);
  set_extents(e.array, extents);
  run(c, "UPDATE growth SET reached = ? WHERE entry = ?", numbers_to_text(e.array.reached), id);
}

namespace {

// The table comes with the first cut.
void read_cuts(sqlite::connection& c, entry& e) {
  if (!has_table(c, "cut")) return;
  query q(c, "SELECT number FROM cut WHERE entry = ?", e.id);
  if (q.next()) e.cuts += q.unsigned_integer(0);
}

void read_number(sqlite::connection& c, entry& e) {
  query q(c, "SELECT min(id) FROM moved WHERE entry = ?", e.id);
  if (q.next()) e.number = q.unsigned_integer(0);
}

void read_moves(sqlite::connection& c, entry& e) {
  if (!has_table(c, "moved")) return;
  read_number(c, e);
  query q(c, "SELECT id FROM moved JOIN removed USING (id) WHERE entry = ?", e.id);
  while (q.next()) e.left_behind.push_back(q.unsigned_integer(0));
}

}  // namespace

void note_cut(sqlite::connection& c, file_id id) {
  c.execute(
      "CREATE TABLE IF NOT EXISTS cut (entry INTEGER PRIMARY KEY REFERENCES entry (id), number INTEGER NOT NULL)");
  c.execute(
      "CREATE TRIGGER IF NOT EXISTS cut_ends AFTER DELETE ON entry"
      " BEGIN DELETE FROM cut WHERE entry = OLD.id; END");
  run(c, "INSERT INTO cut (entry, number) VALUES (?, 1) ON CONFLICT (entry) DO UPDATE SET number = number + 1", id);
}

entry read_entry(sqlite::connection& c, file_id id, std::string path) {
  entry e;
  {
    query q(c, "SELECT " OOC_ENTRY_COLUMNS " FROM entry e WHERE e.id = ?", id);
    if (!q.next()) throw usage_error({ENOENT, std::generic_category()}, "'" + path + "' has been removed");
    e = entry_from(c, q);
  }
  if (e.kind == entry_kind::file) read_cuts(c, e);
  if (e.kind == entry_kind::file) read_last_commit(c, e);
  if (e.kind == entry_kind::file) read_moves(c, e);
  e.path = std::move(path);
  read_attributes(c, e);
  return e;
}

namespace {

// What is listed is what a reader gets.
void as_of_last_commit(sqlite::connection& c, entry& e) {
  if (e.kind == entry_kind::file) read_last_commit(c, e);
  look_back(c, e);
}

}  // namespace

std::vector<entry> read_folder(sqlite::connection& c, file_id folder, const std::string& path) {
  std::vector<entry> entries;
  {
    query q(c, OOC_NAMED_IN_FOLDER, folder, std::string_view());
    while (q.next()) {
      entries.push_back(entry_from(c, q));
      entries.back().path = q.text(shown_name);
    }
  }
  {
    query q(c,
            "SELECT e.name AS shown, a.key, a.value FROM entry e JOIN attribute a ON a.entry = e.id"
            " WHERE e.parent = ?1 AND e.made = 1 AND e.id != 1 UNION ALL"
            " SELECT l.name AS shown, a.key, a.value FROM link l JOIN attribute a ON a.entry = l.entry"
            " WHERE l.parent = ?1 ORDER BY shown",
            folder);
    auto e = entries.begin();
    while (q.next()) {
      const std::string name = q.text(0);
      while (e != entries.end() && e->path != name) ++e;
      if (e != entries.end()) e->attributes.emplace(q.text(1), q.text(2));
    }
  }
  const bool commits = has_commits(c);
  for (entry& e : entries) {
    if (commits) as_of_last_commit(c, e);
    if (!path.empty()) e.path.insert(0, path + '/');
  }
  return entries;
}

folder_part read_folder_part(sqlite::connection& c, file_id folder, const std::string& path, std::string_view after,
                             std::size_t max_entries, std::size_t max_bytes) {
  folder_part part;
  std::size_t bytes = 0;
  const bool commits = has_commits(c), moves = has_table(c, "moved");
  query q(c, OOC_NAMED_IN_FOLDER, folder, after);
  while (q.next()) {
    if (part.entries.size() == max_entries || bytes > max_bytes) {
      part.more = true;
      break;
    }
    entry& e = part.entries.emplace_back(entry_from(c, q));
    e.path = q.text(shown_name);
    read_attributes(c, e);
    if (moves) read_number(c, e);
    if (commits) as_of_last_commit(c, e);
    bytes += e.path.size() + e.fill.size() + 200;
    for (const auto& [key, value] : e.attributes) bytes += key.size() + value.size();
    if (!path.empty()) e.path.insert(0, path + '/');
  }
  return part;
}

std::vector<file_id> read_file_ids(sqlite::connection& c, file_id after, std::uint64_t max) {
  query q(c, "SELECT id FROM entry WHERE id > ? AND kind = 2 AND made = 1 ORDER BY id LIMIT ?",
          std::min(after, max_integer), std::min(max, max_integer));
  std::vector<file_id> ids;
  while (q.next()) ids.push_back(q.unsigned_integer(0));
  return ids;
}

std::vector<file_maker> read_makers(sqlite::connection& c) {
  std::vector<file_maker> all;
  query q(c, "SELECT id, pid, start, boot, pid_space FROM making");
  while (q.next()) all.push_back({q.unsigned_integer(0), {q.integer(1), q.unsigned_integer(2), q.text(3), q.text(4)}});
  return all;
}

std::uint64_t generation_of(sqlite::connection& c, file_id id) {
  query q(c, "SELECT generation FROM entry WHERE id = ? AND kind = 2 AND " OOC_ENTRY_IN_USE, id);
  if (!q.next()) refuse(ENOENT, "file number " + std::to_string(id) + " has been removed from the store");
  return q.unsigned_integer(0);
}

void delete_entry(sqlite::connection& c, file_id id) {
  run(c, "DELETE FROM attribute WHERE entry = ?", id);
  run(c, "DELETE FROM entry WHERE id = ?", id);
}

namespace {

// Made with the first file that takes another's place.
constexpr const char* table_of_moved_files = R"(
CREATE TABLE IF NOT EXISTS moved (id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entry (id));
CREATE INDEX IF NOT EXISTS moved_entry ON moved (entry);
CREATE TRIGGER IF NOT EXISTS moved_ends AFTER DELETE ON entry
  BEGIN DELETE FROM moved WHERE entry = OLD.id; END;
)";

}  // namespace

file_id now_at(sqlite::connection& c, file_id id) {
  if (!has_table(c, "moved")) return 0;
  query q(c, "SELECT entry FROM moved WHERE id = ?", id);
  return q.next() ? q.unsigned_integer(0) : 0;
}

void replace_rows(sqlite::connection& c, file_id next, file_id old) {
  c.execute(table_of_moved_files);
  run(c, "UPDATE moved SET entry = ? WHERE entry = ?", next, old);
  run(c, "INSERT INTO moved VALUES (?, ?)", old, next);
  run(c, "UPDATE link SET entry = ? WHERE entry = ?", next, old);
  run(c, "DELETE FROM attribute WHERE entry = ?", next);
  run(c, "UPDATE attribute SET entry = ? WHERE entry = ?", next, old);
  if (has_commits(c)) move_commits(c, next, old);
  // Nobody has the name of the old one meanwhile.
  run(c, "UPDATE entry SET name = name || '/' WHERE id = ?", old);
  run(c,
      "UPDATE entry SET made = 1, (parent, name, owner, grp, mode, created_ns, changed_ns, in_progress, "
      "data_changed_ns,"
      " data_read_ns) = (SELECT parent, substr(name, 1, length(name) - 1), owner, grp, mode, created_ns, changed_ns,"
      " in_progress, data_changed_ns, data_read_ns FROM entry WHERE id = ?) WHERE id = ?",
      old, next);
  run(c, "DELETE FROM entry WHERE id = ?", old);
}

bool bury(sqlite::connection& c, file_id id) {
  run(c, "DELETE FROM making WHERE id = ?", id);
  if (c.changes() == 0) return false;
  delete_entry(c, id);
  run(c, "INSERT OR IGNORE INTO removed VALUES (?)", id);
  return true;
}

void put_attribute(sqlite::connection& c, file_id id, std::string_view key, std::string_view value,
                   std::string_view path) {
  if (key.empty() || key.size() > max_name || key.find('\0') != key.npos)
    refuse(EINVAL, in_quotes(path) + ": an attribute's name has 1 to 255 bytes");
  if (value.size() > max_attribute) refuse(EINVAL, in_quotes(path) + ": an attribute's value has at most 1 MiB");
  // Text may hold no zero byte: such a value is stored as bytes.
  const bool binary = value.find('\0') != value.npos;
  const auto* const first = reinterpret_cast<const std::byte*>(value.data());
  if (binary)
    run(c,
        "INSERT INTO attribute (entry, key, value, binary) VALUES (?, ?, ?, 1)"
        " ON CONFLICT DO UPDATE SET value = excluded.value, binary = 1",
        id, key, std::vector<std::byte>(first, first + value.size()));
  else
    run(c,
        "INSERT INTO attribute (entry, key, value) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET value = excluded.value, binary = 0",
        id, key, value);
  // Of text length() counts the characters, whatever bytes follow the first of each.
  query q(c,
          "SELECT sum(length(CAST(value AS BLOB)) + length(CAST(key AS BLOB))) FROM attribute"
          " WHERE entry = ?",
          id);
  if (q.next() && q.unsigned_integer(0) > max_attributes)
    refuse(EINVAL, in_quotes(path) + ": the attributes of an entry have at most 4 MiB together");
}

}  // namespace ooc::storage
