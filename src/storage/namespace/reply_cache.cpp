#include "storage/namespace/reply_cache.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace ooc::storage {

using sqlite::query;
using sqlite::run;

namespace {

constexpr const char* maker_boot = "client of a metadata server";

std::vector<std::byte> blob_of(const client_key& client) {
  std::vector<std::byte> b(client.size());
  std::memcpy(b.data(), client.data(), b.size());
  return b;
}

std::optional<client_key> key_of(const std::vector<std::byte>& blob) {
  client_key k{};
  if (blob.size() != k.size()) return std::nullopt;
  std::memcpy(k.data(), blob.data(), k.size());
  return k;
}

}  // namespace

void make_reply_cache(sqlite::connection& c) {
  c.execute(
      "CREATE TABLE IF NOT EXISTS reply (client BLOB PRIMARY KEY, sequence INTEGER NOT NULL,"
      " body BLOB NOT NULL) WITHOUT ROWID");
  c.execute("CREATE TABLE IF NOT EXISTS lost_client (client BLOB PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID");
}

void keep_reply(sqlite::connection& c, const client_call& call, const std::string& reply) {
  const auto* const first = reinterpret_cast<const std::byte*>(reply.data());
  run(c, "INSERT OR REPLACE INTO reply VALUES (?, ?, ?)", blob_of(call.client), call.sequence,
      std::vector<std::byte>(first, first + reply.size()));
}

std::optional<std::string> kept_reply(sqlite::connection& c, const client_call& call) {
  query q(c, "SELECT body FROM reply WHERE client = ? AND sequence = ?", blob_of(call.client), call.sequence);
  return q.next() ? std::optional(q.text(0)) : std::nullopt;
}

void forget_calls(sqlite::connection& c, const client_key& client) {
  run(c, "DELETE FROM reply WHERE client = ?", blob_of(client));
  run(c, "DELETE FROM lost_client WHERE client = ?", blob_of(client));
}

void lose_client(sqlite::connection& c, const client_key& client, std::chrono::seconds now,
                 const std::function<bool(const client_key&)>& alive) {
  run(c, "INSERT OR REPLACE INTO lost_client SELECT client, ? FROM reply WHERE client = ?", now.count(),
      blob_of(client));
  std::int64_t until = (now - kept_calls).count();
  {
    query all(c, "SELECT count(*) FROM lost_client");
    if (all.next() && all.integer(0) > most_lost_clients) {
      query half(c, "SELECT since FROM lost_client ORDER BY since LIMIT 1 OFFSET ?", most_lost_clients / 2);
      if (half.next()) until = std::max(until, half.integer(0));
    }
  }
  std::vector<client_key> long_lost;
  {
    query q(c, "SELECT client FROM lost_client WHERE since < ?", until);
    while (q.next())
      if (const auto k = key_of(q.blob(0))) long_lost.push_back(*k);
  }
  for (const client_key& k : long_lost) {
    if (!alive(k)) run(c, "DELETE FROM reply WHERE client = ?", blob_of(k));
    run(c, "DELETE FROM lost_client WHERE client = ?", blob_of(k));
  }
}

std::vector<client_key> logged_clients(sqlite::connection& c) {
  std::vector<client_key> all;
  query q(c, "SELECT client FROM reply WHERE client NOT IN (SELECT client FROM lost_client)");
  while (q.next())
    if (const auto k = key_of(q.blob(0))) all.push_back(*k);
  return all;
}

process_identity maker_identity(const client_key& client) {
  process_identity p;
  p.boot = maker_boot;
  for (const std::uint8_t b : client) {
    p.pid_space += "0123456789abcdef"[b >> 4];
    p.pid_space += "0123456789abcdef"[b & 15];
  }
  return p;
}

std::optional<client_key> client_of(const process_identity& maker) {
  client_key k{};
  if (maker.boot != maker_boot || maker.pid_space.size() != 2 * k.size()) return std::nullopt;
  for (std::size_t i = 0; i < k.size(); ++i)
    k[i] = static_cast<std::uint8_t>(std::stoul(maker.pid_space.substr(2 * i, 2), nullptr, 16));
  return k;
}

}  // namespace ooc::storage
