#include "storage/service/generations.hpp"

#include <system_error>
#include <utility>

#include "oocarray/error.hpp"

namespace ooc::storage {

failure advance(store_core& store, entry& e, bool claims) {
  ++e.generation;
  if (claims) e.claim.since = e.generation;
  return store.opened(e).file->advance_objects();
}

void require_changed(const entry& before, const entry& now, const failure& f) {
  if (now.generation > before.generation || allocated_size(now) != allocated_size(before)) return;
  throw_if(f.code == errc::conflict ? failure{errc::corrupt, f.what} : f);
}

void require_claim(store_core& store, file_id id, const std::string& path) {
  if (store.metadata().has_lost_claim(id))
    throw io_error::in_full(std::make_error_code(std::errc::timed_out),
                            "'" + path +
                                "' was not opened for writing: the metadata server did not hear of this program for "
                                "longer than the grace period (`ooc-metad --grace`) meanwhile, which ended its claim "
                                "to write it: open it again");
}

entry with_next_generation(store_core& store, entry e, bool claims, bool alone) {
  metadata_service& metadata = store.metadata();
  for (;; e = metadata.find(e.id)) {
    e.claim.alone = claims && alone;
    const entry before = e;
    if (claims) require_claim(store, e.id, e.path);
    if (const failure f = advance(store, e, claims)) {
      require_changed(before, metadata.find(e.id), f);
      continue;
    }
    // Stripe objects that somebody has made meanwhile do not have the generation.
    if (!metadata.set_generation(e.id, e.generation, allocated_size(e))) continue;
    if (claims) require_claim(store, e.id, e.path);  // that call may have been the first to tell
    return e;
  }
}

size_lock_ptr lock_size(store_core& store, file_id id) {
  size_lock_ptr lock = store.metadata().lock_size(id);
  if (lock->owes_fence) (void)with_next_generation(store, store.metadata().find(id));
  return lock;
}

}  // namespace ooc::storage
