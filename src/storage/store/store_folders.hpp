// The folders of a local store: telling what they are, and making them into a store.
//
// Each folder of a store holds a text file `oocarray-node` that names the store and the folder's
// place in it; the first also holds the database `metadata.sqlite`.  docs/disk-format.md, "Store
// folders", has the format and the order of the steps that make a store: whatever moment a maker
// dies at, the next open either finishes its work or starts again, and never sees half a store.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "storage/service/metadata_service.hpp"

namespace ooc::storage {

inline constexpr const char* node_file_name = "oocarray-node";

/// Checks that the folders are those of one store, all of them and in order, and returns its uuid.  Of those that are
/// retired it does not matter what is there.
/// If all are missing or empty and `create`, makes them a store that belongs to `owner`; processes
/// that try this at once make one store.  Throws usage_error (errc::not_a_store) for anything else,
/// without changing anything, and io_error where a folder cannot be used.
std::string open_store_folders(const std::vector<std::filesystem::path>& folders, bool create, credentials owner);

/// Folders of the store that are retired, by number: nothing is there any more, and they may be gone.
std::vector<std::size_t> retired_folders(const std::vector<std::filesystem::path>& folders);

/// The store in these folders gets `fresh` as further ones, which must be missing or empty, or have been added by a
/// call of this that was cut off.  It has them all, and its new URL names them all, when this returns.
void add_folders(const std::vector<std::filesystem::path>& folders, const std::vector<std::filesystem::path>& fresh);

/// Folder `node` of the store is retired from now on; not the first, which has the metadata.
void retire_folder(const std::vector<std::filesystem::path>& folders, std::size_t node);

/// The same where some folders are lost for good: the others must be there, the first among them, and nothing is made.
std::string open_remaining_folders(const std::vector<std::filesystem::path>& folders,
                                   const std::vector<std::filesystem::path>& lost);

/// The same with `fresh`, which must be missing or empty (or have been made by this before), in the place of the folder
/// `lost`, which is none of the store's any more: makes it a node of the store.  Throws usage_error where that folder
/// is still there, or is the first.
void add_replacement_folder(const std::vector<std::filesystem::path>& folders, std::size_t lost,
                            const std::filesystem::path& fresh);

}  // namespace ooc::storage
