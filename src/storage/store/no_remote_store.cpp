// In the place of remote_store.cpp where the library is built without the client of servers.
#include "oocarray/error.hpp"
#include "storage/store/remote_store.hpp"

namespace ooc::storage {

std::shared_ptr<store_core> open_remote_store(const store_url& url, const store_options&) {
  throw usage_error(errc::not_a_store, "store '" + url.scheme + ":" + url.rest +
                                           "': this oocarray was built without the client of servers; build it with "
                                           "-DOOCARRAY_BUILD_REMOTE=ON, or open local:FOLDER[,FOLDER...]");
}

}  // namespace ooc::storage
