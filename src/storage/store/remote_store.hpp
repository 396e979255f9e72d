// A served store: its metadata server and its I/O servers, as their clients see them.  A library built
// without the client of servers (OOCARRAY_BUILD_REMOTE=OFF) has open_remote_store() alone, which refuses.
#pragma once

#include <memory>
#include <string>

#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::storage {

struct client_identity;

/// The address of the metadata server in an "ooc:" URL: "host:port", "[v6]:port" (port 7420 where
/// none is given), without options, or, from "ooc:unix:/path", "unix:/path".  Throws usage_error (errc::not_a_store).
std::string server_address_of(const store_url& url);

/// The identity of this process towards servers: a new random identity, the key that `options` name, and the user
/// that it names, otherwise the effective one.  Throws as find_key() does.
client_identity this_client(const store_options& options);

/// Opens the store at an "ooc:" URL.  Throws as store::open does.
std::shared_ptr<store_core> open_remote_store(const store_url& url, const store_options& options);

}  // namespace ooc::storage
