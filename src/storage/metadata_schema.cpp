#include "storage/metadata_schema.hpp"

#include <chrono>
#include <string>

namespace ooc::storage {

namespace {

constexpr const char* tables = R"(
CREATE TABLE store (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Folders and files.  Ids are never used again.  The root is entry 1 and its own parent.
CREATE TABLE entry (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  parent INTEGER NOT NULL REFERENCES entry (id),
  name TEXT NOT NULL,
  kind INTEGER NOT NULL,              -- 1 folder, 2 file
  made INTEGER NOT NULL DEFAULT 1,    -- 0: being made, see table making
  owner INTEGER NOT NULL,
  grp INTEGER NOT NULL,
  mode INTEGER NOT NULL,
  created_ns INTEGER NOT NULL,
  changed_ns INTEGER NOT NULL,
  size INTEGER NOT NULL DEFAULT 0,    -- bytes
  sn INTEGER NOT NULL DEFAULT 0,
  nn INTEGER NOT NULL DEFAULT 0,
  sf INTEGER NOT NULL DEFAULT 0,      -- bytes
  sparse INTEGER NOT NULL DEFAULT 0,
  fill BLOB,
  element_type TEXT NOT NULL DEFAULT '',
  element_size INTEGER NOT NULL DEFAULT 1,
  extents TEXT NOT NULL DEFAULT '',   -- decimal, comma-separated, slowest first
  max_extent INTEGER NOT NULL DEFAULT 0,
  tile TEXT NOT NULL DEFAULT '',      -- as extents; empty: row-major
  UNIQUE (parent, name)
);

-- Who is making the entries with made = 0.
CREATE TABLE making (
  id INTEGER PRIMARY KEY REFERENCES entry (id),
  pid INTEGER NOT NULL,
  start INTEGER NOT NULL,
  boot TEXT NOT NULL,
  pid_space TEXT NOT NULL
);

-- Files that are gone but whose shares may still be on the nodes.
CREATE TABLE removed (id INTEGER PRIMARY KEY);

CREATE TABLE attribute (
  entry INTEGER NOT NULL REFERENCES entry (id),
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (entry, key)
) WITHOUT ROWID;
)";

std::int64_t pragma(sqlite::connection& c, std::string_view sql) {
  sqlite::query q(c, sql);
  return q.next() ? q.integer(0) : 0;
}

}  // namespace

void make_metadata_database(const std::filesystem::path& file, std::string_view store_uuid,
                            credentials owner) {
  sqlite::connection c(file, sqlite::open_as::fresh);
  c.execute("PRAGMA journal_mode = WAL");
  c.execute("PRAGMA synchronous = FULL");
  sqlite::transaction t(c, sqlite::transaction_kind::write);
  c.execute(tables);
  c.execute("PRAGMA application_id = " + std::to_string(metadata_application_id));
  c.execute("PRAGMA user_version = " + std::to_string(metadata_schema_version));
  sqlite::run(c, "INSERT INTO store VALUES ('uuid', ?)", store_uuid);
  sqlite::run(c, "INSERT INTO store VALUES ('syncs', '0')");
  const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  sqlite::run(c,
              "INSERT INTO entry (id, parent, name, kind, owner, grp, mode, created_ns, changed_ns)"
              " VALUES (1, 1, '', 1, ?, ?, ?, ?, ?)",
              owner.uid, owner.gid, 0755, now, now);
  t.commit();
}

std::unique_ptr<sqlite::connection> open_metadata_database(const std::filesystem::path& file,
                                                           std::string_view store_uuid) {
  auto c = std::make_unique<sqlite::connection>(file, sqlite::open_as::existing);
  const std::string name = "metadata database '" + file.string() + "'";
  if (pragma(*c, "PRAGMA application_id") != metadata_application_id)
    throw usage_error(errc::not_a_store,
                      name + " was not made by oocarray: give the folder of a store");
  if (const auto version = pragma(*c, "PRAGMA user_version"); version != metadata_schema_version)
    throw usage_error(errc::not_a_store, name + " has format version " + std::to_string(version) +
                                             ", this program reads version " +
                                             std::to_string(metadata_schema_version) +
                                             ": use the release of oocarray that made the store");
  {
    sqlite::query q(*c, "SELECT value FROM store WHERE key = 'uuid'");
    const std::string uuid = q.next() ? q.text(0) : std::string();
    if (uuid != store_uuid)
      throw usage_error(errc::not_a_store, name + " belongs to store " + uuid +
                                               ", its folder to store " + std::string(store_uuid) +
                                               ": put the store's own database back");
  }
  // The write-ahead log survives the death of any process as it is; loss of power needs sync().
  c->execute("PRAGMA synchronous = NORMAL");
  // Each checkpoint syncs twice; at SQLite's 1000 pages that is most of what creates cost.
  c->execute("PRAGMA wal_autocheckpoint = 8000");  // 32 MiB
  return c;
}

}  // namespace ooc::storage
