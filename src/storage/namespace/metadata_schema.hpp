// The tables of the metadata database; docs/disk-format.md, "Metadata database", describes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "storage/namespace/sqlite.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::storage {

inline constexpr const char* metadata_file_name = "metadata.sqlite";
inline constexpr std::int64_t metadata_application_id = 0x4f4f4341;  // "OOCA"
inline constexpr std::int64_t metadata_schema_version = 2;

/// Some tables come with the first row of theirs.
bool has_table(sqlite::connection& c, const char* name);

// Features that a store may require its readers to know (`required_features`).
inline constexpr const char* feature_links = "links";              // the table `link` is in use
inline constexpr const char* feature_kinds = "kinds";              // entries that are neither folder nor file
inline constexpr const char* feature_reserved = "reserved";        // stripe objects longer than the size
inline constexpr const char* feature_max_extents = "max_extents";  // the table `growth` is in use
inline constexpr const char* feature_commits = "commits";          // the table `last_commit` is in use
inline constexpr const char* feature_packed = "packed";            // the column `codec` is in use
inline constexpr const char* feature_stripe_map = "stripe_map";    // files may say which nodes they lie on

/// Inside the transaction that first does so: the store has this feature from now on.
void use_feature(sqlite::connection& c, const char* feature);

/// Makes the database of a new store: one folder, the root, that belongs to `owner` and has this mode.  `how`: fresh or
/// alone; in RADOS one that has been made already is left as it is.
void make_metadata_database(const std::filesystem::path& file, std::string_view store_uuid, const credentials& owner,
                            std::uint32_t mode = 0755, sqlite::open_as how = sqlite::open_as::fresh);

/// Opens a database and checks that it is ours, of a known version and of the store `store_uuid`.
/// Throws usage_error (errc::not_a_store) where it is not, integrity_error where it is damaged.
std::unique_ptr<sqlite::connection> open_metadata_database(const std::filesystem::path& file,
                                                           std::string_view store_uuid,
                                                           sqlite::open_as how = sqlite::open_as::existing);

/// Before a file is made, outside of a transaction: its id, which names its stripe objects, will not be given to
/// another one even if its entry is lost with the power.  For that, ids are set aside by the thousand, durably.
void set_ids_aside(sqlite::connection& c);

}  // namespace ooc::storage
