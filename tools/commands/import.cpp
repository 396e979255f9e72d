#include <algorithm>
#include <iostream>
#include <optional>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "base/interrupt.hpp"
#include "base/named_path.hpp"
#include "copying/array_source.hpp"
#include "copying/array_target.hpp"
#include "copying/box_walk.hpp"
#include "copying/target_striping.hpp"
#include "formats/file_format.hpp"
#include "formats/hdf5_file.hpp"
#include "oocarray/error.hpp"
#include "progress/progress.hpp"
#include "storage/layout/element_description.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

void add_target_options(command_line& line) {
  line.option()("append", "behind the last row of the array that PATH is, which grows as far as --max-extents said");
  line.option()("at", po::value<std::string>()->value_name("N,M"),
                "into the array that PATH is, with the first element at this index");
  line.option()("force,f", "replace the file that PATH is, if there is one");
  line.option()("tile", po::value<std::string>()->value_name("NxM"),
                "store in tiles of this shape instead of row-major");
  line.option()(
      "max-extents", po::value<std::string>()->value_name("NxM"),
      "what resize() may make of the extents: with --tile a number for each dimension, else one for the first");
  add_striping_options(line);
  line.option()("sparse", "reserve no space beforehand");
  line.option()("commits", "keep the last commit beside what is written since");
}

/// `path`: of the array.
void take_max_extents(const command_line& line, const std::string& path, storage::array_description& array) {
  const std::string text = line.text("max-extents");
  array.max_extents = parse_shape(text, "--max-extents");
  if (array.max_extents.size() != (array.tile.empty() ? 1 : array.extents.size()))
    throw usage_mistake("--max-extents: '" + text +
                        "' must have a number for each dimension with --tile, and else one, for the first");
  for (std::size_t d = 0; d < array.max_extents.size(); ++d)
    if (array.max_extents[d] < array.extents[d])
      throw usage_mistake("--max-extents: '" + text + "' is below the extents of '" + path + "', " +
                          shape_text(array.extents) + "; give as much or more");
  if (has_reserved_grid(array)) array.reached = array.extents;
}

new_array array_of(const command_line& line, const located& where, const array_source& from,
                   const storage::array_description& part) {
  new_array made;
  storage::new_file& f = made.file;
  f.array = part;
  if (line.has("tile")) f.array.tile = parse_shape(line.text("tile"), "--tile");
  if (line.has("max-extents")) take_max_extents(line, where.path, f.array);
  f.size = storage::array_file_bytes(f.array);
  f.sparse = line.has("sparse") || has_reserved_grid(f.array);
  f.commits = line.has("commits");
  f.fill = from.fill;
  f.striping = target_striping(line, f.array, f.size, where.store.nodes());
  made.attributes = from.attributes;
  if (!from.description.empty()) made.attributes[storage::dtype_attribute] = from.description;
  made.replace = line.has("force");
  made.as_array = from.writes_array();
  return made;
}

std::unique_ptr<array_target> target_of(const command_line& line, const located& where, const array_source& from,
                                        const storage::array_description& part) {
  if (!line.has("append") && !line.has("at")) return make_array(where, array_of(line, where, from, part));
  array_part into{part, from.description, {}};
  if (line.has("at")) into.at = parse_shape(line.text("at"), "--at");
  return part_of_array(where, into);
}

void copy_one(const command_line& line, const std::string& file, const std::string& dataset, const located& where) {
  const auto from = open_array_source(line, file, dataset);
  const box part = parse_box(line.text_or("box", ""), from->array.extents);
  from->check(part);
  storage::array_description elements = from->array;
  elements.extents = part.extents();
  const auto to = target_of(line, where, *from, elements);
  for (const std::string& what : from->left_out) std::cerr << "note: " << printable(what) << ": it is left out\n";
  std::optional<progress> bar;
  if (!line.has("quiet")) bar.emplace("import " + where.path, storage::array_bytes(elements));
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));
  from->copy(part, *to, buffer, [&](std::uint64_t bytes) {
    if (bar) bar->advance(bytes);
  });
  to->publish();
  if (bar) bar->finish();
  for (const std::string& what : from->notes) std::cerr << "note: " << printable(what) << "\n";
}

void import_one(const command_line& line, const std::string& file, const std::string& dataset, const located& where) {
  try {
    copy_one(line, file, dataset, where);
  } catch (interrupted& i) {
    if (line.has("at")) i.left = "elements that had been written by then have their new values; import the file again";
    if (line.has("append"))
      i.left = "rows that were appended have been cut off again, unless a line above says otherwise";
    throw;
  }
}

void check_options(const command_line& line) {
  if (line.has("append") && line.has("at"))
    throw usage_mistake("--append writes behind the last row, --at to a place: give one of them");
  for (const char* into : {"append", "at"})
    for (const char* o : {"force", "tile", "max-extents", "sf", "nn", "sn", "sparse", "commits"})
      if (line.has(into) && line.has(o))
        throw usage_mistake(std::string("--") + o + " is for a new array, and --" + into +
                            " writes into one that is there");
}

/// The attributes of groups become those of the folders.
void import_attributes(const std::string& file, const located& into) {
  auto& names = into.store.core()->metadata();
  for (const hdf5_group& group : hdf5_groups(file)) {
    const std::string path = trimmed(join(into.path, group.path));
    names.mkdir(path, 0777, true);
    for (const auto& [key, value] : added_attributes(names.lookup(path).attributes, group.attributes))
      names.set_attribute(path, key, value);
    for (const std::string& what : group.left_out)
      std::cerr << "note: '" << printable(file) << "', group '/" << printable(group.path) << "': " << printable(what)
                << ": it is left out\n";
  }
}

/// All arrays of the file, in folders as there.
int import_tree(const command_line& line, const std::string& file, const std::vector<std::string>& names,
                const located& folder) {
  for (const char* o : {"box", "append", "at"})
    if (line.has(o)) throw usage_mistake(std::string("--") + o + " is for one dataset; say which with --dataset");
  std::size_t left_out = 0;
  for (const std::string& name : names) {
    check_interrupted();
    try {
      import_one(line, file, name, {folder.store, join(folder.path, name)});
    } catch (const usage_error& e) {
      if (e.code() != errc::type_mismatch && e.code() != errc::invalid_request) throw;
      std::cerr << "ooc: " << printable(e.what()) << ": it is left out\n";
      ++left_out;
    }
  }
  if (format_of_input(line, file) == file_format::hdf5) import_attributes(file, folder);
  return left_out == 0 ? success : problems_found;
}

int run_import(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  add_source_options(line);
  add_target_options(line);
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"),
                "memory for each of the two buffers; otherwise 32MiB");
  line.option()("quiet,q", "no progress bar");
  line.positional("FILE");
  line.positional("PATH");
  if (!line.parse(arguments)) return success;
  const std::string file = line.required("FILE"), name = line.required("PATH");
  check_options(line);
  const located where = line.locate(name);
  catch_interrupts();
  const std::string dataset = line.text_or("dataset", "");
  if (where.path.ends_with('/')) {
    const auto names = arrays_in(line, file);
    if (!names.empty() && dataset.empty()) return import_tree(line, file, names, where);
    if (!names.empty())
      return import_one(line, file, dataset, {where.store, join(where.path, trimmed(dataset))}), success;
  }
  import_one(line, file, dataset, where);
  return success;
}

}  // namespace

const command import_array{
    "import", "import [options] FILE PATH",
    "Copies a .npy, .npz, raw or HDF5 (NetCDF-4) file into the store; all arrays of one to PATH/.", run_import};

}  // namespace ooc::tool
