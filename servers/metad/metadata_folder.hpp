// The folder of a metadata server: the database of the name space, the key that signs capabilities,
// and the file `oocarray-metadata` that says which store they are of.  Of a store whose database is in RADOS only a
// copy of the key is here.
//
// It is made in steps that can be cut off anywhere: as long as `oocarray-metadata` is not there
// under its name, the next start clears away what a cut-off one left (told by
// `oocarray-metadata.new`) and begins again.  One server at a time holds the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "daemon/folder_epoch.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::metad {

/// The database of a store that is not in the server's folder.
struct database_elsewhere {
  std::string database;  ///< for sqlite::open_as::alone
  std::string store_uuid;
  std::uint32_t gateways = 0;  ///< I/O servers that programs go through; 0: they reach the store themselves
  std::string signing_key;     ///< the line of the file signing_key_in(); empty: this server is the first, and makes it
};

/// The file with the secret half of the capabilities' key.
std::filesystem::path signing_key_in(const std::filesystem::path& folder);

class metadata_folder {
 public:
  /// Opens the folder, or makes it into that of a new store with `nodes` I/O servers and a root
  /// folder of `owner`, if it is missing or empty.  `nodes` 0: the folder must be there already.  A store that has
  /// fewer nodes gets as many as are missing: new files lie on them, too, and those that are there stay where they are.
  /// Throws usage_error where it is something else, has more nodes, or is in use; io_error where it cannot be used.
  metadata_folder(std::filesystem::path folder, std::uint32_t nodes, storage::credentials owner);
  /// The folder of a server of such a store; made where it is missing.  Throws the same.
  metadata_folder(std::filesystem::path folder, const database_elsewhere& elsewhere);

  const std::string& store_uuid() const noexcept { return uuid_; }
  std::uint32_t nodes() const noexcept { return nodes_; }
  std::filesystem::path database() const;
  /// How that is to be opened.
  storage::sqlite::open_as open_as() const noexcept;
  std::filesystem::path signing_key() const { return signing_key_in(folder_); }
  /// As folder_epoch; 0: what is acknowledged is durable, as the database is elsewhere.
  std::uint64_t epoch() const noexcept { return epoch_ ? epoch_->number() : 0; }
  /// Whether its nodes are gateways.
  bool has_gateways() const noexcept { return !elsewhere_.empty() && nodes_ != 0; }
  /// The file with all revocations that the server has ever been told.
  std::filesystem::path revoked() const;

 private:
  void make(std::uint32_t nodes, storage::credentials owner);
  void grow(std::uint32_t nodes);
  std::string identity(const std::string& uuid, std::uint32_t nodes) const;
  void read();

  std::filesystem::path folder_;
  storage::file_descriptor lock_;
  std::optional<servers::folder_epoch> epoch_;
  std::string elsewhere_;  // the database; empty: in the folder
  std::string uuid_;
  std::uint32_t nodes_ = 0;
};

}  // namespace ooc::metad
