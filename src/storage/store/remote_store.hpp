// A served store: its metadata server and its I/O servers, as their clients see them.
#pragma once

#include <memory>
#include <string>

#include "oocarray/store.hpp"
#include "storage/client/remote_metadata.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::storage {

/// Who this process is to servers: a new random identity, the effective user, the key that
/// `options` name.  Throws as find_cluster_key() does.
client_identity this_client(const store_options& options);

/// Opens the store at an "ooc:" URL.  Throws as store::open does.
std::shared_ptr<store_core> open_remote_store(const store_url& url, const store_options& options);

}  // namespace ooc::storage
