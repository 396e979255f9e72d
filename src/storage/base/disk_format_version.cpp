#include "storage/base/disk_format_version.hpp"

#include "oocarray/error.hpp"

namespace ooc::storage {

void refuse_version(const std::string& what, std::int64_t found, std::int64_t known) {
  throw usage_error(errc::not_a_store, what + " has version " + std::to_string(found) +
                                           " of the disk format, this program reads version " + std::to_string(known) +
                                           (found < known ? ": use the release that made the store"
                                                          : ": use a later release of oocarray"));
}

}  // namespace ooc::storage
