#include <cstdio>
#include <functional>
#include <memory>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "progress/progress.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

/// Arrays that are packed, or are not (or, where a pack() was killed at its end, may still have more space than they
/// need).
void collect(storage::metadata_service& metadata, const std::string& path, bool recursive, bool packed,
             std::vector<entry>& arrays) {
  entry e = metadata.lookup(path);
  if (e.kind == entry_kind::folder) {
    if (!recursive) throw usage_mistake("'" + printable(path) + "' is a folder; -r takes all arrays that are in it");
    for (const entry& below : metadata.list(path)) {
      const bool wanted = below.kind == entry_kind::folder ||
                          (!below.array.extents.empty() && !below.commit && !has_reserved_grid(below.array));
      if (wanted) collect(metadata, below.path, true, packed, arrays);
    }
  } else if (packed == !e.codec.empty() || (!packed && e.reserved == e.size)) {
    arrays.push_back(std::move(e));
  }
}

/// `act` for each array; says of each that cannot be what is in the way, and goes on.
int for_each_array(
    const command_line& line, const std::string& name, bool packed,
    const std::function<void(const ooc::store&, const entry&, const std::function<void(std::uint64_t)>& step)>& act) {
  std::size_t failures = 0;
  for (const located& l : line.locate_all("PATH")) {
    std::vector<entry> arrays;
    collect(l.store.core()->metadata(), l.path, line.recursive(), packed, arrays);
    std::uint64_t bytes = 0;
    for (const entry& e : arrays) bytes += e.size;
    std::unique_ptr<progress> bar;
    if (!line.has("quiet")) bar = std::make_unique<progress>(name, bytes);
    for (const entry& e : arrays) {
      try {
        act(l.store, e, [&](std::uint64_t n) {
          if (bar) bar->advance(n);
        });
      } catch (const error& x) {
        complain(x.what());
        ++failures;
      }
    }
    if (bar) bar->finish();
  }
  return failures == 0 ? success : failed;
}

int run_pack(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.recursive_option("folders with all arrays in them");
  line.option()("codec", po::value<std::string>()->value_name("NAME:LEVEL"),
                "zstd:1 to zstd:22, lz4:1 or gzip:1 to gzip:9; otherwise zstd:3");
  line.option()("no-shuffle", "leave the bytes of elements in their order: for texts and packed records");
  line.option()("chunk", po::value<std::string>()->value_name("BYTES"),
                "what is packed together, and unpacked for any of it; otherwise 512KiB, more for large arrays");
  line.option()("quiet,q", "no progress bar");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  pack_options how;
  if (line.has("codec")) how.codec = line.text("codec");
  how.shuffle = !line.has("no-shuffle");
  how.chunk = line.bytes("chunk", 0);
  return for_each_array(line, "pack", false, [&](const ooc::store& s, const entry& e, const auto& step) {
    how.step = step;
    const std::uint64_t bytes = s.pack(e.path, how);
    if (bytes == e.size)
      std::printf("%s: packing makes it no shorter\n", printable(e.path).c_str());
    else
      std::printf("%s: %s, unpacked %s\n", printable(e.path).c_str(), human_bytes(static_cast<double>(bytes)).c_str(),
                  human_bytes(static_cast<double>(e.size)).c_str());
  });
}

int run_unpack(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.recursive_option("folders with all packed arrays in them");
  line.option()("quiet,q", "no progress bar");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  return for_each_array(line, "unpack", true,
                        [](const ooc::store& s, const entry& e, const auto& step) { s.unpack(e.path, step); });
}

}  // namespace

const command pack{
    "pack", "pack [-r] [options] PATH...",
    "Packs arrays that are finished.\n"
    "Every program reads them as before, and none writes them.  Who reads them meanwhile reads on; arrays that a\n"
    "program writes are left as they are, and named.  Each array needs its packed bytes beside it until it is whole.",
    run_pack};

const command unpack{"unpack", "unpack [-r] [options] PATH...", "Makes packed arrays such as can be written.",
                     run_unpack};

}  // namespace ooc::tool
