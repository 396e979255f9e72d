#include "oocarray/store.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/service/commits.hpp"
#include "storage/service/snapshots.hpp"
#include "storage/store/local_store.hpp"
#include "storage/store/rados_store.hpp"
#include "storage/store/remote_store.hpp"
#include "storage/store/store_url.hpp"

namespace ooc {

namespace {

store_entry described(storage::entry e) {
  store_entry s;
  s.path = std::move(e.path);
  s.folder = e.kind == storage::entry_kind::folder;
  s.owner = e.owner;
  s.group = e.group;
  s.mode = e.mode;
  s.created_ns = e.created_ns;
  s.changed_ns = e.changed_ns;
  s.size = e.size;
  s.attributes = std::move(e.attributes);
  if (e.commit) s.last_commit = storage::commit_info_of(*e.commit);
  if (e.array.extents.empty()) return s;
  s.element_type = std::move(e.array.element_type);
  s.element_size = e.array.element_size;
  s.extents.assign(e.array.extents.begin(), e.array.extents.end());
  s.tile.assign(e.array.tile.begin(), e.array.tile.end());
  s.max_extents = s.extents;
  for (std::size_t k = 0; k < std::min(s.extents.size(), e.array.max_extents.size()); ++k)
    s.max_extents[k] = std::max<std::size_t>(s.extents[k], e.array.max_extents[k]);
  s.fill = std::move(e.fill);
  s.codec = std::move(e.codec);
  if (!s.codec.empty()) s.packed_size = e.reserved;
  return s;
}

}  // namespace

store store::open(std::string_view url, const store_options& options) {
  const storage::store_url parsed = storage::parse_store_url(url);
  if (parsed.scheme == "local") return store(storage::open_local_store(parsed, options));
  if (parsed.scheme == "ooc") return store(storage::open_remote_store(parsed, options));
  if (parsed.scheme == "rados") return store(storage::open_rados_store(parsed, options));
  throw usage_error(errc::not_a_store, "store '" + std::string(url) + "': scheme '" + parsed.scheme +
                                           "' is unknown; write local:FOLDER[,FOLDER...], ooc://HOST[:PORT] or "
                                           "rados:POOL[/NAMESPACE]");
}

std::string store::url() const { return core_->url(); }

std::string store::uuid() const { return core_->uuid(); }

std::uint32_t store::nodes() const noexcept { return static_cast<std::uint32_t>(core_->nodes().size()); }

// --- names

std::vector<store_entry> store::list(std::string_view folder) const {
  std::vector<store_entry> all;
  for (storage::entry& e : core_->metadata().list(folder)) all.push_back(described(std::move(e)));
  return all;
}

bool store::exists(std::string_view path) const {
  try {
    (void)core_->metadata().lookup(path);
    return true;
  } catch (const error& e) {
    // A file among the folders above is no folder: nothing is below it.
    if (e.code() != std::errc::no_such_file_or_directory && e.code() != std::errc::not_a_directory) throw;
    return false;
  }
}

store_entry store::entry(std::string_view path) const { return described(core_->metadata().lookup(path)); }

std::vector<store_entry> store::snapshot(std::span<const std::string> paths, std::string_view name,
                                         const snapshot_options& options) const {
  std::vector<store_entry> made;
  for (storage::entry& e : storage::make_snapshots(*core_, paths, name, options))
    made.push_back(described(std::move(e)));
  return made;
}

void store::remove(std::string_view path) const {
  const auto claim = core_->claim_unused(core_->metadata().lookup(path), "removed");
  core_->remove(path);
}

void store::remove_all(std::string_view path) const {
  const storage::entry e = core_->metadata().lookup(path);
  if (e.kind == storage::entry_kind::folder)
    for (const storage::entry& below : core_->metadata().list(path)) remove_all(below.path);
  if (!e.path.empty()) remove(e.path);
}

void store::rename(std::string_view from, std::string_view to) const { core_->metadata().rename(from, to); }

void store::mkdir(std::string_view path, const mkdir_options& options) const {
  core_->metadata().mkdir(path, options.mode, options.parents);
}

void store::set_mode(std::string_view path, std::uint32_t mode) const { core_->set_mode(path, mode); }

void store::set_owner(std::string_view path, std::optional<std::uint32_t> owner,
                      std::optional<std::uint32_t> group) const {
  core_->set_owner(path, owner.value_or(storage::keep_id), group.value_or(storage::keep_id));
}

std::map<std::string, std::string> store::attributes(std::string_view path) const {
  return core_->metadata().lookup(path).attributes;
}

void store::set_attribute(std::string_view path, std::string_view key, std::string_view value) const {
  storage::set_attribute(*core_, path, key, value);
}

void store::remove_attribute(std::string_view path, std::string_view key) const {
  storage::remove_attribute(*core_, path, key);
}

// --- nodes

std::vector<std::uint32_t> store::near_nodes() const { return storage::near_nodes(core_->nodes()); }

io_stats store::stats() const {
  io_stats sum;
  for (const io_stats& s : node_stats()) sum += s;
  return sum;
}

std::vector<io_stats> store::node_stats() const {
  std::vector<io_stats> all;
  for (const auto& n : core_->nodes()) all.push_back(n->stats());
  return all;
}

}  // namespace ooc
