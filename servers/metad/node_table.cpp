#include "metad/node_table.hpp"

#include <sstream>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"
#include "storage/service/gateways.hpp"

namespace ooc::metad {

using storage::sqlite::query;
using storage::sqlite::run;

namespace {

constexpr std::size_t max_addresses = 64;
constexpr std::size_t max_address = 300;  // bytes

/// Addresses hold no spaces.
std::string joined(const std::vector<std::string>& addresses) {
  std::string text;
  for (const std::string& a : addresses) text += (text.empty() ? "" : " ") + a;
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string a; in >> a;) all.push_back(a);
  return all;
}

}  // namespace

node_table::node_table(storage::sqlite::connection& database, std::uint32_t nodes, bool gateways)
    : connection_(database), gateways_(gateways), rows_(nodes) {
  connection_.execute(
      "CREATE TABLE IF NOT EXISTS node (id INTEGER PRIMARY KEY, uuid TEXT NOT NULL,"
      " addresses TEXT NOT NULL)");
  for (std::uint32_t i = 0; i < rows_.size(); ++i) rows_[i].known.node = i;
  query q(connection_, "SELECT id, uuid, addresses FROM node");
  while (q.next()) {
    if (q.unsigned_integer(0) >= rows_.size()) continue;
    node_registration& known = rows_[q.unsigned_integer(0)].known;
    known.uuid = q.text(1);
    known.addresses = split(q.text(2));
  }
  if (gateways_)
    for (row& r : rows_) r.known.uuid = storage::gateway_uuid(r.known.node);
}

void node_table::keep(const node_registration& r) {
  run(connection_, "INSERT OR REPLACE INTO node VALUES (?, ?, ?)", r.node, r.uuid, joined(r.addresses));
}

void node_table::require_right(const node_registration& r) const {
  const std::string name = "node " + std::to_string(r.node);
  if (r.uuid.empty() || r.uuid.size() > 64 || r.addresses.empty() || r.addresses.size() > max_addresses)
    refuse(name + ": a registration needs the folder's identity and 1 to 64 addresses");
  for (const std::string& a : r.addresses)
    if (a.empty() || a.size() > max_address || a.find_first_of(" \t\n") != a.npos)
      refuse(name + ": '" + a.substr(0, 50) + "' is not an address");
  const row& mine = rows_[r.node];
  if (gateways_ && mine.known.uuid != r.uuid)
    refuse(name + " of this store is a gateway to RADOS, and the server at " + r.addresses.front() +
           " has a folder: start `ooc-iod --backend rados:...` in its place");
  if (!mine.known.uuid.empty() && mine.known.uuid != r.uuid)
    refuse(name + " has its stripe objects in folder " + mine.known.uuid + ", and the server at " +
           r.addresses.front() + " has another, " + r.uuid +
           ", which is new, or was made for another store: put the node's own folder back (is its disk mounted?), "
           "or, if it is lost, give it up once with `ooc up --forget-node " +
           std::to_string(r.node) + "` (or ooc-metad --forget-node " + std::to_string(r.node) + ")");
  for (const row& other : rows_)
    if (&other != &mine && other.known.uuid == r.uuid)
      refuse("folder " + r.uuid + " is that of node " + std::to_string(other.known.node) + ", not of " + name +
             "; check --node");
}

bool node_table::enlist(const node_registration& r, std::uint64_t connection) {
  if (rows_.empty())
    refuse("the bytes of this store are in RADOS, and it has no gateways: `ooc-metad --gateways` gives it some");
  if (r.node >= rows_.size())
    refuse("node " + std::to_string(r.node) + ": the store has nodes 0 to " + std::to_string(rows_.size() - 1));
  row& mine = rows_[r.node];
  try {
    require_right(r);
  } catch (const usage_error& e) {
    mine.refused = e.what();
    mine.refused_until = clock::now() + silence_limit;
    throw;
  }
  const bool same_place = mine.known.addresses == r.addresses && mine.known.uuid == r.uuid;
  const bool news = !same_place || mine.connection != connection || mine.known.incarnation != r.incarnation;
  if (!same_place) keep(r);
  mine = {r, connection, clock::now(), {}, {}};
  return news;
}

void node_table::lost(std::uint64_t connection) {
  for (row& r : rows_)
    if (r.connection == connection) r.connection = 0;
}

void node_table::set_missing(std::uint32_t node) {
  if (node >= rows_.size()) refuse("--missing-node " + std::to_string(node) + ": no such node");
  if (rows_[node].known.uuid.empty()) return;  // it is to be made
  const std::string n = std::to_string(node);
  rows_[node].refused = "the folder of node " + n +
                        " was missing, or another one, when the servers were started: when "
                        "its disk is mounted, `ooc up` starts it; if it is lost, `ooc up --forget-node " +
                        n + "` goes on with an empty one";
  rows_[node].refused_until = clock::time_point::max();
}

void node_table::forget(std::uint32_t node) {
  if (node >= rows_.size()) refuse("--forget-node " + std::to_string(node) + ": no such node");
  if (gateways_) return;  // it has nothing that could be lost
  run(connection_, "DELETE FROM node WHERE id = ?", node);
  rows_[node] = {};
  rows_[node].known.node = node;
}

std::vector<node_table::state> node_table::states() const {
  std::vector<state> all;
  for (const row& r : rows_) {
    const bool up = r.connection != 0 && clock::now() - r.heard < silence_limit;
    const bool tries = !up && clock::now() < r.refused_until;
    all.push_back({r.known, up, tries ? r.refused : ""});
  }
  return all;
}

}  // namespace ooc::metad
