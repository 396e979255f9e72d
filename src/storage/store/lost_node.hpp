// The node of a folder that is lost: everything that is asked of it fails at once and says so.  Files that lie
// on other nodes only do not notice.  The store is open for reading only.
#pragma once

#include <filesystem>
#include <memory>

#include "storage/service/io_service.hpp"

namespace ooc::storage {

std::shared_ptr<io_service> make_lost_node(std::filesystem::path folder);

}  // namespace ooc::storage
