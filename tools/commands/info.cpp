#include <algorithm>
#include <iostream>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "progress/progress.hpp"
#include "runtime/pager/mapping_choice.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/node_drain.hpp"

namespace ooc::tool {

namespace {

int run_info(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("json", "for programs");
  if (!line.parse(arguments)) return success;
  const ooc::store store = line.open_store();
  auto& metadata = store.core()->metadata();

  std::uint64_t files = 0, bytes = 0;
  for (const storage::file_id id : metadata.files())
    if (const auto e = storage::lookup_if_there(metadata, id)) {  // else removed meanwhile
      files += 1;
      bytes += e->size;
    }

  const storage::node_list drained = storage::drained_nodes(*store.core());
  const storage::node_list retired = storage::retired_nodes(*store.core());
  const auto is_in = [](const storage::node_list& list, std::size_t n) {
    return std::ranges::find(list, n) != list.end();
  };
  nlohmann::json nodes = nlohmann::json::array();
  for (const auto& n : store.core()->nodes()) {
    nlohmann::json node{{"name", n->name()}};
    if (is_in(retired, nodes.size()))
      node["state"] = "retired";
    else if (is_in(drained, nodes.size()))
      node["state"] = "gets no new files";
    if (const auto space = n->space()) {
      node["disk_bytes"] = space->size;
      node["available_bytes"] = space->free;
    }
    nodes.push_back(std::move(node));
  }
  if (line.has("json")) {
    print({{"url", store.url()},
           {"uuid", store.uuid()},
           {"nodes", nodes},
           {"files", files},
           {"bytes", bytes},
           {"mapping", detail::describe_mapping()}});
    return success;
  }
  std::cout << "store  " << store.url() << "\nuuid   " << store.uuid() << "\nfiles  " << files << ", "
            << human_bytes(static_cast<double>(bytes)) << "\n";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::cout << "node " << i << " " << nodes[i]["name"].get<std::string>();
    if (nodes[i].contains("available_bytes"))
      std::cout << ", " << human_bytes(nodes[i]["available_bytes"].get<double>()) << " of "
                << human_bytes(nodes[i]["disk_bytes"].get<double>()) << " available";
    if (nodes[i].contains("state")) std::cout << ", " << nodes[i]["state"].get<std::string>();
    std::cout << "\n";
  }
  std::cout << "arrays are mapped here by " << detail::describe_mapping() << "\n";
  return success;
}

}  // namespace

const command info{"info", "info [options]", "Tells what the store is and where it lies.", run_info};

}  // namespace ooc::tool
