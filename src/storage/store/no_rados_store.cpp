// In the place of rados_store.cpp where the library is built without RADOS.
#include "oocarray/error.hpp"
#include "storage/store/rados_store.hpp"

namespace ooc::storage {

namespace {
[[noreturn]] void refuse_without_rados(const store_url& url) {
  throw usage_error(errc::not_a_store, "store '" + url.scheme + ":" + url.rest +
                                           "': this oocarray was built without RADOS; build it with "
                                           "-DOOCARRAY_BUILD_RADOS=ON (Debian: librados-dev, libsqlite3-mod-ceph-dev)");
}
}  // namespace

std::shared_ptr<store_core> open_rados_store(const store_url& url, const store_options&) { refuse_without_rados(url); }

std::string rados_server_address(const store_url& url) { refuse_without_rados(url); }

}  // namespace ooc::storage
