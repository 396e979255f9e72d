// The claim to write a file, from the metadata service.
#pragma once

#include <memory>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// As metadata_service::claim_writer(); waits for who is giving back (store_core::give_back), which is in nobody's way.
/// For files of a store.  Any thread may call.
std::shared_ptr<void> claim_to_write(store_core& store, file_id id, bool together, claim_holder* in_the_way = nullptr);

}  // namespace ooc::storage
