#include "storage/namespace/sqlite.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "oocarray/error.hpp"
#include "storage/base/notice.hpp"
#include "storage/namespace/opening_lock.hpp"

namespace ooc::storage::sqlite {

namespace {

int errno_of(int rc) {
  switch (rc & 0xff) {
    case SQLITE_FULL: return ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return ETIMEDOUT;
    case SQLITE_READONLY: return EROFS;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN: return EACCES;
    case SQLITE_NOMEM: return ENOMEM;
    default: return EIO;
  }
}

// The log's index is not made yet, and who may only read cannot make it.  A writer that opens the
// database does so as its first step.
bool lacks_index(int rc) { return rc == SQLITE_READONLY_RECOVERY || rc == SQLITE_READONLY_CANTINIT; }

constexpr std::chrono::seconds patience_with_opening{2};

// Does `call`, and again while a reader finds no index that it could use: one that a writer is changing just now
// looks the same as one that was never made.
template <class F>
int once_there_is_an_index(F call) {
  int rc = call();
  if (!lacks_index(rc)) return rc;
  for (const auto until = std::chrono::steady_clock::now() + patience_with_opening;
       lacks_index(rc) && std::chrono::steady_clock::now() < until; rc = call())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return rc;
}

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t log_header_bytes = 32, frame_header_bytes = 24;
// Each emptying of the log syncs twice; at SQLite's 1000 pages that is most of what creates cost.
constexpr int most_pages_in_log = 8000;   // 32 MiB
constexpr int room_for_pages = 64 << 10;  // by how much the database grows at a time, in bytes

const char* remedy_of(int rc) {
  if (lacks_index(rc))
    return "; a writer died while it opened the store: let somebody who may write it open it once "
           "(`ooc ls`)";
  switch (rc & 0xff) {
    case SQLITE_FULL: return "; free some space on that disk";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "; another process has held the database for longer than 30 s: look for one that is "
             "stopped";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN: return "; the file and its folder must exist and be writable by this user";
    default: return "";
  }
}

[[noreturn]] void fail_with(int rc, std::string_view doing, const std::filesystem::path& file, const char* message) {
  const std::string what =
      "metadata database '" + file.string() + "': " + std::string(doing) + ": " + message + remedy_of(rc);
  if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB)
    throw integrity_error(errc::corrupt, what + "; restore it from a copy");
  throw io_error({errno_of(rc), std::generic_category()}, what);
}

// As SQLite wants the name of a file that is to be read and never looked at for changes or locks.
std::string uri_of_sealed(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string()) {
    if (c == '%' || c == '?' || c == '#') {
      uri += '%';
      uri += "0123456789abcdef"[c >> 4];
      uri += "0123456789abcdef"[c & 15];
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

log_lock::log_lock(const std::string& log) noexcept : log_(::open(log.c_str(), O_RDONLY | O_CLOEXEC)) {}

log_lock log_lock::alone(const std::string& log) noexcept {
  log_lock l(log);
  while (l.log_ && ::flock(l.log_.get(), LOCK_EX | LOCK_NB) != 0) {
    l.refused_ = errno == EWOULDBLOCK;
    if (errno != EINTR) break;
  }
  return l;
}

log_lock log_lock::shared(const std::string& log, std::chrono::milliseconds patience) {
  log_lock l(log);
  if (!l.log_) return l;
  const std::string whom = "another process that empties the log '" + log + "'";
  if (lock_within(l.log_.get(), LOCK_SH, patience, whom) == ETIMEDOUT)
    throw io_error::in_full({ETIMEDOUT, std::generic_category()},
                            "metadata database: nothing was changed: " + whom + " has kept it locked for " +
                                seconds_text(patience) + ": look for one that is stopped");
  return l;  // a file system without locks keeps nobody apart
}

log_lock::~log_lock() {
  if (log_) ::flock(log_.get(), LOCK_UN);
}

connection::connection(const std::filesystem::path& file, open_as how) : file_(file), how_(how) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const bool makes = how == open_as::fresh || how == open_as::alone;
  flags |= makes || how == open_as::existing ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  if (makes) flags |= SQLITE_OPEN_CREATE;
  if (how == open_as::sealed) flags |= SQLITE_OPEN_URI;
  const std::string name = how == open_as::sealed ? uri_of_sealed(file) : file.string();
  const int rc = sqlite3_open_v2(name.c_str(), &db_, flags, how == open_as::alone ? "ceph" : nullptr);
  if (rc != SQLITE_OK) {
    const std::string message = db_ ? sqlite3_errmsg(db_) : sqlite3_errstr(rc);
    sqlite3_close(db_);
    std::error_code ignored;
    if (!makes && !std::filesystem::exists(file_, ignored) && !ignored)
      throw io_error::in_full({ENOENT, std::generic_category()},
                              "metadata database '" + file_.string() +
                                  "' is not there, and only it knows the names and shapes of the store's files: put it "
                                  "back, from a copy if it is lost");
    fail_with(rc, "cannot be opened", file_, message.c_str());
  }
  writes_ = how == open_as::existing;
  if (writes_) {
    int on = 1, growth = room_for_pages;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
    // A log that has a limit is emptied when it is closed: then a copy of the database alone is
    // whole.  It is cut to it when it begins anew, which leaves the disk to others.
    const std::string limit = "PRAGMA journal_size_limit = " + std::to_string(2 * log_room);
    sqlite3_exec(db_, limit.c_str(), nullptr, nullptr, nullptr);
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_CHUNK_SIZE, &growth);
    sqlite3_wal_hook(db_, committed, this);
    if (!reserve_log(0)) (void)reserve_log(0, 0);
  }
  // Without memory that processes share there is a log only so.
  if (how == open_as::alone) sqlite3_exec(db_, "PRAGMA locking_mode = EXCLUSIVE", nullptr, nullptr, nullptr);
  sqlite3_busy_timeout(db_, static_cast<int>(std::chrono::milliseconds(busy_timeout).count()));
}

void connection::abandon() noexcept {
  for (auto& [sql, s] : statements_) sqlite3_finalize(s);
  statements_.clear();
  // One in RADOS is closed by calls to its cluster, for which a child has no threads: it stays as it is.
  if (how_ != open_as::alone) {
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_close(db_);
  }
  db_ = nullptr;
  writes_ = false;
}

connection::~connection() {
  for (auto& [sql, s] : statements_) sqlite3_finalize(s);
  sqlite3_close(db_);
  // The last one to close has emptied the log, and with that given up its blocks.
  if (writes_ && !reserve_log(0)) (void)reserve_log(0, 0);
}

bool connection::reserve_log(std::uint64_t begin, std::uint64_t more) const noexcept {
  struct ::stat s {};
  if (::stat(log_file().c_str(), &s) != 0) return true;
  // Whoever begins the log anew makes it shorter: only the file knows what it has.
  if (begin + log_room <= static_cast<std::uint64_t>(s.st_blocks) * 512) return true;
  // No lock of SQLite is on this file: closing it releases none.
  const file_descriptor log(::open(log_file().c_str(), O_RDWR | O_CLOEXEC));
  return !log || ::fallocate(log.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(begin + log_room + more)) == 0 ||
         (errno != ENOSPC && errno != EDQUOT);
}

bool connection::empty_log() noexcept {
  const log_lock alone = log_lock::alone(log_file());
  if (alone.refused()) return false;
  int in_log = 0, moved = 0;
  return sqlite3_wal_checkpoint_v2(db_, "main", SQLITE_CHECKPOINT_PASSIVE, &in_log, &moved) == SQLITE_OK &&
         moved == in_log;
}

int connection::committed(void* self, sqlite3*, const char*, int pages) {
  auto& c = *static_cast<connection*>(self);
  const std::uint64_t end = log_header_bytes + static_cast<std::uint64_t>(pages) * (page_bytes + frame_header_bytes);
  const bool full = !c.reserve_log(end);
  if (!full && pages < most_pages_in_log) return SQLITE_OK;
  if (!c.empty_log() && full) (void)c.reserve_log(end, 0);  // it cannot begin anew yet
  return SQLITE_OK;
}

connection::room connection::make_room_for_pages() {
  if (!writes_) return {};
  query q(*this, "PRAGMA page_count");
  const std::int64_t pages = q.next() ? q.integer(0) : 0;
  if (pages <= pages_with_room_) return {pages_with_room_};
  room r{pages, log_lock::shared(log_file(), busy_timeout)};  // who empties the log lets go soon
  std::int64_t bytes = pages * static_cast<std::int64_t>(page_bytes);
  const int rc = sqlite3_file_control(db_, "main", SQLITE_FCNTL_SIZE_HINT, &bytes);
  if (rc == SQLITE_IOERR_WRITE || rc == SQLITE_FULL)
    fail_with(SQLITE_FULL, "cannot grow", file_, sqlite3_errstr(SQLITE_FULL));
  if (rc != SQLITE_OK) fail_with(rc, "cannot grow", file_, sqlite3_errstr(rc));
  return r;
}

void connection::execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail(sql);
}

sqlite3_stmt* connection::prepared(std::string_view sql) {
  if (const auto it = statements_.find(sql); it != statements_.end()) return it->second;
  sqlite3_stmt* s = nullptr;
  const auto prepare = [&] {
    return sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &s, nullptr);
  };
  if (once_there_is_an_index(prepare) != SQLITE_OK) fail(sql);  // the first reads which tables there are
  statements_.emplace(sql, s);
  return s;
}

std::int64_t connection::last_insert_id() const noexcept { return sqlite3_last_insert_rowid(db_); }

int connection::changes() const noexcept { return sqlite3_changes(db_); }

void connection::fail(std::string_view doing) const {
  fail_with(sqlite3_extended_errcode(db_), doing, file_, sqlite3_errmsg(db_));
}

query::~query() {
  sqlite3_reset(s_);
  sqlite3_clear_bindings(s_);
}

bool query::next() {
  const int rc = once_there_is_an_index([this] {
    const int r = sqlite3_step(s_);
    if (lacks_index(r)) sqlite3_reset(s_);
    return r;
  });
  if (rc == SQLITE_ROW) return true;
  if (rc != SQLITE_DONE) c_.fail(sqlite3_sql(s_));
  return false;
}

std::int64_t query::integer(int column) const { return sqlite3_column_int64(s_, column); }

std::string query::text(int column) const {
  const auto* p = reinterpret_cast<const char*>(sqlite3_column_text(s_, column));
  return p ? std::string(p, static_cast<std::size_t>(sqlite3_column_bytes(s_, column))) : std::string();
}

std::vector<std::byte> query::blob(int column) const {
  const auto* p = static_cast<const std::byte*>(sqlite3_column_blob(s_, column));
  if (!p) return {};
  return {p, p + sqlite3_column_bytes(s_, column)};
}

void query::bind(int i, std::int64_t v) { check(sqlite3_bind_int64(s_, i, v)); }

void query::bind(int i, std::string_view v) {
  check(sqlite3_bind_text64(s_, i, v.data() ? v.data() : "", v.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void query::bind(int i, const std::vector<std::byte>& v) {
  if (v.empty())
    check(sqlite3_bind_zeroblob(s_, i, 0));
  else
    check(sqlite3_bind_blob64(s_, i, v.data(), v.size(), SQLITE_TRANSIENT));
}

void query::check(int rc) const {
  if (rc != SQLITE_OK) c_.fail(sqlite3_sql(s_));
}

transaction::transaction(connection& c, transaction_kind kind) : c_(c) {
  if (kind == transaction_kind::write)
    run(c_, "BEGIN IMMEDIATE");
  else
    run(c_, "BEGIN");
}

transaction::~transaction() {
  if (!open_) return;
  try {
    run(c_, "ROLLBACK");
  } catch (const std::exception&) {
    // SQLite has already rolled back after the failure that brought us here.
  }
}

void transaction::commit() {
  const connection::room r = c_.make_room_for_pages();
  run(c_, "COMMIT");
  open_ = false;
  c_.pages_with_room_ = r.pages;  // not before: what is rolled back may shrink again
}

}  // namespace ooc::storage::sqlite
