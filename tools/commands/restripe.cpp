// `ooc restripe`, `ooc drain`, `ooc add-node`: which nodes files lie on, and which there are.
#include "copying/restripe.hpp"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>
#include <numeric>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "base/interrupt.hpp"
#include "copying/target_striping.hpp"
#include "oocarray/error.hpp"
#include "progress/progress.hpp"
#include "storage/store/node_drain.hpp"
#include "storage/store/store_folders.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;
using storage::new_place;
using storage::node_list;
using storage::store_core;

/// Files that are to be moved, and where to.
struct move_list {
  std::vector<std::pair<entry, new_place>> files;
  std::uint64_t bytes = 0;

  void add(entry e, new_place p) {
    bytes += storage::stored_size(e);
    files.emplace_back(std::move(e), std::move(p));
  }
};

void add_moving_options(command_line& line) {
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"),
                "memory for each of the two buffers; otherwise 32MiB");
  line.option()("quiet,q", "no progress bar");
}

/// How many of them could not be moved, which is said of each.
std::size_t move(const command_line& line, store_core& core, const move_list& all) {
  std::unique_ptr<progress> bar;
  if (!line.has("quiet")) bar = std::make_unique<progress>(line.has("N") ? "drain" : "restripe", all.bytes);
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));
  std::size_t failures = 0;
  for (const auto& [e, place] : all.files) {
    try {
      restripe(core, e, place.striping, place.nodes, buffer, [&](std::uint64_t bytes) {
        if (bar) bar->advance(bytes);
      });
    } catch (const error& f) {
      if (f.code() == std::errc::no_such_file_or_directory) continue;  // removed meanwhile
      complain(f.what());
      ++failures;
    }
  }
  if (bar) bar->finish();
  return failures;
}

void collect(store_core& core, const std::string& path, bool recursive, std::vector<entry>& files) {
  entry e = core.metadata().lookup(path);
  if (e.kind == entry_kind::file) return files.push_back(std::move(e));
  if (e.kind != entry_kind::folder) return;
  if (!recursive) throw usage_mistake("'" + printable(path) + "' is a folder; -r takes all that is in it");
  for (const entry& below : core.metadata().list(path)) collect(core, below.path, true, files);
}

/// As the options say, on nodes that take files, in order from the first.
new_place wanted_place(const command_line& line, store_core& core, const entry& e, const node_list& drained) {
  node_list nodes;
  for (std::uint32_t n = 0; n < core.nodes().size(); ++n)
    if (std::ranges::find(drained, n) == drained.end()) nodes.push_back(n);
  const auto first = std::ranges::find(nodes, line.number("sn", nodes.front()));
  if (first == nodes.end()) throw usage_mistake("--sn: the store has no node with this number that takes files");
  std::rotate(nodes.begin(), first, nodes.end());
  const std::uint32_t most = static_cast<std::uint32_t>(nodes.size()), nn = line.number("nn", most);
  if (nn == 0 || nn > most) throw usage_mistake("--nn: give 1 to " + std::to_string(most));
  nodes.resize(nn);
  new_place p{target_striping(line, e.array, e.size, nn), nodes};
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
    if (core->url().starts_with("rados:")) throw usage_mistake("RADOS itself decides where the objects of a store lie");
    if (core->nodes().size() == 1)
      throw usage_mistake("the store has one node: `ooc up --nodes +N` or `ooc add-node` gives it more");
    collect(*core, l.path, line.recursive(), all[core]);
  }
  std::size_t failures = 0;
  for (const auto& [core, files] : all) {
    const node_list drained = storage::drained_nodes(*core);
    move_list wanted;
    for (const entry& e : files) {
      new_place p = wanted_place(line, *core, e, drained);
      const bool is_there = storage::nodes_of(e.striping, e.nodes, core->nodes().size()) == p.nodes &&
                            (!line.has("sf") || e.striping.sf == p.striping.sf);
      if (!is_there) wanted.add(e, std::move(p));
    }
    failures += move(line, *core, wanted);
  }
  return failures == 0 ? success : failed;
}

std::uint32_t node_named(const command_line& line) {
  const std::string text = line.required("N");
  std::uint32_t node = 0;
  if (const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node);
      error != std::errc() || end != text.data() + text.size())
    throw usage_mistake("'" + text + "' is no number of a node; `ooc info` shows them");
  return node;
}

/// The committed files that lie on the node.
move_list files_on(store_core& core, std::uint32_t node, const node_list& drained,
                   std::map<std::uint32_t, std::uint64_t>& moved) {
  move_list all;
  for (const storage::file_id id : core.metadata().files()) {
    try {
      entry e = core.metadata().lookup(id);
      if (!storage::lies_on(core, e, node)) continue;
      new_place p = storage::place_without(core, e, drained, moved);
      all.add(std::move(e), std::move(p));
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
  const std::uint32_t node = node_named(line);
  const ooc::store store = line.open_store();
  store_core& core = *store.core();
  storage::set_drained(core, node, !line.has("undo"));
  if (line.has("undo")) return success;
  const node_list drained = storage::drained_nodes(core);
  std::map<std::uint32_t, std::uint64_t> moved;
  std::size_t failures = 0;
  // Programs may have made files there that had begun before the node was marked.
  for (move_list some; failures == 0 && !(some = files_on(core, node, drained, moved)).files.empty();)
    failures = move(line, core, some);
  if (failures != 0)
    return complain(std::to_string(failures) + " files are still on node " + std::to_string(node) +
                    ", which gets no new ones; when they are free, call `ooc drain " + std::to_string(node) +
                    "` again");
  core.sweep();
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

int run_add_node(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.positional("FOLDER", true);
  if (!line.parse(arguments)) return success;
  const std::string url = line.store_url("store");
  if (!url.starts_with("local:"))
    throw usage_mistake("folders are given to a local store; one on servers gets nodes by `ooc up --nodes +N`");
  const auto given = line.texts("FOLDER");
  if (given.empty()) line.required("FOLDER");
  const storage::store_url parsed = storage::parse_store_url(url);
  auto folders = storage::local_folders(parsed);
  std::vector<std::filesystem::path> fresh;
  for (const std::string& f : given) fresh.push_back(storage::local_folders({"local", f}).front());
  storage::add_folders(folders, fresh);
  folders.insert(folders.end(), fresh.begin(), fresh.end());
  std::cout << storage::local_url(folders, storage::local_options_of(parsed)) << "\n";
  return success;
}

}  // namespace

const command restripe_files{
    "restripe", "restripe [-r] [options] PATH...",
    "Deals files out anew, over all nodes or as the options say.\n"
    "Who reads them meanwhile reads on; files that a program writes are left as they are, and named.  Files that lie\n"
    "there already are left out, so the command may be repeated.  Each file needs its space once more while it moves.",
    run_restripe};

const command drain{"drain", "drain [options] N",
                    "Moves everything away from node N, which can go then.\n"
                    "From the beginning the node gets no new files.  May be stopped and repeated.",
                    run_drain};

const command add_node{"add-node", "add-node FOLDER...",
                       "Gives a local store further folders, on which new files lie, too; prints its new URL.\n"
                       "Files that are there stay where they are: `ooc restripe` deals them out over all.",
                       run_add_node};

}  // namespace ooc::tool
