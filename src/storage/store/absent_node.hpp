// Nodes that are not there, and are known not to come.  What is asked of them fails at once and says so.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "storage/service/io_service.hpp"

namespace ooc::storage {

/// The node of a folder that is lost.  Files that lie on other nodes only do not notice.  The store is open for reading
/// only.
std::shared_ptr<io_service> make_lost_node(const std::filesystem::path& folder);

/// A node that was emptied, and has gone for good: no file has anything there.
std::shared_ptr<io_service> make_retired_node(std::string name);

}  // namespace ooc::storage
