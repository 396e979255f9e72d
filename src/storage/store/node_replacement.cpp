#include "storage/store/node_replacement.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/in_flight.hpp"
#include "storage/service/generations.hpp"

namespace ooc::storage {

namespace {

/// The stripe index that the node has in the file; nothing where it has no bytes of it.
std::optional<std::uint32_t> stripe_index_on(const entry& e, std::uint32_t node, std::size_t nodes) {
  for (std::uint32_t t = 0; t < e.striping.nn; ++t)
    if (node_of(e.striping, e.nodes, t, nodes) == node && e.striping.object_size(t, allocated_size(e)) != 0) return t;
  return std::nullopt;
}

/// False where the file has no bytes on the node.
bool replace_object(store_core& store, file_id id, std::uint32_t node) {
  metadata_service& metadata = store.metadata();
  // Nobody changes the size meanwhile.
  const auto lock = metadata.lock_size(id);
  entry e = metadata.find(id);
  const auto stripe_index = stripe_index_on(e, node, store.nodes().size());
  if (!stripe_index) return false;
  e.capability = metadata.size_capability(id, allocated_size(e));
  auto shape = std::make_shared<file_shape>(store.opened(std::move(e)).file->shape());
  shape->cut = shape->cuts != 0;              // they are counted on
  if (lock->owes_fence) ++shape->generation;  // what is late is refused there from the beginning
  in_flight made;
  made.start([&](auto ended) { store.nodes()[node]->replace(shape, *stripe_index, ended); });
  throw_if(made.wait());
  // As lock_size() of store_core.hpp, which needs all stripe objects.
  if (lock->owes_fence) (void)with_next_generation(store, metadata.find(id));
  return true;
}

}  // namespace

replaced_node replace_objects(store_core& store, std::uint32_t node,
                              const std::function<void(std::uint64_t, std::uint64_t)>& step) {
  replaced_node done;
  std::uint64_t looked_at = 0;
  const std::vector<file_id> files = store.metadata().files();
  for (const file_id id : files) {
    try {
      if (replace_object(store, id, node)) ++done.files;
    } catch (const error& e) {
      if (e.code() != std::errc::no_such_file_or_directory || !is_removed(store.metadata(), id))
        done.problems.push_back(e.what());
    }
    step(++looked_at, files.size());
  }
  return done;
}

}  // namespace ooc::storage
