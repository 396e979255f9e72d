#include "commands/disks.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "cluster/server_queries.hpp"
#include "oocarray/error.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/node_drain.hpp"

namespace ooc::tool {

std::vector<disk> served_disks(const std::string& url, const std::string& key) {
  const auto who = cluster::asker::of(url, key);
  const auto store = cluster::ask_cluster(cluster::metadata_address(url), who);
  std::vector<disk> all;
  for (const auto& n : store.nodes) {
    const auto node = static_cast<std::uint32_t>(all.size());
    disk d;
    d.name = n.addresses.empty() ? "?" : n.addresses.front();
    d.retired = n.retired;
    try {
      const auto s = cluster::ask_statistics(node, n, store.store_uuid, who);
      d.bytes = s.disk_bytes;
      d.free = s.disk_free;
      d.where = s.disk;
    } catch (const error& e) {
      d.why = e.what();
    }
    all.push_back(std::move(d));
  }
  return all;
}

std::vector<disk> own_disks(const ooc::store& store) {
  std::vector<disk> all;
  const storage::node_list retired = storage::retired_nodes(*store.core());
  for (const auto& n : store.core()->nodes()) {
    disk d;
    d.name = n->name();
    d.retired = std::ranges::find(retired, all.size()) != retired.end();
    if (d.retired)
      d.why = "is retired";
    else if (const auto space = n->space()) {
      d.bytes = space->size;
      d.free = space->free;
    } else {
      d.why = "does not say";
    }
    struct ::stat st {};
    if (::stat(d.name.c_str(), &st) == 0) d.where = std::to_string(st.st_dev);
    all.push_back(std::move(d));
  }
  return all;
}

disk_sum sum_of(const std::vector<disk>& all) {
  disk_sum sum;
  std::set<std::string> counted;
  for (const disk& d : all) {
    if (d.where.empty() || counted.insert(d.where).second) {
      sum.bytes += d.bytes;
      sum.free += d.free;
    }
    sum.complete = sum.complete && (d.why.empty() || d.retired);
  }
  return sum;
}

}  // namespace ooc::tool
