// A store in a pool of RADOS (Ceph): its bytes are objects there, its metadata a database that one process has open at
// a time.
#pragma once

#include <memory>

#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::storage {

/// Opens (or makes) the store in the pool of `url`: through the metadata server that has its metadata, else alone,
/// where all openings of this process share the database.  Throws as store::open does; errc::busy where another process
/// has the store open, and is no server.
std::shared_ptr<store_core> open_rados_store(const store_url& url, const store_options& options);

/// The address of the metadata server that has the store, for who only asks its servers.  Throws usage_error
/// (errc::not_a_store) where none has it, io_error where RADOS does not answer.
std::string rados_server_address(const store_url& url);

}  // namespace ooc::storage
