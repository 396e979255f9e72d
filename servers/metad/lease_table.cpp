#include "metad/lease_table.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>

#include "storage/base/invariants.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::metad {

using storage::sqlite::query;
using storage::sqlite::run;
using storage::sqlite::transaction;
using storage::sqlite::transaction_kind;

namespace {

std::vector<std::byte> blob_of(const client_key& client) {
  std::vector<std::byte> b(client.size());
  std::memcpy(b.data(), client.data(), b.size());
  return b;
}

bool exclude(lease_kind one, lease_kind other) {
  if (one == lease_kind::size || other == lease_kind::size) return one == other;
  return one == lease_kind::exclusive_writer || other == lease_kind::exclusive_writer;
}

}  // namespace

lease_table::lease_table(storage::sqlite::connection& database, std::size_t most) : connection_(database), most_(most) {
  connection_.execute(
      "CREATE TABLE IF NOT EXISTS lease (client BLOB NOT NULL, number INTEGER NOT NULL,"
      " file INTEGER NOT NULL, kind INTEGER NOT NULL, PRIMARY KEY (client, number)) WITHOUT ROWID");
  // The generation that the file had when its last size lease ended so.
  connection_.execute("CREATE TABLE IF NOT EXISTS unsettled (file INTEGER PRIMARY KEY, generation INTEGER NOT NULL)");
  connection_.execute(
      "CREATE TRIGGER IF NOT EXISTS unsettled_ends AFTER DELETE ON entry"
      " BEGIN DELETE FROM unsettled WHERE file = OLD.id; END");
  query q(connection_, "SELECT client, number, file, kind FROM lease");
  while (q.next()) {
    client_key client{};
    const auto blob = q.blob(0);
    std::memcpy(client.data(), blob.data(), std::min(blob.size(), client.size()));
    remember(client, q.unsigned_integer(1), {q.unsigned_integer(2), static_cast<lease_kind>(q.integer(3))});
  }
}

void lease_table::remember(const client_key& client, std::uint64_t number, const lease& l) {
  leases_[client][number] = l;
  held_.emplace(l.file, l.kind);
}

bool lease_table::is_held_against(file_id file, lease_kind kind) const {
  const auto [first, last] = held_.equal_range(file);
  return std::any_of(first, last, [&](const auto& held) { return exclude(kind, held.second); });
}

std::vector<client_key> lease_table::in_the_way(file_id file, lease_kind kind) const {
  std::vector<client_key> all;
  for (const auto& [client, leases] : leases_)
    if (std::any_of(leases.begin(), leases.end(),
                    [&](const auto& l) { return l.second.file == file && exclude(kind, l.second.kind); }))
      all.push_back(client);
  return all;
}

bool lease_table::take(const client_key& client, std::uint64_t number, file_id file, lease_kind kind) {
  const invariants_hold at_end(*this);
  if (const auto mine = leases_.find(client); mine != leases_.end()) {
    if (const auto l = mine->second.find(number); l != mine->second.end())
      return l->second.file == file && l->second.kind == kind;
    if (mine->second.size() >= most_)
      refuse(EMFILE, "this client holds " + std::to_string(most_) +
                         " claims and locks of files, the most that one may have: close files, or open them "
                         "in several programs");
  }
  if (is_held_against(file, kind)) return false;
  transaction t(connection_, transaction_kind::write);
  run(connection_, "INSERT INTO lease VALUES (?, ?, ?, ?)", blob_of(client), number, file, static_cast<int>(kind));
  t.commit();
  remember(client, number, {file, kind});
  return true;
}

void lease_table::drop(const client_key& client, std::uint64_t number, bool unsettled) {
  const invariants_hold at_end(*this);
  const auto mine = leases_.find(client);
  if (mine == leases_.end()) return;
  const auto l = mine->second.find(number);
  if (l == mine->second.end()) return;
  transaction t(connection_, transaction_kind::write);
  if (unsettled && l->second.kind == lease_kind::size)
    run(connection_, "INSERT OR REPLACE INTO unsettled SELECT id, generation FROM entry WHERE id = ?", l->second.file);
  run(connection_, "DELETE FROM lease WHERE client = ? AND number = ?", blob_of(client), number);
  t.commit();
  const auto [first, last] = held_.equal_range(l->second.file);
  held_.erase(std::find_if(first, last, [&](const auto& held) { return held.second == l->second.kind; }));
  mine->second.erase(l);
  if (mine->second.empty()) leases_.erase(mine);
}

bool lease_table::has(const client_key& client, std::uint64_t number) const {
  const auto mine = leases_.find(client);
  return mine != leases_.end() && mine->second.count(number) != 0;
}

bool lease_table::holds(const client_key& client, file_id file, lease_kind kind) const {
  const auto mine = leases_.find(client);
  return mine != leases_.end() && std::any_of(mine->second.begin(), mine->second.end(), [&](const auto& l) {
           return l.second.file == file && l.second.kind == kind;
         });
}

void lease_table::drop_all(const client_key& client) {
  while (holds_any(client)) drop(client, leases_.at(client).begin()->first, true);
}

bool lease_table::owes_fence(file_id file, std::uint64_t generation) {
  {
    query q(connection_, "SELECT generation FROM unsettled WHERE file = ?", file);
    if (!q.next()) return false;
    if (q.unsigned_integer(0) >= generation) return true;
  }
  run(connection_, "DELETE FROM unsettled WHERE file = ?", file);
  return false;
}

#ifndef NDEBUG
// The leases by file are those by client, and none of them excludes another.
void lease_table::check_invariants() const {
  std::multimap<file_id, lease_kind> held;
  for (const auto& [client, leases] : leases_) {
    assert(!leases.empty());
    for (const auto& [number, l] : leases) held.emplace(l.file, l.kind);
  }
  assert(held.size() == held_.size());
  for (auto a = held.begin(); a != held.end(); ++a) {
    const auto [first, last] = held_.equal_range(a->first);
    assert(std::count(first, last, *a) == std::count(held.begin(), held.end(), *a));
    for (auto b = std::next(a); b != held.end() && b->first == a->first; ++b) assert(!exclude(a->second, b->second));
  }
}
#endif

std::vector<client_key> lease_table::clients() const {
  std::vector<client_key> all;
  for (const auto& [client, leases] : leases_) all.push_back(client);
  return all;
}

std::size_t lease_table::size() const { return held_.size(); }

}  // namespace ooc::metad
