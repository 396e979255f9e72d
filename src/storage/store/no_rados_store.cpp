// In the place of rados_store.cpp where the library is built without RADOS.
#include "oocarray/error.hpp"
#include "storage/store/rados_store.hpp"

namespace ooc::storage {

std::shared_ptr<store_core> open_rados_store(const store_url& url, const store_options&) {
  throw usage_error(errc::not_a_store, "store '" + url.scheme + ":" + url.rest +
                                           "': this oocarray was built without RADOS; build it with "
                                           "-DOOCARRAY_BUILD_RADOS=ON (Debian: librados-dev, libsqlite3-mod-ceph-dev)");
}

}  // namespace ooc::storage
