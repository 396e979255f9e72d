// Snapshots: what files with commits have in their last one, kept under a name of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// store::snapshot(), for these paths of arrays with commits.
std::vector<entry> make_snapshots(store_core& store, std::span<const std::string> paths, std::string_view name,
                                  const snapshot_options& options);

}  // namespace ooc::storage
