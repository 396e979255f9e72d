#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstdio>
#include <iostream>
#include <set>

#include "cluster/server_queries.hpp"
#include "command.hpp"
#include "entry_text.hpp"
#include "oocarray/error.hpp"
#include "progress.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

/// The file system under one node.
struct disk {
  std::string name;
  std::uint64_t bytes = 0, free = 0;
  std::string where;  ///< which disk of which host it is, for who adds them up
  std::string why;  ///< where it could not be asked
};

std::vector<disk> served_disks(const std::string& url, const std::string& key) {
  const auto who = cluster::asker::of(url, key);
  const auto store = cluster::ask_cluster(cluster::metadata_address(url), who);
  std::vector<disk> all;
  for (const auto& n : store.nodes) {
    const auto node = static_cast<std::uint32_t>(all.size());
    disk d;
    d.name = n.addresses.empty() ? "?" : n.addresses.front();
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

std::vector<disk> local_disks(const ooc::store& store) {
  std::vector<disk> all;
  for (const auto& n : store.core()->nodes()) {
    disk d;
    d.name = n->name();
    struct statvfs v {};
    if (::statvfs(d.name.c_str(), &v) != 0)
      throw io_error({errno, std::generic_category()}, "'" + d.name + "'");
    d.bytes = std::uint64_t{v.f_blocks} * v.f_frsize;
    d.free = std::uint64_t{v.f_bavail} * v.f_frsize;
    struct ::stat st {};
    if (::stat(d.name.c_str(), &st) == 0) d.where = std::to_string(st.st_dev);
    all.push_back(std::move(d));
  }
  return all;
}

void print_row(const std::string& what, std::uint64_t bytes, std::uint64_t free,
               const std::string& name) {
  char text[160];
  std::snprintf(
      text, sizeof text, "%-6s %10s %10s %4.0f %%  ", what.c_str(),
      human_bytes(static_cast<double>(bytes)).c_str(),
      human_bytes(static_cast<double>(free)).c_str(),
      bytes == 0 ? 0 : 100.0 * (1.0 - static_cast<double>(free) / static_cast<double>(bytes)));
  std::cout << text << name << "\n";
}

int run(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.key_option();
  line.option()("json", "for programs");
  line.positional("URL");
  if (!line.parse(arguments)) return success;
  const std::string url = line.store_url("URL");
  const auto all = url.starts_with("ooc:") ? served_disks(url, line.text_or("key", ""))
                                           : local_disks(line.open_store_of("URL"));
  std::uint64_t bytes = 0, free = 0;
  bool complete = true;
  std::set<std::string> counted;  // a disk that several nodes share is there once
  for (const disk& d : all) {
    if (d.where.empty() || counted.insert(d.where).second) {
      bytes += d.bytes;
      free += d.free;
    }
    complete = complete && d.why.empty();
  }
  if (line.has("json")) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const disk& d : all) {
      nlohmann::json j{{"name", d.name}};
      if (d.why.empty()) {
        j["disk_bytes"] = d.bytes;
        j["available_bytes"] = d.free;
      } else {
        j["why"] = d.why;
      }
      nodes.push_back(std::move(j));
    }
    print({{"nodes", nodes}, {"disk_bytes", bytes}, {"available_bytes", free}});
    return complete ? success : failed;
  }
  std::cout << "node         size       free   used\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].why.empty())
      print_row(std::to_string(i), all[i].bytes, all[i].free, all[i].name);
    else
      std::cout << i << "      " << all[i].name << "  " << all[i].why << "\n";
  }
  print_row("total", bytes, free, complete ? "" : "without the nodes that do not answer");
  return complete ? success : failed;
}

}  // namespace

const command df{
    "df", "df [options] [URL]",
    "Tells the size of every node's disk and what is free; the total counts a shared disk once.", run};

}  // namespace ooc::tool
