#include <iostream>
#include <map>

#include "base/command.hpp"
#include "copying/restripe.hpp"
#include "oocarray/error.hpp"
#include "storage/service/removals.hpp"
#include "storage/store/node_drain.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::node_list;
using storage::store_core;

/// The committed files that lie on the node.
move_list files_on(store_core& core, std::uint32_t node, const node_list& drained,
                   std::map<std::uint32_t, std::uint64_t>& moved) {
  move_list all;
  for (const storage::file_id id : core.metadata().files()) {
    try {
      entry e = core.metadata().lookup(id);
      if (!storage::lies_on(core, e, node)) continue;
      storage::new_place p = storage::place_without(core, e, drained, moved);
      all.add(std::move(e), p.striping, std::move(p.nodes));
    } catch (const error& e) {
      if (e.code() != std::errc::no_such_file_or_directory) throw;  // removed meanwhile
    }
  }
  return all;
}

int run_drain(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("undo", "the node gets new files again; what was moved stays where it is now");
  add_moving_options(line);
  line.positional("N");
  if (!line.parse(arguments)) return success;
  const std::uint32_t node = node_number(line.required("N"));
  const ooc::store store = line.open_store();
  store_core& core = *store.core();
  storage::set_drained(core, node, !line.has("undo"));
  if (line.has("undo")) return success;
  const node_list drained = storage::drained_nodes(core);
  std::map<std::uint32_t, std::uint64_t> moved;
  std::size_t failures = 0;
  // Programs may have made files there that had begun before the node was marked.
  for (move_list some; failures == 0 && !(some = files_on(core, node, drained, moved)).empty();)
    failures = some.run(line, core, "drain");
  if (failures != 0)
    return complain(std::to_string(failures) + " files are still on node " + std::to_string(node) +
                    ", which gets no new ones; when they are free, call `ooc drain " + std::to_string(node) +
                    "` again");
  storage::sweep(core);
  if (const std::size_t left = storage::objects_on(core, node); left != 0)
    return complain(std::to_string(left) + " stripe objects are still on node " + std::to_string(node) +
                    ": of files that are being made, or were removed while a program has them open; call `ooc drain " +
                    std::to_string(node) + "` again, and `ooc verify --remove-orphans` if they stay");
  const bool can_go = storage::retire(core, node);
  std::cout << "node " << node
            << (can_go ? " is empty, and retired: its folder and its server can go\n"
                       : " is empty; its folder stays, as it has the names and shapes of the store's files\n");
  return success;
}

}  // namespace

const command drain_node{"drain", "drain [options] N",
                         "Moves everything away from node N, which can go then.\n"
                         "From the beginning the node gets no new files.  May be stopped and repeated.",
                         run_drain};

}  // namespace ooc::tool
