#include "storage/namespace/metadata_schema.hpp"

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/base/disk_format_version.hpp"
#include "storage/base/process_identity.hpp"
#include "storage/namespace/metadata_database.hpp"

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
  max_extent INTEGER NOT NULL DEFAULT 0,  -- -1: see table growth
  tile TEXT NOT NULL DEFAULT '',      -- as extents; empty: row-major
  generation INTEGER NOT NULL DEFAULT 1,  -- openings for writing
  in_progress TEXT NOT NULL DEFAULT '',   -- who is at what with the array
  -- Some of these are reserved for what is to come; a release that fills one says so in `required_features`.
  target TEXT NOT NULL DEFAULT '',        -- of a symbolic link
  device INTEGER NOT NULL DEFAULT 0,      -- of a special file
  data_changed_ns INTEGER NOT NULL DEFAULT 0,
  data_read_ns INTEGER NOT NULL DEFAULT 0,
  reserved INTEGER NOT NULL DEFAULT 0,    -- bytes that have space
  codec TEXT NOT NULL DEFAULT '',         -- how chunks are packed
  copies INTEGER NOT NULL DEFAULT 0,      -- further ones of each share
  stripe_map BLOB,                        -- nodes by stripe index, 4 bytes each; NULL or empty: sn and the following
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

-- Files that are gone but whose stripe objects may still be on the nodes.
CREATE TABLE removed (id INTEGER PRIMARY KEY);

CREATE TABLE attribute (
  entry INTEGER NOT NULL REFERENCES entry (id),
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  binary INTEGER NOT NULL DEFAULT 0,  -- reserved: 1, the value is bytes, not text
  PRIMARY KEY (entry, key)
) WITHOUT ROWID;

-- Further names of files.
CREATE TABLE link (
  parent INTEGER NOT NULL REFERENCES entry (id),
  name TEXT NOT NULL,
  entry INTEGER NOT NULL REFERENCES entry (id),
  PRIMARY KEY (parent, name)
) WITHOUT ROWID;
INSERT INTO store VALUES ('required_features', '');
)";

// Of arrays that may grow in any dimension; made with the first of them.
constexpr const char* table_of_growth = R"(
CREATE TABLE growth (
  entry INTEGER PRIMARY KEY REFERENCES entry (id),
  max_extents TEXT NOT NULL,          -- as extents
  reached TEXT NOT NULL               -- as extents: the greatest that each has been
);
CREATE TRIGGER growth_ends AFTER DELETE ON entry WHEN OLD.max_extent = -1
  BEGIN DELETE FROM growth WHERE entry = OLD.id; END;
)";

// Of files with commits; made with the first of them.
constexpr const char* tables_of_commits = R"(
CREATE TABLE last_commit (
  entry INTEGER PRIMARY KEY REFERENCES entry (id),
  number INTEGER NOT NULL,
  time_ns INTEGER NOT NULL,
  size INTEGER NOT NULL,              -- these two as in `entry`
  extents TEXT NOT NULL
);
CREATE TABLE committed_attribute (
  entry INTEGER NOT NULL REFERENCES entry (id),
  given INTEGER NOT NULL,             -- 0: of the file at its last commit; 1: given with that
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  binary INTEGER NOT NULL,            -- these three as in `attribute`
  PRIMARY KEY (entry, given, key)
) WITHOUT ROWID;
CREATE TRIGGER commits_end AFTER DELETE ON entry
  BEGIN
    DELETE FROM last_commit WHERE entry = OLD.id;
    DELETE FROM committed_attribute WHERE entry = OLD.id;
  END;
)";

std::int64_t pragma(sqlite::connection& c, std::string_view sql) {
  sqlite::query q(c, sql);
  return q.next() ? q.integer(0) : 0;
}

/// Where there can be no write-ahead log, which needs memory that processes share, SQLite would go on without one.
void require_log(sqlite::connection& c, const std::filesystem::path& file) {
  sqlite::query q(c, "PRAGMA journal_mode = WAL");  // which changes nothing where there is one
  if (const std::string mode = q.next() ? q.text(0) : ""; mode != "wal")
    throw usage_error(errc::not_a_store, "metadata database '" + file.string() +
                                             "' has no write-ahead log (journal_mode is '" + mode +
                                             "'), so processes cannot share it: use a folder on a local disk");
}

std::vector<std::string> parts_of(const std::string& features) {
  std::vector<std::string> parts;
  std::istringstream in(features);
  for (std::string one; std::getline(in, one, ',');) parts.push_back(one);
  return parts;
}

std::string unknown_features(const std::string& features) {
  std::string unknown;
  for (const std::string& one : parts_of(features))
    if (one != feature_links && one != feature_kinds && one != feature_reserved && one != feature_max_extents &&
        one != feature_commits && one != feature_stripe_map && one != feature_packed)
      unknown += (unknown.empty() ? "" : ",") + one;
  return unknown;
}

}  // namespace

bool has_table(sqlite::connection& c, const char* name) {
  sqlite::query q(c, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", std::string_view(name));
  return q.next();
}

void use_feature(sqlite::connection& c, const char* feature) {
  std::string features;
  {
    sqlite::query q(c, "SELECT value FROM store WHERE key = 'required_features'");
    if (q.next()) features = q.text(0);
  }
  for (const std::string& one : parts_of(features))
    if (one == feature) return;
  sqlite::run(c, "UPDATE store SET value = ? WHERE key = 'required_features'",
              features + (features.empty() ? "" : ",") + feature);
  if (feature == std::string_view(feature_links)) c.execute("CREATE INDEX IF NOT EXISTS link_entry ON link (entry)");
  if (feature == std::string_view(feature_max_extents)) c.execute(table_of_growth);
  if (feature == std::string_view(feature_commits)) c.execute(tables_of_commits);
}

void make_metadata_database(const std::filesystem::path& file, std::string_view store_uuid, const credentials& owner,
                            std::uint32_t mode, sqlite::open_as how) {
  sqlite::connection c(file, how);
  require_log(c, file);
  if (how == sqlite::open_as::alone && pragma(c, "PRAGMA application_id") == metadata_application_id) return;
  c.execute("PRAGMA synchronous = FULL");
  sqlite::transaction t(c, sqlite::transaction_kind::write);
  c.execute(tables);
  c.execute("PRAGMA application_id = " + std::to_string(metadata_application_id));
  c.execute("PRAGMA user_version = " + std::to_string(metadata_schema_version));
  sqlite::run(c, "INSERT INTO store VALUES ('uuid', ?)", store_uuid);
  sqlite::run(c, "INSERT INTO store VALUES ('syncs', '0')");
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  sqlite::run(c,
              "INSERT INTO entry (id, parent, name, kind, owner, grp, mode, created_ns, changed_ns)"
              " VALUES (1, 1, '', 1, ?, ?, ?, ?, ?)",
              owner.uid, owner.gid, mode, now, now);
  t.commit();
}

namespace {

constexpr std::uint64_t ids_at_once = 4096;
// Other processes may make so many files between two statements of this one.
constexpr std::uint64_t ids_to_spare = 256;

std::uint64_t last_id(sqlite::connection& c) {
  sqlite::query q(c, "SELECT seq FROM sqlite_sequence WHERE name = 'entry'");
  return q.next() ? q.unsigned_integer(0) : 0;
}

std::uint64_t ids_set_aside(sqlite::connection& c) {
  sqlite::query q(c, "SELECT CAST(value AS INTEGER) FROM store WHERE key = 'ids'");
  return q.next() ? q.unsigned_integer(0) : 0;
}

// Ids that were set aside in an earlier boot may have been given to files whose entries are lost.
void skip_ids_of_other_boots(sqlite::connection& c) {
  {
    sqlite::query q(c, "SELECT value FROM store WHERE key = 'ids_boot'");
    if (!q.next() || q.text(0) == this_process().boot) return;
  }
  sqlite::run(c,
              "UPDATE sqlite_sequence SET seq = max(seq, (SELECT CAST(value AS INTEGER) FROM store WHERE key = 'ids'))"
              " WHERE name = 'entry'");
}

}  // namespace

void set_ids_aside(sqlite::connection& c) {
  if (last_id(c) + ids_to_spare <= ids_set_aside(c)) return;
  const durable_commits durable(c);
  sqlite::transaction t(c, sqlite::transaction_kind::write);
  sqlite::run(c, "INSERT OR REPLACE INTO store VALUES ('ids', ?)", std::to_string(last_id(c) + ids_at_once));
  sqlite::run(c, "INSERT OR REPLACE INTO store VALUES ('ids_boot', ?)", this_process().boot);
  t.commit();
}

std::unique_ptr<sqlite::connection> open_metadata_database(const std::filesystem::path& file,
                                                           std::string_view store_uuid, sqlite::open_as how) {
  auto c = std::make_unique<sqlite::connection>(file, how);
  const std::string name = "metadata database '" + file.string() + "'";
  if (pragma(*c, "PRAGMA application_id") != metadata_application_id)
    throw usage_error(errc::not_a_store, name + " was not made by oocarray: give the folder of a store");
  if (const auto version = pragma(*c, "PRAGMA user_version"); version != metadata_schema_version)
    refuse_version(name, version, metadata_schema_version);
  {
    sqlite::query q(*c, "SELECT value FROM store WHERE key = 'required_features'");
    if (const std::string features = unknown_features(q.next() ? q.text(0) : ""); !features.empty())
      throw usage_error(errc::not_a_store, name + " uses features that this release does not know (" + features +
                                               "): use a later release of oocarray");
  }
  {
    sqlite::query q(*c, "SELECT value FROM store WHERE key = 'uuid'");
    const std::string uuid = q.next() ? q.text(0) : std::string();
    if (uuid != store_uuid)
      throw usage_error(errc::not_a_store, name + " belongs to store " + uuid + ", its folder to store " +
                                               std::string(store_uuid) + ": put the store's own database back");
  }
  if (how != sqlite::open_as::existing && how != sqlite::open_as::alone) return c;
  require_log(*c, file);
  // The write-ahead log survives the death of any process as it is; loss of power needs sync().  In RADOS what is not
  // durable is on its way in the process.
  c->execute(std::string("PRAGMA synchronous = ") + (c->always_durable() ? "FULL" : "NORMAL"));
  skip_ids_of_other_boots(*c);
  return c;
}

}  // namespace ooc::storage
