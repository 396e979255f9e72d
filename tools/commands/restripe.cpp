#include "copying/restripe.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "copying/target_striping.hpp"
#include "storage/store/gateways_node.hpp"
#include "storage/store/node_drain.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;
using storage::node_list;
using storage::store_core;

void collect(store_core& core, const std::string& path, bool recursive, std::vector<entry>& files) {
  entry e = core.metadata().lookup(path);
  if (e.kind == entry_kind::file) return files.push_back(std::move(e));
  if (e.kind != entry_kind::folder) return;
  if (!recursive) throw usage_mistake("'" + printable(path) + "' is a folder; -r takes all that is in it");
  for (const entry& below : core.metadata().list(path)) collect(core, below.path, true, files);
}

/// As the options say, on nodes that take files, in order from the first.
storage::new_place wanted_place(const command_line& line, store_core& core, const entry& e, const node_list& drained) {
  node_list nodes;
  for (std::uint32_t n = 0; n < core.nodes().size(); ++n)
    if (std::ranges::find(drained, n) == drained.end()) nodes.push_back(n);
  const auto first = std::ranges::find(nodes, line.number("sn", nodes.front()));
  if (first == nodes.end()) throw usage_mistake("--sn: the store has no node with this number that takes files");
  std::rotate(nodes.begin(), first, nodes.end());
  const std::uint32_t most = static_cast<std::uint32_t>(nodes.size()), nn = line.number("nn", most);
  if (nn == 0 || nn > most) throw usage_mistake("--nn: give 1 to " + std::to_string(most));
  nodes.resize(nn);
  storage::new_place p{target_striping(line, e.array, e.size, nn), nodes};
  p.striping.sn = nodes.front();
  p.striping.nn = nn;
  return p;
}

int run_restripe(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.recursive_option("folders with everything in them");
  add_striping_options(line);
  add_moving_options(line);
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  std::map<std::shared_ptr<store_core>, std::vector<entry>> all;
  for (const located& l : line.locate_all("PATH")) {
    const auto& core = l.store.core();
    if (storage::is_in_rados(*core)) throw usage_mistake("RADOS itself decides where the objects of a store lie");
    if (core->nodes().size() == 1)
      throw usage_mistake("the store has one node: `ooc up --nodes +N` or `ooc add-node` gives it more");
    collect(*core, l.path, line.recursive(), all[core]);
  }
  std::size_t failures = 0;
  for (const auto& [core, files] : all) {
    const node_list drained = storage::drained_nodes(*core);
    move_list wanted;
    for (const entry& e : files) {
      const storage::new_place p = wanted_place(line, *core, e, drained);
      const bool is_there = storage::nodes_of(e.striping, e.nodes, core->nodes().size()) == p.nodes &&
                            (!line.has("sf") || e.striping.sf == p.striping.sf);
      if (!is_there) wanted.add(e, p.striping, p.nodes);
    }
    failures += wanted.run(line, *core, "restripe");
  }
  return failures == 0 ? success : failed;
}

}  // namespace

const command restripe_files{
    "restripe", "restripe [-r] [options] PATH...",
    "Deals files out anew, over all nodes or as the options say.\n"
    "Who reads them meanwhile reads on; files that a program writes are left as they are, and named.  Files that lie\n"
    "there already are left out, so the command may be repeated.  Each file needs its space once more while it moves.",
    run_restripe};

}  // namespace ooc::tool
