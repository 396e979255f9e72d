// An embedded store: every node a folder, served in this process.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::storage {

/// The folders of `url`, as far as their names and file systems tell whether a store can have them.  Throws as opening
/// it would.
std::vector<std::filesystem::path> usable_folders(const store_url& url);

/// Opens (or makes) the store in the folders of `url`; for reading only where the caller may not write it.
/// Throws as store::open does.
std::shared_ptr<store_core> open_local_store(const store_url& url, const store_options& options);

}  // namespace ooc::storage
