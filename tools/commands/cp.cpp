#include "base/command.hpp"
#include "copying/copying.hpp"
#include "copying/salvage.hpp"

namespace ooc::tool {

namespace {

int run_cp(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.recursive_option("folders with everything in them");
  add_transfer_options(line);
  add_salvage_option(line);
  line.option()("since", po::value<std::string>()->value_name("COMMIT"),
                "where DESTINATION is a copy of this commit of SOURCE ('copied': of whichever), copy only what has "
                "changed since; whatever happens, it is then at that commit or at the last one");
  if (!line.parse(arguments)) return success;
  for (const char* other : {"flatten", "salvage"})
    if (line.has("since") && line.has(other))
      throw usage_mistake("--since brings copies of commits up to date, and does not go with --" + std::string(other));
  failures bad;
  const auto all = transfers(line, true, bad, !line.recursive());
  for (const transfer& t : all)
    if (t.source.kind == storage::entry_kind::folder && !line.recursive())
      throw usage_mistake("'" + t.source.path + "' is a folder; give -r to copy everything in it");
  copy(
      line, "cp " + (all.size() == 1 ? all[0].source.path : std::to_string(all.size()) + " sources"), all,
      [](const std::vector<transfer>&) {}, bad);
  return bad.status();
}

}  // namespace

const command cp{
    "cp", "cp [options] SOURCE... DESTINATION",
    "Copies files and folders, within a store, between stores, and from and to plain files:\n"
    "local:..., ooc://... and rados:... name a store and a path in it, file:PATH, ./PATH and ../PATH a plain "
    "file,\n"
    "- standard input or output.  Anything else is a path in the store of --store or OOC_STORE, "
    "or,\n"
    "beside a URL, a plain file.  ./run.h5/g/x is a dataset of HDF5, and the folder of a Zarr array,\n"
    "without -r, that array: both become arrays of the store.  Files that are there are replaced when the copy is "
    "complete.  What\n"
    "cannot be copied is named; the others are, and the status is 1.",
    run_cp};

}  // namespace ooc::tool
