// The name space of a store in an SQLite database.
//
// Any number of threads and processes of one machine use it at once: within a process one
// connection under a mutex, between processes SQLite's own locks (write-ahead log; a wait for
// another process ends after 30 s with ETIMEDOUT).  Every call is one transaction, so a folder is
// never seen half renamed.  A change is acknowledged when the call returns and then survives the
// death of any process; the loss of power it survives after sync() (the log is written without
// fsync, which is what lets creates run at thousands a second; after a loss of power the database
// is whole, but the last unsynced changes may be missing).
//
// Permissions: as in POSIX, without access lists.  Uid 0 may do everything.  Locally the caller is the user that the
// process runs as, so this protects against mistakes only: whoever can write the database file can
// change all of it.  (What is in the files the modes of their stripe objects protect.)
//
// A process that may not write the database opens it for reading only: changes are then refused with the reason.
//
// A database in RADOS is open in one process at a time, and all that was acknowledged is durable.
//
// Must not be used in the child of a fork().
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "storage/namespace/call_runner.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::storage {

/// Why a database is opened for reading only; its text goes on from "... cannot be changed: ".
struct read_only_access {
  std::error_code code;
  std::string text;
};

class local_metadata : public metadata_service, protected call_runner {
 public:
  /// Opens the database `file` of the store `store_uuid`, for calls by `who`.  `how`: existing or alone.
  local_metadata(const std::filesystem::path& file, std::string_view store_uuid, credentials who,
                 sqlite::open_as how = sqlite::open_as::existing);
  /// The same for who may not write it; see metadata_reader.hpp for what that needs.
  local_metadata(const std::filesystem::path& file, std::string_view store_uuid, credentials who,
                 const read_only_access& why);

  /// The same open database for another caller.
  std::shared_ptr<metadata_service> as(credentials who) const;

  metadata_answer answer(const metadata_call& call) override;
  size_lock_ptr lock_size(file_id id) override;
  std::shared_ptr<void> claim_writer(file_id id, bool together, claim_holder* in_the_way = nullptr) override;

 protected:
  local_metadata(std::shared_ptr<metadata_database> db, credentials who,
                 std::optional<client_call> call = std::nullopt);

 private:
  template <class Call>
  answer_of<Call> look(const Call& q) const;
  template <class Call>
  answer_of<Call> carry_out(const Call& q) const;
  id_part list_ids(const calls::ids& q) const;
  template <class Lock>
  std::invoke_result_t<Lock, file_id> locked(file_id id, const Lock& lock) const;
  /// Of the file that has taken the place of this one, if any has.
  file_id current_id(file_id id) const;
  nothing sync_all() const;
};

}  // namespace ooc::storage
