#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "base/named_path.hpp"
#include "copying/array_to_read.hpp"
#include "progress/progress.hpp"
#include "storage/object/node_folder.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/gateways_node.hpp"

namespace ooc::tool {

namespace {

/// Where bytes of a file are; docs/disk-format.md says which, and what may be done with them there.
struct data_file {
  std::uint32_t node;
  std::string where;  ///< the node: its folder, or host:port
  std::string file;   ///< below the folder of a server; of RADOS its objects
  std::uint64_t bytes;
};

/// In RADOS: docs/disk-format.md, "Stores in RADOS".
std::string objects_of(storage::file_id id) {
  char text[40];
  std::snprintf(text, sizeof text, "%016llx.*", static_cast<unsigned long long>(id));
  return text;
}

std::vector<data_file> data_files(const storage::store_core& core, const storage::entry& e) {
  std::vector<data_file> all;
  if (e.kind != storage::entry_kind::file) return all;
  const bool embedded = core.url().starts_with("local:"), rados = storage::is_in_rados(core);
  for (std::uint32_t i = 0; i < e.striping.nn; ++i) {
    const std::uint64_t bytes = e.striping.object_size(i, storage::object_bytes(e));
    if (bytes == 0) continue;
    const std::uint32_t node = storage::node_of(e.striping, e.nodes, i, core.nodes().size());
    const std::string where = core.nodes()[node]->name();
    const std::string file = rados ? objects_of(e.id) : storage::node_folder::relative(e.id) + ".data";
    all.push_back({node, where, embedded ? where + "/" + file : file, bytes});
  }
  return all;
}

std::string filter_text(chunk_filter f) {
  switch (f) {
    case chunk_filter::deflate: return "deflate";
    case chunk_filter::shuffle: return "shuffle";
    case chunk_filter::fletcher32: return "fletcher32";
    case chunk_filter::gzip: return "gzip";
    case chunk_filter::crc32c: return "crc32c";
    case chunk_filter::zstd: return "zstd";
    case chunk_filter::blosc: return "blosc";
    case chunk_filter::lzf: return "lzf";
    case chunk_filter::lz4:
    case chunk_filter::hdf5_lz4: return "lz4";
    case chunk_filter::bitshuffle: return "bitshuffle";
    case chunk_filter::bitshuffle_lz4: return "bitshuffle and lz4";
    case chunk_filter::bitshuffle_zstd: return "bitshuffle and zstd";
    case chunk_filter::bzip2: return "bzip2";
    case chunk_filter::szip: return "szip";
    case chunk_filter::scale_offset: return "scale-offset";
  }
  return "?";
}

/// What an array in chunks has of them.
struct stored_chunks {
  std::vector<std::size_t> extents;  ///< of a chunk
  std::vector<std::size_t> shard;    ///< extents of what is one file, where that has several chunks; empty: none has
  std::uint64_t number = 0, present = 0;  ///< chunks, or shards
  std::uint64_t bytes = 0;
  std::vector<std::string> filters;
};

/// In files of their own, which `names` begins.
void count_files(const std::string& names, stored_chunks& c) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(names).parent_path();
  if (!fs::exists(folder)) return;  // no chunk was ever written
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(folder)) {
    const std::string name = file.path().filename();
    if (name.starts_with('.') || name == "zarr.json" || !file.is_regular_file()) continue;
    std::error_code gone;  // it is being replaced
    const std::uintmax_t bytes = file.file_size(gone);
    if (gone) continue;
    ++c.present;
    c.bytes += bytes;
  }
}

stored_chunks chunks_of(const storage::array_description& array, const file_chunks& chunks) {
  stored_chunks c{chunks.extents, {}, chunks.table.size(), 0, 0, {}};
  for (const chunk_filter f : chunks.filters) c.filters.push_back(filter_text(f));
  for (const file_chunk& one : chunks.table) c.bytes += one.bytes, c.present += one.bytes != 0;
  if (!chunks.files || chunks.files->have_table()) return c;
  c.number = 1;
  for (std::size_t d = 0; d < chunks.extents.size(); ++d) {
    std::size_t of_file = chunks.extents[d];
    if (!chunks.files->chunks.empty()) c.shard.push_back(of_file *= chunks.files->chunks[d]);
    c.number *= (array.extents[d] - 1) / of_file + 1;
  }
  count_files(chunks.files->names, c);
  return c;
}

/// Of an array in a file that belongs to no store.
int print_in_place(const array_to_read& a, bool as_json) {
  const storage::entry& e = a.file.meta;
  std::optional<stored_chunks> c;
  if (a.in_place->chunks) c = chunks_of(e.array, *a.in_place->chunks);
  if (as_json) {
    nlohmann::json j = {{"path", e.path},
                        {"file", a.of_file},
                        {"size", e.size},
                        {"bytes_in_file", c ? c->bytes : e.size},
                        {"attributes", e.attributes},
                        {"element_type", e.array.element_type},
                        {"extents", e.array.extents}};
    if (c) {
      j["chunks"] = {{"extents", c->extents}, {"number", c->number}, {"present", c->present}, {"filters", c->filters}};
      if (!c->shard.empty()) j["chunks"]["shard"] = c->shard;  // and these are counted
    } else {
      j["offset"] = a.in_place->offset;
    }
    print(j);
    return success;
  }
  std::cout << "path      " << printable(e.path) << "\n"
            << "holds     " << describe(e) << "\n"
            << "size      " << e.size << " bytes (" << human_bytes(static_cast<double>(e.size)) << ")\n"
            << "bytes in  " << printable(a.of_file);
  if (c) {
    const auto shape = [](const std::vector<std::size_t>& l) { return shape_text({l.begin(), l.end()}); };
    std::cout << " (" << c->bytes << ", " << c->present << " of " << c->number;
    if (!c->shard.empty()) std::cout << " shards of " << shape(c->shard) << " in";
    std::cout << " chunks of " << shape(c->extents);
    for (const std::string& f : c->filters) std::cout << ", " << f;
    std::cout << ")";
  } else if (a.in_place->offset != 0) {
    std::cout << " (from byte " << a.in_place->offset << " on)";
  }
  std::cout << "\n";
  for (const auto& [key, value] : e.attributes)
    std::cout << "attribute " << printable(key) << " = " << printable(value) << "\n";
  return success;
}

int run_stat(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("json", "for programs");
  line.positional("PATH");
  if (!line.parse(arguments)) return success;
  const std::string path = line.required("PATH");
  if (plain_path(path)) return print_in_place(open_to_read(line, path), line.has("json"));
  const located l = line.locate(path);
  const storage::entry e = l.store.core()->metadata().lookup(l.path);
  if (line.has("json")) {
    nlohmann::json j = to_json(e);
    if (e.kind == storage::entry_kind::file) j["data"] = nlohmann::json::array();
    for (const data_file& d : data_files(*l.store.core(), e))
      j["data"].push_back({{"node", d.node}, {"where", d.where}, {"file", d.file}, {"bytes", d.bytes}});
    print(j);
    return success;
  }
  std::cout << "path      " << (e.path.empty() ? "/" : printable(e.path)) << "\n"
            << "holds     " << describe(e) << "\n";
  if (e.kind == storage::entry_kind::file) {
    std::cout << "size      " << e.size << " bytes (" << human_bytes(static_cast<double>(e.size)) << ")"
              << (e.sparse ? ", sparse" : "")
              << (storage::stored_size(e) != e.size && e.codec.empty()
                      ? "; its tiles have " + human_bytes(static_cast<double>(storage::stored_size(e)))
                      : "")
              << "\n"
              << "striping  sn " << e.striping.sn << ", nn " << e.striping.nn << ", sf " << e.striping.sf << " bytes\n"
              << "id        " << e.id << "\n";
    for (const data_file& d : data_files(*l.store.core(), e))
      std::cout << "bytes in  " << (d.file.starts_with('/') ? "" : d.where + ": ") << printable(d.file) << " ("
                << d.bytes << ")\n";
  }
  std::cout << "mode      " << mode_text(e) << ", owner " << e.owner << ", group " << e.group << "\n"
            << "created   " << time_text(e.created_ns) << "\n"
            << "changed   " << time_text(e.changed_ns) << "\n";
  if (e.commit) {
    std::cout << "commit    " << e.commit->number;
    if (e.commit->number != 0) std::cout << " of " << time_text(e.commit->time_ns);
    for (const auto& [key, value] : e.commit->attributes)
      std::cout << ", " << printable(key) << " = " << printable(value);
    std::cout << "\n";
  }
  for (const auto& [key, value] : e.attributes)
    std::cout << "attribute " << printable(key) << " = " << printable(value) << "\n";
  return success;
}

}  // namespace

const command stat{"stat", "stat [options] PATH",
                   "Tells what is known of a file or folder in a store, or of an array that can be used in place:\n"
                   "./a.npy, ./run.h5/g/x, ./run.zarr/x, file:/data/run.h5/g/x.",
                   run_stat};

}  // namespace ooc::tool
