// In the place of rados_home.cpp where the library is built without RADOS.
#include "metad/rados_home.hpp"
#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::metad {

std::unique_ptr<rados_home> serve_from_rados(const std::string& url, metad_options,
                                             const std::function<void(const metad_options&)>&,
                                             std::function<void(const std::string&)>) {
  refuse(errc::not_a_store, "--database " + url +
                                ": this ooc-metad was built without RADOS; build it with -DOOCARRAY_BUILD_RADOS=ON "
                                "(Debian: librados-dev, libsqlite3-mod-ceph-dev)");
}

}  // namespace ooc::metad
