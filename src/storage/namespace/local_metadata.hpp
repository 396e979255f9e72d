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
// Permissions: as in POSIX, without access lists.  Uid 0 may do everything.  Locally the caller is who the
// process runs as, so this protects against mistakes only: whoever can write the database file can
// change all of it.  (What is in the files the modes of their stripe objects protect.)
//
// Who may not write the database opens it for reading only: changes are then refused with the reason.
//
// Must not be used in the child of a fork().
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/path_resolution.hpp"
#include "storage/namespace/reply_cache.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::storage {

/// Why a database is opened for reading only; its text goes on from "... cannot be changed: ".
struct read_only_access {
  std::error_code code;
  std::string text;
};

class local_metadata final : public metadata_service {
 public:
  /// Opens the database `file` of the store `store_uuid`, for calls by `who`.
  local_metadata(const std::filesystem::path& file, std::string_view store_uuid, credentials who);
  /// The same for who may not write it; see metadata_reader.hpp for what that needs.
  local_metadata(const std::filesystem::path& file, std::string_view store_uuid, credentials who,
                 const read_only_access& why);
  ~local_metadata() override;

  /// The same open database for another caller.
  std::shared_ptr<metadata_service> as(credentials who) const;

  /// For servers: the same open database for one call of a client.  What it changes is recorded
  /// with the change (reply_cache.hpp), files that it makes belong to the client, and calls that name
  /// a file by its id are checked: set_size() and find() need the caller's permission, commit() and
  /// abandon() must come from the maker, removal_capability() is for ids that were in use.
  local_metadata as(credentials who, const client_call& call) const;
  /// What this call did, if it was done before; for create() and remove() the entry it was about.
  std::optional<entry> outcome() const;
  /// The entry of this file where the client is making it; without its path.
  std::optional<entry> being_made(file_id id) const;
  /// How many names it has; 0: it is gone.
  std::uint32_t names_of(file_id id) const;
  /// True where the client is making some file.
  bool makes_files(const client_key& client) const;
  /// For servers, once before the first call: makes the tables that they need, and says which of
  /// the clients that make files may still be there.  `alive` is called under the database's mutex.
  void serve(std::function<bool(const client_key&)> alive);
  /// The clients that the database knows: by their last call or by a file that they are making.
  std::vector<client_key> clients() const;
  /// The last call of this client need not be remembered any more.
  void forget_client(const client_key& client);
  /// list() in parts: the entries of a folder whose names are greater than `after`, until they are
  /// `max_entries` or their texts pass `max_bytes`.
  folder_part list_part(std::string_view path, std::string_view after, std::size_t max_entries,
                        std::size_t max_bytes);
  /// files() in parts: at most `max` ids above `after`, ascending.
  std::vector<file_id> files_above(file_id after, std::uint64_t max);

  entry lookup(std::string_view path) override;
  entry open(std::string_view path, bool write, bool unfinished = false) override;
  entry create(std::string_view path, const new_file& f) override;
  void commit(file_id id) override;
  void abandon(file_id id) override;
  void mkdir(std::string_view path, std::uint32_t mode, bool parents) override;
  std::vector<entry> list(std::string_view path) override;
  void rename(std::string_view from, std::string_view to) override;
  entry remove(std::string_view path) override;
  void forget(file_id id) override;
  capability_ptr removal_capability(file_id id) override;
  capability_ptr size_capability(file_id, std::uint64_t) override { return {}; }
  bool set_size(file_id id, std::uint64_t size, const std::vector<std::uint64_t>& extents,
                std::uint64_t generation, std::uint64_t reserved = 0) override;
  void set_generation(file_id id, std::uint64_t generation) override;
  void set_in_progress(file_id id, std::string_view what) override;
  void set_attribute(std::string_view path, std::string_view key, std::string_view value) override;
  void remove_attribute(std::string_view path, std::string_view key) override;
  void set_mode(std::string_view path, std::uint32_t mode) override;
  void set_owner(std::string_view path, std::uint32_t uid, std::uint32_t gid) override;
  std::vector<file_id> files() override;
  std::vector<file_id> unfinished() override;
  std::vector<file_id> dead() override;
  entry find(file_id id) override;
  std::shared_ptr<void> lock_size(file_id id) override;
  std::shared_ptr<void> claim_writer(file_id id, bool together,
                                     claim_holder* in_the_way = nullptr) override;
  // By id: local_metadata_by_id.cpp
  entry stat(file_id id) override;
  entry look_in(const place& at) override;
  folder_part list_in(file_id folder, std::string_view after) override;
  entry make(const place& at, const new_entry& what) override;
  entry link(file_id id, const place& at) override;
  entry unlink(const place& at, bool folder) override;
  entry move(const place& from, const place& to, bool replace) override;
  entry change(file_id id, const entry_change& what) override;
  void set_attribute_of(file_id id, std::string_view key, std::string_view value) override;
  void remove_attribute_of(file_id id, std::string_view key) override;
  void sync() override;

 private:
  struct database;  // the connection and its mutex, shared by all callers of the process

  local_metadata(std::shared_ptr<database> db, credentials who,
                 std::optional<client_call> call = std::nullopt);
  std::uint32_t masked(std::uint32_t mode) const;
  template <class F>
  void change_entry(std::string_view path, F f);
  void record(const entry& about = {}) const;  // inside the transaction
  entry drop_name(const path_resolution& walk, const path_resolution::place& p) const;
  void require_maker(file_id id) const;
  void require_writer(sqlite::connection& c, file_id id, const char* doing) const;

  std::shared_ptr<database> db_;
  credentials who_;
  std::optional<client_call> call_;
};

}  // namespace ooc::storage
