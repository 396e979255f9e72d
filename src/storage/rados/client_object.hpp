// The object `oocarray-client.NUMBER` of a client of a metadata server: where the client can be shut out.  Without it,
// or where it says that the client has ended, no rank begins to write under a claim of the client (file_ranks.hpp).
//
// All calls wait, and throw io_error.  Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "storage/rados/rados_pool.hpp"

namespace ooc::storage {

inline constexpr std::string_view client_prefix = "oocarray-client.";

std::string client_object(const std::string& number);

/// By a client of a server, on each connection to it: before it gets anything for whose sake it may be shut out.  It
/// has not ended, whatever a server has begun before.
void introduce_client(rados_pool& pool, const std::string& number);

/// By the server, of a client that is to be shut out: its address; empty where it has none.
std::string end_client_object(rados_pool& pool, const std::string& number);

bool client_has_ended(rados_pool& pool, const std::string& number);

}  // namespace ooc::storage
