#include "metad/metadata_folder.hpp"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include "daemon/folder_lock.hpp"
#include "oocarray/error.hpp"
#include "storage/base/disk_format_version.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/base/refuse.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/placement_rows.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/secret_file.hpp"

namespace ooc::metad {

namespace {

namespace fs = std::filesystem;

constexpr const char* identity_name = "oocarray-metadata";
constexpr const char* unfinished_name = "oocarray-metadata.new";
constexpr const char* key_name = "capability.key";
constexpr const char* revoked_name = "oocarray-revoked";
using storage::max_store_nodes;

}  // namespace

metadata_folder::metadata_folder(fs::path folder, std::uint32_t nodes, storage::credentials owner)
    : folder_(std::move(folder)) {
  if (nodes > max_store_nodes)
    throw usage_error(errc::invalid_request,
                      std::to_string(nodes) + " nodes: a store has at most " + std::to_string(max_store_nodes));
  lock_ = servers::lock_folder(folder_, "metadata server");
  if (!fs::exists(folder_ / identity_name)) make(nodes, owner);
  servers::close_to_others(folder_);
  read();
  if (nodes != 0 && nodes < nodes_)
    refuse_folder(folder_.native(), "is that of a store with " + std::to_string(nodes_) + " nodes, not " +
                                        std::to_string(nodes) +
                                        "; a store gets more nodes, and never fewer: `ooc "
                                        "drain` empties those that are to go");
  if (nodes > nodes_) grow(nodes);
  epoch_.emplace(folder_);
}

metadata_folder::metadata_folder(fs::path folder, const database_elsewhere& elsewhere)
    : folder_(std::move(folder)),
      elsewhere_(elsewhere.database),
      uuid_(elsewhere.store_uuid),
      nodes_(elsewhere.gateways) {
  lock_ = servers::lock_folder(folder_, "metadata server");
  if (fs::exists(folder_ / identity_name))
    refuse_folder(folder_.native(), "is that of a store of its own: give one for the keys of this server (--folder)");
  servers::close_to_others(folder_);
  if (elsewhere.signing_key.empty()) return;
  fs::remove(signing_key());  // which another server may have made anew
  wire::write_secret_line(signing_key(), elsewhere.signing_key);
}

fs::path metadata_folder::database() const {
  return elsewhere_.empty() ? folder_ / storage::metadata_file_name : fs::path(elsewhere_);
}

storage::sqlite::open_as metadata_folder::open_as() const noexcept {
  return elsewhere_.empty() ? storage::sqlite::open_as::existing : storage::sqlite::open_as::alone;
}

fs::path signing_key_in(const fs::path& folder) { return folder / key_name; }

fs::path metadata_folder::revoked() const { return folder_ / revoked_name; }

void metadata_folder::make(std::uint32_t nodes, storage::credentials owner) {
  if (fs::exists(folder_ / unfinished_name)) {
    // A start that was cut off: nothing in the folder has been used yet.
    fs::remove(signing_key());
    for (const char* tail : {"", "-wal", "-shm", "-journal"})
      fs::remove(folder_ / (std::string(storage::metadata_file_name) + tail));
    fs::remove(folder_ / unfinished_name);
  }
  servers::refuse_strangers(folder_, "a metadata server");
  if (nodes == 0)
    refuse_folder(folder_.native(), "holds no store yet: say how many I/O servers it shall have (--nodes)");
  servers::close_to_others(folder_);
  const std::string uuid = storage::new_uuid();
  storage::write_durably(folder_ / unfinished_name, identity(uuid, nodes));
  storage::sync_folder(folder_);
  storage::make_metadata_database(database(), uuid, owner);
  const wire::capability_signer makes_the_key(signing_key());
  storage::sync_folder(folder_);
  fs::rename(folder_ / unfinished_name, folder_ / identity_name);
  storage::sync_folder(folder_);
}

// First the entries, which say of each file where it lies, so that it is found whatever the number of nodes.
void metadata_folder::grow(std::uint32_t nodes) {
  storage::note_growth_of_store(database(), uuid_, nodes_);
  const fs::path next = folder_ / (std::string(identity_name) + ".next");
  storage::write_durably(next, identity(uuid_, nodes));
  fs::rename(next, folder_ / identity_name);
  storage::sync_folder(folder_);
  spdlog::info("the store has {} nodes from now on, instead of {}", nodes, nodes_);
  nodes_ = nodes;
}

std::string metadata_folder::identity(const std::string& uuid, std::uint32_t nodes) const {
  return std::string(identity_name) + " " + std::to_string(storage::disk_format_version) + "\nstore " + uuid +
         "\nnodes " + std::to_string(nodes) + "\n";
}

void metadata_folder::read() {
  std::ifstream in(folder_ / identity_name);
  if (!in)
    throw io_error({errno, std::generic_category()}, "'" + (folder_ / identity_name).string() + "' cannot be read");
  std::string magic, store, nodes;
  int version = 0;
  in >> magic >> version >> store >> uuid_ >> nodes >> nodes_;
  if (in && version != storage::disk_format_version)
    storage::refuse_version("folder '" + folder_.string() + "'", version, storage::disk_format_version);
  if (!in || magic != identity_name || store != "store" || nodes != "nodes" || nodes_ == 0 || nodes_ > max_store_nodes)
    refuse_folder(folder_.native(), std::string("has a damaged file '") + identity_name + "'; restore it from a copy");
}

}  // namespace ooc::metad
