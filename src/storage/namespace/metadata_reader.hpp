// The database of a store for who may not write it.
//
// SQLite lets such a reader take part, with locks, as long as the write-ahead log and its index are there.
// Where they are not, nobody has the database open for writing, and it is read as it lies ("sealed"), in each call
// under the opening_lock: a writer that comes waits for the end of the call, and makes the log before it does
// anything else; the next call finds it and goes over to it.
// docs/decisions/0017-read-only-opening.md has the states.
//
// One thread at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "storage/namespace/opening_lock.hpp"
#include "storage/namespace/sqlite.hpp"

namespace ooc::storage {

class metadata_reader {
 public:
  /// Opens the database `file` of the store `store_uuid`, beside which lies the node file.  Throws as
  /// open_metadata_database() does, and usage_error (EACCES) where a log waits that cannot be read without
  /// writing.
  metadata_reader(std::filesystem::path file, std::string store_uuid);

  /// Before each call: connection() then shows the store as it is, as long as the result lives.
  opening_lock begin();
  sqlite::connection& connection() const noexcept { return *connection_; }
  /// See sqlite::connection.
  void abandon() noexcept { connection_->abandon(); }

 private:
  enum class log_state { none, usable, waits };
  log_state look() const;
  opening_lock open();

  std::filesystem::path file_;
  std::string uuid_;
  std::filesystem::path node_file_;
  std::unique_ptr<sqlite::connection> connection_;
  bool sealed_ = false;
};

}  // namespace ooc::storage
