#include "storage/namespace/local_metadata.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "storage/base/mutex.hpp"
#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/file_locks.hpp"
#include "storage/namespace/metadata_database.hpp"
#include "storage/namespace/metadata_schema.hpp"

namespace ooc::storage {

using sqlite::transaction;
using sqlite::transaction_kind;

namespace {

constexpr std::size_t most_ids = 100'000;  // in one answer of a server

// The entry that a call is about, for messages.
template <class Call>
std::string name_of(const Call& q) {
  if constexpr (requires { q.where; })
    return shown(q.where);
  else if constexpr (requires { q.from; })
    return shown(q.from);
  else if constexpr (requires { q.files; })
    return std::to_string(q.files.size()) + " files";
  else
    return "file number " + std::to_string(q.id);
}

// Whether the change is to be durable when it is committed, not only after the next sync().
template <class Call>
bool is_durable(sqlite::connection& c, const Call& q) {
  if constexpr (std::is_same_v<Call, calls::set_size>)
    return q.generation > generation_of(c, q.id);  // the stripe objects have it already, durably
  return std::is_same_v<Call, calls::set_generation> || std::is_same_v<Call, calls::set_in_progress> ||
         std::is_same_v<Call, calls::decide> || std::is_same_v<Call, calls::take_over>;
}

// Whether it makes a file, whose id names stripe objects.
template <class Call>
bool makes_file(const Call& q) {
  if constexpr (std::is_same_v<Call, calls::make>) return q.what.kind == entry_kind::file;
  return std::is_same_v<Call, calls::create>;
}

// The part of an answer that is kept for each client: nobody who changes an entry reads its attributes, which may
// have megabytes.
template <class Answer>
Answer without_attributes(Answer a) {
  if constexpr (std::is_same_v<Answer, entry>) a.attributes.clear();
  return a;
}

}  // namespace

local_metadata::local_metadata(const std::filesystem::path& file, std::string_view store_uuid, credentials who,
                               sqlite::open_as how)
    : call_runner(std::make_shared<database>(), std::move(who)) {
  db_->connection = open_metadata_database(file, store_uuid, how);
  db_->locks = file.parent_path() / "metadata.locks";
  if (how != sqlite::open_as::alone) return;
  db_->own_locks = locks_of_one_process();
  db_->locks = "/proc/self/fd/" + std::to_string(db_->own_locks.get());
}

local_metadata::local_metadata(const std::filesystem::path& file, std::string_view store_uuid, credentials who,
                               const read_only_access& why)
    : call_runner(std::make_shared<database>(), std::move(who)) {
  db_->reader.emplace(file, std::string(store_uuid));
  db_->read_only = why;
}

local_metadata::local_metadata(std::shared_ptr<database> db, credentials who, std::optional<client_call> call)
    : call_runner(std::move(db), std::move(who), call) {}

std::shared_ptr<metadata_service> local_metadata::as(credentials who) const {
  return std::shared_ptr<metadata_service>(new local_metadata(db_, std::move(who)));
}

metadata_answer local_metadata::answer(const metadata_call& call) {
  return std::visit(
      [this]<class Call>(const Call& q) -> metadata_answer {
        if constexpr (std::is_same_v<Call, calls::ids>)
          return list_ids(q);
        else if constexpr (std::is_same_v<Call, calls::sync>)
          return sync_all();
        else if constexpr (calls::changes<Call>)
          return carry_out(q);
        else
          return look(q);
      },
      call);
}

template <class Call>
answer_of<Call> local_metadata::look(const Call& q) const {
  const database::use lock(db_->mutex, *db_);
  const transaction t(db_->now(), transaction_kind::read);
  return run(q, {db_->now(), {db_->now(), who_, call_.has_value()}});
}

// Carries the call out and records that, in one transaction.
template <class Call>
answer_of<Call> local_metadata::carry_out(const Call& q) const {
  db_->require_writable(name_of(q));
  const database::use lock(db_->mutex, *db_);
  sqlite::connection& c = db_->now();
  if (makes_file(q)) set_ids_aside(c);
  std::optional<durable_commits> durable;
  if (is_durable(c, q)) durable.emplace(c);
  transaction t(c, transaction_kind::write);
  answer_of<Call> a = run(q, {c, {c, who_, call_.has_value()}});
  if constexpr (std::is_same_v<decltype(a), bool>)
    if (!a) return a;  // nothing was changed
  if (call_ && call_->sequence != 0) keep_reply(c, *call_, call_->reply(without_attributes(a)));
  t.commit();
  return a;
}

id_part local_metadata::list_ids(const calls::ids& q) const {
  const database::use lock(db_->mutex, *db_);
  sqlite::connection& c = db_->now();
  const std::size_t most = call_ ? most_ids : std::numeric_limits<std::int64_t>::max();
  id_part part;
  if (q.state == file_state::committed) {
    part.ids = read_file_ids(c, q.after, most);
    part.more = part.ids.size() == most;
    return part;
  }
  std::vector<file_id> ids;
  for (const auto& [id, maker] : read_makers(c)) {
    const bool alive = db_->may_be_alive(maker);
    if (alive != (q.state == file_state::unfinished)) continue;
    if (alive || db_->reader) {
      ids.push_back(id);
      continue;
    }
    transaction t(c, transaction_kind::write);
    if (bury(c, id)) t.commit();  // else another process swept it first
  }
  if (q.state == file_state::dead) {
    sqlite::query removed(c, "SELECT id FROM removed");
    while (removed.next()) ids.push_back(removed.unsigned_integer(0));
  }
  std::sort(ids.begin(), ids.end());
  const auto first = std::upper_bound(ids.begin(), ids.end(), q.after);
  const auto count = std::min(most, static_cast<std::size_t>(ids.end() - first));
  part.ids.assign(first, first + static_cast<std::ptrdiff_t>(count));
  part.more = first + static_cast<std::ptrdiff_t>(count) != ids.end();
  return part;
}

nothing local_metadata::sync_all() const {
  db_->require_writable("the store");
  const database::use lock(db_->mutex, *db_);
  sqlite::connection& c = db_->now();
  // One commit with fsync carries everything that is in the log before it.
  const durable_commits durable(c);
  sqlite::run(c, "UPDATE store SET value = value + 1 WHERE key = 'syncs'");
  return {};
}

// A lock of the file, also where another one takes its place just now.
template <class Lock>
std::invoke_result_t<Lock, file_id> local_metadata::locked(file_id id, const Lock& lock) const {
  for (;;) {
    const file_id now = current_id(id);
    auto held = lock(now);
    if (!held || current_id(id) == now) return held;
  }
}

file_id local_metadata::current_id(file_id id) const {
  const database::use lock(db_->mutex, *db_);
  const file_id now = now_at(db_->now(), id);
  return now == 0 ? id : now;
}

size_lock_ptr local_metadata::lock_size(file_id id) {
  db_->require_writable("file number " + std::to_string(id));
  // Owes no fence: nothing of a process is on its way any more when its locks end.
  return {new size_lock, [held = locked(id, [&](file_id now) { return storage::lock_size(db_->locks, now); })](
                             size_lock* l) { delete l; }};
}

std::shared_ptr<void> local_metadata::claim_writer(file_id id, bool together, claim_holder* /*in_the_way*/) {
  db_->require_writable("file number " + std::to_string(id));
  return locked(id, [&](file_id now) { return storage::claim_writer(db_->locks, now, together); });
}

}  // namespace ooc::storage
