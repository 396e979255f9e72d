#include "storage/namespace/served_metadata.hpp"

#include <chrono>
#include <utility>

#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/metadata_database.hpp"

namespace ooc::storage {

using sqlite::query;
using sqlite::transaction;
using sqlite::transaction_kind;

// One call.

served_call::served_call(std::shared_ptr<metadata_database> db, credentials who, const client_call& call)
    : local_metadata(std::move(db), std::move(who), call) {}

std::optional<std::string> served_call::kept_reply() const {
  const database::use lock(db_->mutex, *db_);
  return storage::kept_reply(db_->now(), *call_);
}

std::optional<served_call::unfinished_file> served_call::being_made(file_id id) const {
  const database::use lock(db_->mutex, *db_);
  query q(db_->now(),
          "SELECT boot, pid_space FROM making m JOIN entry e ON e.id = m.id"
          " WHERE m.id = ? AND substr(e.name, 1, 1) != '/'",
          id);
  if (!q.next()) return {};
  const bool by_caller = client_of({0, 0, q.text(0), q.text(1)}) == call_->client;
  entry e = read_entry(db_->now(), id, {});
  if (!by_caller && e.owner != who_.uid) return {};
  return unfinished_file{std::move(e), by_caller};
}

// The server's own.

served_metadata::served_metadata(const std::filesystem::path& file, std::string_view store_uuid,
                                 std::function<bool(const client_key&)> alive, sqlite::open_as how)
    : local_metadata(file, store_uuid, {0, 0}, how) {
  const database::use lock(db_->mutex, *db_);
  make_reply_cache(db_->now());
  db_->client_alive = std::move(alive);
}

sqlite::connection& served_metadata::connection() const OOC_NO_THREAD_SAFETY_ANALYSIS { return *db_->connection; }

served_call served_metadata::of(credentials who, const client_call& call) const { return {db_, std::move(who), call}; }

bool served_metadata::makes_files(const client_key& client) const {
  const database::use lock(db_->mutex, *db_);
  for (const file_maker& m : read_makers(db_->now()))
    if (client_of(m.maker) == client) return true;
  return false;
}

std::vector<client_key> served_metadata::clients() const {
  const database::use lock(db_->mutex, *db_);
  std::vector<client_key> all = logged_clients(db_->now());
  for (const file_maker& m : read_makers(db_->now()))
    if (const auto client = client_of(m.maker)) all.push_back(*client);
  return all;
}

void served_metadata::forget_client(const client_key& client) {
  const database::use lock(db_->mutex, *db_);
  transaction t(db_->now(), transaction_kind::write);
  forget_calls(db_->now(), client);
  t.commit();
}

void served_metadata::lose_client(const client_key& client) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const database::use lock(db_->mutex, *db_);
  transaction t(db_->now(), transaction_kind::write);
  storage::lose_client(db_->now(), client, std::chrono::duration_cast<std::chrono::seconds>(now), db_->client_alive);
  t.commit();
}

}  // namespace ooc::storage
