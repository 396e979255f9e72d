#include <limits>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "copying/target_striping.hpp"
#include "oocarray/error.hpp"
#include "storage/layout/box_requests.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

using storage::entry;

/// "1GiB", or as much more (+) or less (-) than there is.
std::uint64_t wanted_size(const std::string& text, const entry& e) {
  const bool relative = text.starts_with("+") || text.starts_with("-");
  const std::uint64_t n = parse_bytes(relative ? text.substr(1) : text, "--size");
  if (!relative) return n;
  if (text[0] == '-') return e.size - std::min(e.size, n);
  if (n > std::uint64_t{std::numeric_limits<std::int64_t>::max()} - e.size)
    throw usage_mistake("--size: '" + text + "' more than '" + e.path + "' has passes 2^63 - 1 bytes");
  return e.size + n;
}

/// The extents of the array that the file holds at this size.
std::vector<std::uint64_t> wanted_extents(const entry& e, std::uint64_t size) {
  std::vector<std::uint64_t> extents = e.array.extents;
  if (extents.empty()) return extents;
  const std::string it = "'" + e.path + "' holds an array (" + describe(e) + ")";
  if (!e.array.tile.empty())
    throw usage_mistake(it +
                        ", and only arrays in row-major order are cut to a size; resize it as an array (resize())");
  storage::array_description one_row = e.array;
  one_row.extents[0] = 1;
  const std::uint64_t row = storage::array_bytes(one_row);
  if (row == 0 || size % row != 0)
    throw usage_mistake(it + ", and must keep whole rows: the size must be a multiple of " + std::to_string(row) +
                        " bytes");
  extents[0] = size / row;
  if (!e.array.max_extents.empty() && extents[0] > e.array.max_extents[0])
    throw usage_mistake(it + " that was made to have at most " + std::to_string(e.array.max_extents[0]) + " rows; " +
                        std::to_string(size) + " bytes are " + std::to_string(extents[0]));
  return extents;
}

int run_truncate(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("size,s", po::value<std::string>()->value_name("BYTES"),
                "what it is to have: 4096, 1GiB; +BYTES and -BYTES: more or less than now");
  line.option()("no-create,c", "do not make files that are not there");
  add_striping_options(line);
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  if (!line.has("size")) throw usage_mistake("--size is missing; usage: ooc " + std::string(self.usage));
  const std::string text = line.text("size");
  (void)wanted_size(text, {});

  for (const located& l : line.locate_all("PATH")) {
    auto& core = *l.store.core();
    try {
      const storage::opened_file f = core.open(l.path, storage::open_mode::read_write);
      const auto claim = core.claim_unused(f.meta, "cut or extended");
      const std::uint64_t size = wanted_size(text, f.meta);
      if (size == f.meta.size) continue;
      core.sync(core.resize(f, size, wanted_extents(f.meta, size)));
    } catch (const error& e) {
      if (e.code() != std::errc::no_such_file_or_directory) throw;
      if (line.has("no-create")) continue;
      storage::new_file f;
      f.size = wanted_size(text, {});
      f.sparse = true;
      f.striping = target_striping(line, f.array, f.size, l.store.nodes());
      (void)core.create(l.path, f);
    }
    core.metadata().sync();
  }
  return success;
}

}  // namespace

const command truncate{"truncate", "truncate -s BYTES PATH...",
                       "Cuts or extends files, and arrays by whole rows; makes files that are not there.",
                       run_truncate};

}  // namespace ooc::tool
