#include <iostream>
#include <memory>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "oocarray/error.hpp"
#include "progress/progress.hpp"
#include "storage/store/local_store.hpp"
#include "storage/store/node_replacement.hpp"
#include "storage/store/store_folders.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::tool {

namespace {

/// The URL of the local store with `fresh` in the place of the lost folder, which it is made.
std::string with_folder(const std::string& url, std::uint32_t node, const std::string& fresh) {
  const storage::store_url parsed = storage::parse_store_url(url);
  const auto folders = storage::local_folders(parsed);
  storage::local_options options = storage::local_options_of(parsed);
  if (node >= folders.size())
    throw usage_mistake("node " + std::to_string(node) + ": the store has nodes 0 to " +
                        std::to_string(folders.size() - 1));
  auto now = folders;
  now[node] = folder_of_node(fresh);
  std::erase(options.lost, folders[node]);
  std::string with = storage::local_url(now, options);
  (void)storage::usable_folders(storage::parse_store_url(with));  // before anything is changed
  storage::add_replacement_folder(folders, node, now[node]);
  return with;
}

int run_replace_node(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("quiet,q", "no progress bar");
  line.positional("N");
  line.positional("FOLDER");
  if (!line.parse(arguments)) return success;
  const std::uint32_t node = node_number(line.required("N"));
  const std::string fresh = line.text_or("FOLDER", "");
  std::string url = line.store_url("store");
  const bool local = url.starts_with("local:");
  if (local == fresh.empty())
    throw usage_mistake(local ? "say which folder is to take the place of the lost one: ooc replace-node N FOLDER"
                              : "the folder of a served node is its server's: `ooc up --forget-node N` starts it with "
                                "an empty one");
  if (local) url = with_folder(url, node, fresh);
  const ooc::store store = ooc::store::open(url, {.create = false});
  if (node >= store.nodes())
    throw usage_mistake("node " + std::to_string(node) + ": the store has nodes 0 to " +
                        std::to_string(store.nodes() - 1));
  std::unique_ptr<progress> bar;
  const storage::replaced_node r = storage::replace_objects(*store.core(), node, [&](std::uint64_t, std::uint64_t all) {
    if (line.has("quiet")) return;
    if (!bar) bar = std::make_unique<progress>("replace-node", all);
    bar->advance(1);
  });
  if (bar) bar->finish();
  for (const std::string& p : r.problems) std::cerr << "ooc: " << printable(p) << "\n";
  std::cout << store.url() << "\n"
            << r.files << " files have bytes on node " << node
            << "; what was lost there is an error to read until it is written again\n";
  return r.problems.empty() ? success : failed;
}

}  // namespace

const command replace_node{
    "replace-node", "replace-node N [FOLDER]",
    "Goes on with an empty folder in the place of node N, which is lost: files can be written again.\n"
    "In a local store FOLDER takes the place of the lost one, and the store's new URL is printed.  In a served store "
    "the\n"
    "server has the new folder already (`ooc up --forget-node N`).  May be repeated.",
    run_replace_node};

}  // namespace ooc::tool
