#include "storage/store/node_drain.hpp"

#include <algorithm>

#include "storage/base/in_flight.hpp"
#include "storage/base/refuse.hpp"
#include "storage/store/gateways_node.hpp"
#include "storage/store/store_folders.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::storage {

namespace {

node_list nodes_in(store_core& store, std::string_view key) {
  const entry root = store.metadata().lookup("");
  const auto found = root.attributes.find(std::string(key));
  return found == root.attributes.end() ? node_list() : nodes_from_text(found->second);
}

void set_nodes(store_core& store, std::string_view key, node_list nodes) {
  std::ranges::sort(nodes);
  if (!nodes.empty())
    store.metadata().set_attribute("", key, nodes_to_text(nodes));
  else if (!nodes_in(store, key).empty())
    store.metadata().remove_attribute("", key);
}

bool has(const node_list& nodes, std::uint32_t node) { return std::ranges::find(nodes, node) != nodes.end(); }

bool is_local(const store_core& store) { return store.url().starts_with("local:"); }

void retire_folder_of(const store_core& store, std::uint32_t node) {
  retire_folder(local_folders(parse_store_url(store.url())), node);
}

node_list nodes_of_file(const store_core& store, const entry& file) {
  return nodes_of(file.striping, file.nodes, store.nodes().size());
}

}  // namespace

node_list drained_nodes(store_core& store) { return nodes_in(store, drained_key); }

node_list retired_nodes(store_core& store) { return nodes_in(store, retired_key); }

void set_drained(store_core& store, std::uint32_t node, bool drained) {
  const std::size_t nodes = store.nodes().size();
  if (is_in_rados(store))
    refuse(errc::invalid_request, "a store in RADOS has no nodes of its own: `ceph osd out` empties an OSD");
  if (node >= nodes)
    refuse(errc::invalid_request,
           "node " + std::to_string(node) + ": the store has nodes 0 to " + std::to_string(nodes - 1));
  if (has(retired_nodes(store), node)) {
    if (drained && is_local(store)) retire_folder_of(store, node);  // retire() may have been cut off before that
    refuse(errc::invalid_request, "node " + std::to_string(node) + " is empty, and retired");
  }
  node_list now = drained_nodes(store);
  std::erase(now, node);
  if (drained) now.push_back(node);
  if (now.size() == nodes)
    refuse(errc::invalid_request, "node " + std::to_string(node) +
                                      " is the last one that takes new files: give the store another one first "
                                      "(`ooc up --nodes +1`, `ooc add-node`)");
  set_nodes(store, drained_key, now);
  store.metadata().sync();
}

bool lies_on(const store_core& store, const entry& file, std::uint32_t node) {
  return has(nodes_of_file(store, file), node);
}

new_place place_without(store_core& store, const entry& file, const node_list& drained,
                        std::map<std::uint32_t, std::uint64_t>& moved) {
  new_place p{file.striping, nodes_of_file(store, file)};
  const auto all = static_cast<std::uint32_t>(store.nodes().size());
  for (std::uint32_t t = 0; t < p.nodes.size(); ++t) {
    if (!has(drained, p.nodes[t])) continue;
    std::uint32_t best = all;
    for (std::uint32_t n = 0; n < all; ++n)
      if (!has(drained, n) && !has(p.nodes, n) && (best == all || moved[n] < moved[best])) best = n;
    if (best == all) continue;
    p.nodes[t] = best;
    moved[best] += file.striping.object_size(t, allocated_size(file));
  }
  std::erase_if(p.nodes, [&](std::uint32_t n) { return has(drained, n); });
  p.striping.sn = p.nodes.front();
  p.striping.nn = static_cast<std::uint32_t>(p.nodes.size());
  return p;
}

std::size_t objects_on(store_core& store, std::uint32_t node) {
  in_flight asked;
  std::size_t objects = 0;
  asked.start([&](const completion& ended) {
    store.nodes()[node]->list([&objects, ended](const failure& f, const std::vector<file_id>& ids) {
      objects = ids.size();
      ended(f);
    });
  });
  throw_if(asked.wait());
  return objects;
}

bool retire(store_core& store, std::uint32_t node) {
  if (is_local(store) && node == 0) return false;
  node_list retired = retired_nodes(store);
  if (!has(retired, node)) retired.push_back(node);
  set_nodes(store, retired_key, retired);
  store.metadata().sync();
  if (is_local(store)) retire_folder_of(store, node);
  return true;
}

}  // namespace ooc::storage
