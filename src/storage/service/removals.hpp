// The stripe objects of files that are gone.
#pragma once

#include <vector>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// The metadata forget the file when no node has anything of it.
failure remove_objects(metadata_service& metadata, const striped_file& file);

/// Of a file that is among the dead: its stripe objects may be on any node.
failure remove_everywhere(store_core& store, file_id id);

/// Removes the stripe objects of files that have lost their last name, and returns those that could not be removed.
std::vector<entry> remove_files(store_core& store, std::vector<entry> files);

/// Removes the stripe objects of files that were removed or never committed by processes that have died.
/// Stripe objects that cannot be removed now are left for the next sweep.
void sweep(store_core& store);

}  // namespace ooc::storage
