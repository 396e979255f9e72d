#include "copying/restripe.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "oocarray/error.hpp"
#include "progress/progress.hpp"

namespace ooc::tool {

void move_list::add(storage::entry file, const striping& s, storage::node_list nodes) {
  bytes_ += storage::stored_size(file);
  moves_.push_back({std::move(file), s, std::move(nodes)});
}

std::size_t move_list::run(const command_line& line, storage::store_core& core, const std::string& name) const {
  std::unique_ptr<progress> bar;
  if (!line.has("quiet")) bar = std::make_unique<progress>(name, bytes_);
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));
  std::size_t failures = 0;
  for (const move& m : moves_) {
    try {
      restripe(core, m.file, m.striping, m.nodes, buffer, [&](std::uint64_t bytes) {
        if (bar) bar->advance(bytes);
      });
    } catch (const error& e) {
      if (e.code() == std::errc::no_such_file_or_directory && is_removed(core.metadata(), m.file.id)) continue;
      complain(e.what());
      ++failures;
    }
  }
  if (bar) bar->finish();
  return failures;
}

void add_moving_options(command_line& line) {
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"),
                "memory for each of the two buffers; otherwise 32MiB");
  line.option()("quiet,q", "no progress bar");
}

}  // namespace ooc::tool
