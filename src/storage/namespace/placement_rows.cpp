#include "storage/namespace/placement_rows.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "storage/base/refuse.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/service/metadata_call.hpp"

namespace ooc::storage {

namespace {

// Of the table `store`: how many nodes it had before it got more for the first time.
constexpr const char* first_nodes_key = "first_nodes";

// Nodes that every client counts alike; 0: all that there are.
std::uint32_t first_nodes(sqlite::connection& c) {
  sqlite::query q(c, "SELECT CAST(value AS INTEGER) FROM store WHERE key = ?", std::string_view(first_nodes_key));
  return q.next() ? static_cast<std::uint32_t>(q.integer(0)) : 0;
}

}  // namespace

node_list nodes_in(sqlite::connection& c, std::string_view key) {
  sqlite::query q(c, "SELECT value FROM attribute WHERE entry = ? AND key = ?", root_id, key);
  return q.next() ? nodes_from_text(q.text(0)) : node_list();
}

namespace {

// Whatever a client asks for costs no more than the largest store does.
void require_nodes_of_a_store(const std::string& name, const ooc::striping& s, const node_list& nodes) {
  const auto beyond = [](std::uint32_t n) { return n >= max_store_nodes; };
  if (s.nn > max_store_nodes || beyond(s.sn) || std::ranges::any_of(nodes, beyond))
    refuse(EINVAL, name + ": a store has at most " + std::to_string(max_store_nodes) + " nodes, the first is node 0");
}

}  // namespace

void choose_nodes(sqlite::connection& c, const std::string& name, ooc::striping& s, node_list& nodes) {
  require_nodes_of_a_store(name, s, nodes);
  const node_list drained = nodes_in(c, drained_key);
  const std::uint32_t first = first_nodes(c);
  if (!nodes.empty() && nodes.size() != s.nn)
    refuse(EINVAL, name + ": a file needs as many nodes as its striping says");
  if (nodes.empty()) {
    if (drained.empty() && (first == 0 || std::uint64_t{s.sn} + s.nn <= first)) return;
    nodes.resize(s.nn);
    std::iota(nodes.begin(), nodes.end(), s.sn);
  }
  const auto is_drained = [&](std::uint32_t n) { return std::ranges::find(drained, n) != drained.end(); };
  if (std::erase_if(nodes, is_drained) == 0) return;
  if (nodes.empty())
    refuse(EINVAL, name + ": it would lie on nodes only that take no new files, as they are being emptied (" +
                       nodes_to_text(drained) + "); name others (sn, nn)");
  s.sn = nodes.front();
  s.nn = static_cast<std::uint32_t>(nodes.size());
}

void require_unused(sqlite::connection& c, node_list retired) {
  for (const std::uint32_t known : nodes_in(c, retired_key)) std::erase(retired, known);
  sqlite::query q(c, "SELECT sn, nn, stripe_map FROM entry WHERE kind = 2");
  while (!retired.empty() && q.next()) {
    const ooc::striping s{static_cast<std::uint32_t>(q.integer(0)), static_cast<std::uint32_t>(q.integer(1)), 1};
    // Who makes a file that begins at node 0 again says which nodes it has.
    for (const std::uint32_t n : nodes_of(s, nodes_from_column(q.blob(2)), std::numeric_limits<std::size_t>::max()))
      if (std::ranges::find(retired, n) != retired.end())
        refuse(EBUSY, "node " + std::to_string(n) +
                          " is not retired yet: a file lies there, or is being made by a program that began before the "
                          "node was to be emptied; call `ooc drain " +
                          std::to_string(n) + "` again");
  }
}

std::vector<std::byte> map_column(sqlite::connection& c, const node_list& nodes) {
  if (nodes.empty()) return {};
  use_feature(c, feature_stripe_map);
  std::vector<std::byte> column(nodes.size() * sizeof(std::uint32_t));
  std::memcpy(column.data(), nodes.data(), column.size());
  return column;
}

node_list nodes_from_column(const std::vector<std::byte>& column) {
  node_list nodes(column.size() / sizeof(std::uint32_t));
  if (!nodes.empty()) std::memcpy(nodes.data(), column.data(), nodes.size() * sizeof(std::uint32_t));
  return nodes;
}

void note_growth_of_store(const std::filesystem::path& file, std::string_view store_uuid, std::uint32_t had) {
  const auto connection = open_metadata_database(file, store_uuid);
  sqlite::connection& c = *connection;
  c.execute("PRAGMA synchronous = FULL");
  sqlite::transaction t(c, sqlite::transaction_kind::write);
  std::vector<std::pair<std::int64_t, ooc::striping>> rows;
  {
    sqlite::query q(
        c, "SELECT id, sn, nn FROM entry WHERE kind = 2 AND ifnull(length(stripe_map), 0) = 0 AND sn + nn > ?", had);
    while (q.next())
      rows.push_back(
          {q.integer(0), {static_cast<std::uint32_t>(q.integer(1)), static_cast<std::uint32_t>(q.integer(2)), 1}});
  }
  for (const auto& [id, s] : rows)
    sqlite::run(c, "UPDATE entry SET stripe_map = ? WHERE id = ?", map_column(c, nodes_of(s, {}, had)), id);
  sqlite::run(c, "INSERT OR IGNORE INTO store VALUES (?, ?)", std::string_view(first_nodes_key), std::to_string(had));
  use_feature(c, feature_stripe_map);
  t.commit();
}

}  // namespace ooc::storage
