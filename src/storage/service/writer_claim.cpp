#include "storage/service/writer_claim.hpp"

namespace ooc::storage {

std::shared_ptr<void> claim_to_write(store_core& store, file_id id, bool together, claim_holder* in_the_way) {
  metadata_service& metadata = store.metadata();
  if (auto claim = metadata.claim_writer(id, together)) return claim;
  // A process that only gives back bytes that others have reserved holds this lock meanwhile.
  const auto lock = metadata.lock_size(id);
  return metadata.claim_writer(id, together, in_the_way);
}

}  // namespace ooc::storage
