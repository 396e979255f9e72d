// The open database behind local_metadata: the connection, its mutex, and how a call holds them.
//
// For the sources of this room alone.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/process_identity.hpp"
#include "storage/namespace/local_metadata.hpp"
#include "storage/namespace/metadata_reader.hpp"
#include "storage/namespace/path_resolution.hpp"
#include "storage/namespace/sqlite.hpp"

namespace ooc::storage {

struct metadata_database {
  /// One call: nobody else uses the database meanwhile, and where it is read as it lies, no writer comes.
  class OOC_SCOPED_CAPABILITY use {
   public:
    use(ooc::mutex& m, metadata_database& db) OOC_ACQUIRE(m) : lock_(m) {
      if (db.forked) refuse_forked();
      if (db.reader) opening_ = db.reader->begin();
    }
    ~use() OOC_RELEASE() = default;
    use(const use&) = delete;
    use& operator=(const use&) = delete;

   private:
    [[noreturn]] static void refuse_forked();

    lock_guard<ooc::mutex> lock_;
    opening_lock opening_;
  };

  metadata_database();
  ~metadata_database();
  metadata_database(const metadata_database&) = delete;
  metadata_database& operator=(const metadata_database&) = delete;

  ooc::mutex mutex;
  bool forked OOC_GUARDED_BY(mutex) = false;  // this is a child, and the parent has opened it: metadata_fork.cpp
  // Of who may write, and of who may not.
  std::unique_ptr<sqlite::connection> connection OOC_GUARDED_BY(mutex);
  std::optional<metadata_reader> reader OOC_GUARDED_BY(mutex);
  std::optional<read_only_access> read_only;  // why he may not; set by the constructor
  std::filesystem::path locks;                // the file whose byte ranges are the locks of file_locks.hpp
  file_descriptor own_locks;                  // that file where no other process opens the database
  process_identity me = this_process();
  std::function<bool(const client_key&)> client_alive OOC_GUARDED_BY(mutex);  // set by servers

  void require_writable(const std::string& what) const {
    if (read_only) refuse(read_only->code.value(), what + " cannot be changed: " + read_only->text);
  }

  sqlite::connection& now() const OOC_REQUIRES(mutex) { return reader ? reader->connection() : *connection; }

  bool may_be_alive(const process_identity& maker) const OOC_REQUIRES(mutex) {
    if (client_alive)
      if (const auto client = client_of(maker)) return client_alive(*client);
    return storage::may_be_alive(maker);
  }
};

using database = metadata_database;

// Commits are durable while this lives.
class durable_commits {
 public:
  explicit durable_commits(sqlite::connection& c) : c_(c) { c_.execute("PRAGMA synchronous = FULL"); }
  ~durable_commits() {
    try {
      if (!c_.always_durable()) c_.execute("PRAGMA synchronous = NORMAL");
    } catch (const error&) {
      // Later commits are then durable too: slow, not wrong.
    }
  }
  durable_commits(const durable_commits&) = delete;

 private:
  sqlite::connection& c_;
};

}  // namespace ooc::storage
