// A thin hold on SQLite: a connection, its statements and transactions as objects.
//
// Invariants: a `connection` is used by one thread at a time (its owner holds a mutex); a `query`
// ends before the next one on the same SQL text begins; a `transaction` that was not committed is
// rolled back.  Failures are thrown: io_error with an errno that fits (ENOSPC, EACCES, ETIMEDOUT
// after `busy_timeout`, EROFS, EIO), integrity_error (errc::corrupt) for a damaged database.  The text
// names the file.
//
// Full disks: what is in the database can always be changed and removed.  The log has blocks for one more
// transaction (log_room bytes) beyond what is in it, also while nobody has the database open; where it
// cannot get them, its contents go into the database, and it begins anew, with 1 MiB.  For that every page that a
// transaction adds gets its place in the database when it is committed: a transaction for which there is none
// fails with ENOSPC, and nothing is in the log that cannot leave it.  Emptying the log ends with cutting the
// database to the pages that are in it, so nobody empties it between those two steps of another's: a lock
// (`flock` of the log, on which SQLite has none) is shared by those who grow and exclusive for who empties.
//
// In RADOS none of that is needed: the log belongs to the one process that has the database open, and each commit is
// durable.
//
// A connection must not be used in a child after fork().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "storage/base/file_descriptor.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace ooc::storage::sqlite {

enum class open_as {
  existing,   ///< to read and write; closing leaves the log, emptied, and its index, for readers
  fresh,      ///< made where it is missing
  read_only,  ///< beside writers: needs the log and its index
  sealed,     ///< nobody writes it, the caller sees to that: needs nothing but the database
  alone,      ///< in RADOS (rados_database.hpp), made where it is missing; nobody else opens it meanwhile
};

/// A part in the lock of a log; given back by the destructor, also where a child has inherited it.
class log_lock {
 public:
  log_lock() = default;
  // Nothing is held where there is no log.
  /// The whole of it, if nobody is in the way.
  static log_lock alone(const std::string& log) noexcept;
  /// Together with others.  Waits for who has the whole of it; io_error, ETIMEDOUT where that takes longer.
  static log_lock shared(const std::string& log, std::chrono::milliseconds patience);
  log_lock(log_lock&&) = default;
  ~log_lock();

  bool refused() const noexcept { return refused_; }  ///< others hold it

 private:
  explicit log_lock(const std::string& log) noexcept;

  file_descriptor log_;
  bool refused_ = false;
};

class connection {
 public:
  /// How long a statement waits for another process that holds the database.
  static constexpr std::chrono::seconds busy_timeout{30};
  /// More than any removal writes, and what most changes do.
  static constexpr std::uint64_t log_room = 512 << 10;  // bytes

  connection(const std::filesystem::path& file, open_as how);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// Runs SQL that returns nothing of interest.
  void execute(const std::string& sql);
  /// The statement for this text, made on first use; owned by the connection.
  sqlite3_stmt* prepared(std::string_view sql);

  std::int64_t last_insert_id() const noexcept;
  int changes() const noexcept;
  /// Every commit is durable.
  bool always_durable() const noexcept { return how_ == open_as::alone; }
  const std::filesystem::path& file() const noexcept { return file_; }

  /// Moves what is in the log into the database, so that the log can begin anew.  False where not everything
  /// was moved: somebody reads it, or is growing the database.  Waits for nobody.
  bool empty_log() noexcept;

  /// In a child of a fork() whose parent goes on: lets go of what is here of the parent's connection, and changes
  /// nothing in the files.  SQLite would else take the parent's locks for locks of the child.  Nobody was in a call
  /// when the process was forked.
  void abandon() noexcept;
  /// Throws what the last failure on this connection was.
  [[noreturn]] void fail(std::string_view doing) const;

 private:
  static int committed(void* self, sqlite3* db, const char* name, int pages);
  /// Gives the log blocks for log_room bytes from `begin` on, and for `more` so that not every commit asks.
  /// False where the disk is full.  A file system that reserves nothing counts as having room.
  bool reserve_log(std::uint64_t begin, std::uint64_t more = log_room) const noexcept;

  friend class transaction;
  struct room {
    std::int64_t pages = 0;  ///< that the database will have
    log_lock held{};         ///< while this is there, nobody takes the room away
  };
  /// Makes room in the database for the pages that the transaction has added; io_error (ENOSPC) where there is
  /// none.
  room make_room_for_pages();
  std::string log_file() const { return file_.string() + "-wal"; }

  std::filesystem::path file_;
  open_as how_;
  sqlite3* db_ = nullptr;
  bool writes_ = false;
  std::int64_t pages_with_room_ = 0;  // of the database
  std::unordered_map<std::string_view, sqlite3_stmt*> statements_;
};

/// One run of a prepared statement.  `sql` must be a string literal: it is the key of the cache.
class query {
 public:
  template <class... Args>
  query(connection& c, std::string_view sql, const Args&... args) : c_(c), s_(c.prepared(sql)) {
    int i = 0;
    (bind(++i, args), ...);
  }
  ~query();
  query(const query&) = delete;
  query& operator=(const query&) = delete;

  /// Moves to the next row; false: there is none.
  bool next();

  std::int64_t integer(int column) const;
  std::uint64_t unsigned_integer(int column) const { return static_cast<std::uint64_t>(integer(column)); }
  std::string text(int column) const;
  std::vector<std::byte> blob(int column) const;

 private:
  void bind(int i, std::int64_t v);
  void bind(int i, std::uint64_t v) { bind(i, static_cast<std::int64_t>(v)); }
  void bind(int i, std::uint32_t v) { bind(i, std::int64_t{v}); }
  void bind(int i, int v) { bind(i, std::int64_t{v}); }
  void bind(int i, bool v) { bind(i, std::int64_t{v}); }
  void bind(int i, std::string_view v);
  void bind(int i, const std::string& v) { bind(i, std::string_view(v)); }
  void bind(int i, const std::vector<std::byte>& v);
  void check(int rc) const;

  connection& c_;
  sqlite3_stmt* s_;
};

/// Runs a statement that returns no rows.
template <class... Args>
void run(connection& c, std::string_view sql, const Args&... args) {
  query q(c, sql, args...);
  q.next();
}

enum class transaction_kind { read, write };

/// Everything between construction and commit() happens at once or not at all, for every process.
class transaction {
 public:
  transaction(connection& c, transaction_kind kind);
  ~transaction();
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;
  void commit();

 private:
  connection& c_;
  bool open_ = true;
};

}  // namespace ooc::storage::sqlite
