#include "storage/service/removals.hpp"

#include <functional>
#include <string>
#include <utility>

#include "storage/base/log.hpp"

namespace ooc::storage {

failure remove_objects(metadata_service& metadata, const striped_file& file) {
  if (failure f = file.remove_objects()) return f;
  metadata.forget(file.shape().id);
  return {};
}

failure remove_everywhere(store_core& store, file_id id) {
  entry e;
  e.id = id;
  e.path = "removed file " + std::to_string(id);
  e.striping = {0, static_cast<std::uint32_t>(store.nodes().size()), 1};
  e.capability = store.metadata().removal_capability(id);
  return remove_objects(store.metadata(), *store.opened(std::move(e)).file);
}

std::vector<entry> remove_files(store_core& store, std::vector<entry> files) {
  metadata_service& metadata = store.metadata();
  std::vector<entry> failed;
  std::string why;
  const auto for_each = [&](const std::function<void(entry&)>& f) {
    std::erase_if(files, [&](entry& e) {
      try {
        f(e);
        return false;
      } catch (const std::exception& x) {
        if (why.empty()) why = x.what();
        failed.push_back(std::move(e));
        return true;
      }
    });
  };
  for_each([&](entry& e) {
    if (e.capability) return;
    metadata.abandon(e.id);
    e.capability = metadata.removal_capability(e.id);
  });
  bool durable = false;
  for_each([&](entry& e) {
    if (!durable) metadata.sync();
    durable = true;
    // It may have its name again, for all that is known.
    throw_if(metadata.epoch_of(e).lost);
    throw_if(store.opened(e).file->remove_objects());
    metadata.forget(e.id);
  });
  if (!failed.empty())
    detail::log_error("the bytes of " + std::to_string(failed.size()) +
                      " removed files stay until the next removal, or until the store is opened next: " + why);
  return failed;
}

void sweep(store_core& store) {
  const std::vector<file_id> dead = store.metadata().dead();
  // The process that removed them may have died before that was durable.
  if (!dead.empty()) store.metadata().sync();
  // If a node cannot be reached the entry stays among the dead and a later sweep tries again.
  for (const file_id id : dead) (void)remove_everywhere(store, id);
}

}  // namespace ooc::storage
