// An embedded store: every node a folder, served in this process.
#pragma once

#include <memory>

#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::storage {

/// Opens (or makes) the store in the folders of `url`; for reading only where the caller may not write it.
/// Throws as store::open does.
std::shared_ptr<store_core> open_local_store(const store_url& url, const store_options& options);

}  // namespace ooc::storage
