#include <iostream>
#include <memory>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "progress/progress.hpp"
#include "storage/store/store_check.hpp"

namespace ooc::tool {

namespace {

int run_verify(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("json", "for programs");
  line.option()("remove-orphans", "remove stripe objects that belong to no file");
  line.option()("quiet,q", "no progress bar");
  line.positional("PATH");
  if (!line.parse(arguments)) return success;
  const std::string path = line.text_or("PATH", "");
  const ooc::store store = line.open_store();

  std::unique_ptr<progress> bar;
  std::uint64_t last = 0;
  const storage::check_result r =
      storage::check_store(*store.core(), path, [&](std::uint64_t done, std::uint64_t total) {
        if (line.has("quiet")) return;
        if (!bar) bar = std::make_unique<progress>("verify", total);
        bar->advance(done - last);
        last = done;
      });
  if (bar) bar->finish();

  const bool remove = line.has("remove-orphans") && !r.orphans.empty();
  if (remove) storage::remove_orphans(*store.core(), r.orphans);
  if (line.has("json")) {
    nlohmann::json orphans = nlohmann::json::array();
    for (const auto& o : r.orphans) orphans.push_back({{"node", o.node}, {"id", o.id}});
    nlohmann::json damaged = nlohmann::json::array();
    for (const auto& d : r.damaged) damaged.push_back({{"file", d.file}, {"node", d.node}, {"node_name", d.node_name}});
    print({{"clean", r.clean()},
           {"files", r.files},
           {"shares", r.objects},
           {"chunks", r.chunks},
           {"corrupt", r.corrupt},
           {"lost", r.lost},
           {"lost_shares", r.lost_objects},
           {"unread_shares", r.unread},
           {"torn", r.torn},
           {"damaged", damaged},
           {"orphans", orphans},
           {"orphans_removed", remove},
           {"problems", r.problems}});
  } else {
    for (const std::string& p : r.problems) std::cout << p << "\n";
    std::cout << r.files << " files, " << r.chunks << " chunks of 4 KiB read: ";
    if (r.clean())
      std::cout << "all as written\n";
    else
      std::cout << r.corrupt << " corrupt, " << r.lost << " lost, " << r.torn
                << " torn; stripe objects: " << r.lost_objects << " lost, " << r.unread << " unreadable, "
                << r.orphans.size() << " orphaned" << (remove ? " (removed)" : "") << "\n";
  }
  return r.clean() ? success : problems_found;
}

}  // namespace

const command verify{"verify", "verify [options] [PATH]", "Reads everything and checks every checksum.", run_verify};

}  // namespace ooc::tool
