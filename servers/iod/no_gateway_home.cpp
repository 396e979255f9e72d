// In the place of gateway_home.cpp where the library is built without RADOS.
#include "iod/iod_home.hpp"
#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::iod {

std::unique_ptr<iod_home> open_gateway(const std::string& url, std::uint32_t, std::function<void(const std::string&)>) {
  refuse(errc::not_a_store, "--backend " + url +
                                ": this ooc-iod was built without RADOS; build it with -DOOCARRAY_BUILD_RADOS=ON "
                                "(Debian: librados-dev, libsqlite3-mod-ceph-dev)");
}

}  // namespace ooc::iod
