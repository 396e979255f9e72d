#include <algorithm>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>

#include "command.hpp"
#include "oocarray/error.hpp"
#include "progress.hpp"
#include "slab_pump.hpp"
#include "storage/service/store_core.hpp"
#include "target_striping.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

/// The last component of a path in a store; empty for the root.
std::string last_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 == 0: all of it
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() || name.empty() ? folder + name : folder + "/" + name;
}

/// The entry at `path`; nothing where there is none.
std::optional<entry> look(storage::metadata_service& metadata, const std::string& path) {
  try {
    return metadata.lookup(path);
  } catch (const error& e) {
    if (e.code() == std::errc::no_such_file_or_directory) return std::nullopt;
    throw;
  }
}

/// What is copied, in an order in which folders come before what is in them.
struct plan {
  struct item {
    entry from;
    std::string to;
  };
  std::vector<item> items;
  std::uint64_t bytes = 0;

  void add(storage::metadata_service& metadata, const entry& e, const std::string& to) {
    if (e.kind == entry_kind::file) bytes += e.size;
    items.push_back({e, to});
    if (e.kind != entry_kind::folder) return;
    for (const entry& below : metadata.list(e.path))
      add(metadata, below, join(to, last_name(below.path)));
  }
};

/// Whether a slab that begins at byte `at` of a file holds nothing but its fill pattern.
bool is_fill(std::span<const std::byte> slab, std::uint64_t at,
             const std::vector<std::byte>& fill) {
  const std::size_t n = std::max<std::size_t>(1, fill.size());
  const auto pattern = [&](std::size_t i) {
    return fill.empty() ? std::byte{} : fill[(at + i) % n];
  };
  for (std::size_t i = 0; i < std::min(n, slab.size()); ++i)
    if (slab[i] != pattern(i)) return false;
  // From there on every byte is that of one pattern before.
  return slab.size() <= n || std::memcmp(slab.data(), slab.data() + n, slab.size() - n) == 0;
}

class copier {
 public:
  copier(const command_line& line, storage::store_core& from, storage::store_core& to,
         std::uint64_t buffer, progress* bar)
      : line_(line), from_(from), to_(to), buffer_(buffer), bar_(bar) {}

  /// The file appears under its name when it is complete, attributes included.
  void file(const entry& e, const std::string& path) {
    const storage::opened_file source = from_.open(e.path, storage::open_mode::read);
    storage::new_file f;
    f.size = source.meta.size;
    f.sparse = source.meta.sparse;
    f.fill = source.meta.fill;
    f.array = source.meta.array;
    f.mode = source.meta.mode;
    f.striping =
        target_striping(line_, f.array, f.size, static_cast<std::uint32_t>(to_.nodes().size()));
    const auto slash = path.find_last_of('/');
    const std::string passing =
        join(slash == path.npos ? "" : path.substr(0, slash), passing_name());

    const storage::opened_file target = to_.make(passing, f);
    try {
      bytes(source, target);
      throw_if(target.file->sync());
    } catch (...) {
      to_.abandon(target);
      throw;
    }
    to_.commit(target);
    try {
      attributes(source.meta, passing);
      to_.metadata().rename(passing, path);
    } catch (...) {
      to_.remove(passing);
      throw;
    }
  }

  /// Owner rights come first, so that the folder can be filled; finish_folder() sets what it has.
  void folder(const entry& e, const std::string& path) {
    if (!path.empty()) to_.metadata().mkdir(path, e.mode | 0700, true);
  }
  void finish_folder(const entry& e, const std::string& path) {
    attributes(e, path);
    if ((e.mode & 0700) != 0700) to_.metadata().set_mode(path, e.mode);
  }

 private:
  std::string passing_name() {
    char text[40];
    std::snprintf(text, sizeof text, ".ooc-cp-%08x%08x", random_(), random_());
    return text;
  }

  void attributes(const entry& e, const std::string& path) {
    for (const auto& [key, value] : e.attributes) to_.metadata().set_attribute(path, key, value);
  }

  void bytes(const storage::opened_file& source, const storage::opened_file& target) {
    storage::array_description all;
    all.element_type = "u1";
    all.extents = {source.meta.size};
    const bool holes = source.meta.sparse;
    pump_slabs(
        all, buffer_,
        [&](const storage::index& lower, const storage::index&, std::span<std::byte> slab) {
          throw_if(source.file->read(request::contiguous(lower[0], slab.size()), slab.data()));
        },
        [&](const storage::index& lower, const storage::index&, std::span<std::byte> slab) {
          // Of a sparse file only what differs from its fill takes space, as in the source.
          const std::size_t step = holes ? 64_KiB : slab.size();
          request wanted;
          for (std::size_t at = 0; at < slab.size(); at += step) {
            const auto part = slab.subspan(at, std::min(step, slab.size() - at));
            if (!holes || !is_fill(part, lower[0] + at, source.meta.fill))
              wanted.add(lower[0] + at, at, part.size());
          }
          throw_if(target.file->write(wanted, slab.data()));
          if (bar_) bar_->advance(slab.size());
        });
  }

  const command_line& line_;
  storage::store_core& from_;
  storage::store_core& to_;
  const std::uint64_t buffer_;
  progress* const bar_;
  std::random_device random_;
};

int run_cp(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("from", po::value<std::string>()->value_name("URL"),
                "the store of SOURCE; otherwise as --store");
  line.option()("to", po::value<std::string>()->value_name("URL"),
                "the store of DESTINATION; otherwise as --store");
  line.option()("recursive,r", "folders with everything in them");
  line.option()("skip-existing", "leave out files whose destination is there already");
  add_striping_options(line);
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"),
                "memory for each of the two buffers; otherwise 32MiB");
  line.option()("quiet,q", "no progress bar");
  line.positional("SOURCE");
  line.positional("DESTINATION");
  if (!line.parse(arguments)) return success;
  const std::string source = line.required("SOURCE");
  std::string target = line.required("DESTINATION");
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));

  const ooc::store from = line.open_store_of("from");
  const ooc::store to = line.open_store_of("to");
  auto& names = to.core()->metadata();
  const entry first = from.core()->metadata().lookup(source);
  if (first.kind == entry_kind::folder && !line.has("recursive"))
    throw usage_mistake("'" + first.path + "' is a folder; give -r to copy everything in it");
  // Like cp: into a folder that is there, else under the name given.
  if (const auto there = look(names, target); there && there->kind == entry_kind::folder)
    target = join(there->path, last_name(first.path));
  while (target.ends_with("/")) target.pop_back();
  target.erase(0, target.find_first_not_of('/'));
  if (from.uuid() == to.uuid() && first.kind == entry_kind::folder &&
      (target + "/").starts_with(first.path.empty() ? "" : first.path + "/"))
    throw usage_mistake("'" + first.path + "' cannot be copied into itself");

  plan p;
  p.add(from.core()->metadata(), first, target);
  // Everything is looked at before anything is copied.
  std::vector<plan::item> wanted;
  for (const plan::item& i : p.items) {
    const auto there = look(names, i.to);
    const bool folder = i.from.kind == entry_kind::folder;
    if (there && (there->kind == entry_kind::folder) != folder)
      throw usage_mistake("'" + i.to + "' is there already, and is " +
                          (folder ? "a file" : "a folder"));
    if (there && !folder) {
      if (!line.has("skip-existing"))
        throw usage_mistake("'" + i.to +
                            "' is there already; remove it first, or give --skip-existing");
      p.bytes -= i.from.size;
      continue;
    }
    wanted.push_back(i);
  }

  catch_interrupts();
  std::optional<progress> bar;
  if (!line.has("quiet")) bar.emplace("cp " + source, p.bytes);
  copier c(line, *from.core(), *to.core(), buffer, bar ? &*bar : nullptr);
  for (const plan::item& i : wanted) {
    if (i.from.kind == entry_kind::folder)
      c.folder(i.from, i.to);
    else
      c.file(i.from, i.to);
  }
  // From the innermost outwards: a folder that is closed to its owner is closed last.
  for (auto i = wanted.rbegin(); i != wanted.rend(); ++i)
    if (i->from.kind == entry_kind::folder && !i->to.empty()) c.finish_folder(i->from, i->to);
  names.sync();
  if (bar) bar->finish();
  return success;
}

}  // namespace

const command cp{"cp", "cp [options] SOURCE DESTINATION",
                 "Copies files and folders, also from one store to another.", run_cp};

}  // namespace ooc::tool
