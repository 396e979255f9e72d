#include "storage/service/file_move.hpp"

#include <cerrno>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"
#include "storage/service/generations.hpp"

namespace ooc::storage {

opened_file end_writes(store_core& store, entry e) {
  for (;;) {
    e = with_next_generation(store, std::move(e));
    auto shape = std::make_shared<file_shape>(store.opened(e).file->shape());
    shape->cut = true;
    const failure f = striped_file(std::move(shape), store.nodes()).advance_objects();
    if (!f) return store.opened(std::move(e));
    const entry before = std::exchange(e, store.metadata().find(e.id));
    require_changed(before, e, f);  // others have opened it for writing meanwhile
  }
}

namespace {

std::shared_ptr<void> claim_alone(store_core& store, const entry& file, const std::string& to_be) {
  auto claim = store.claim_unused(file, to_be);
  if (!claim) refuse({EACCES, std::generic_category()}, file.path, "only who may write it can have it " + to_be);
  (void)store.metadata().change(file.id, {});  // is refused to who is not its owner, before everything is copied
  return claim;
}

}  // namespace

file_move::file_move(store_core& store, const entry& file, const std::string& to_be)
    : alone_(claim_alone(store, file, to_be)), size_(lock_size(store, file.id)) {
  // What was not committed is taken back: the rest has a size and extents of its own.
  if (file.commit) (void)store.open(file.id, open_mode::read_write, {.take = {}, .knows_commits = true});
  const entry fenced = end_writes(store, store.metadata().find(file.id)).meta;
  from_ = store.open(file.path, open_mode::read);
  if (from_.meta.id != fenced.id) refuse(errc::conflict, file.path, "it has been replaced by another file meanwhile");
  from_.meta.generation = fenced.generation;
}

}  // namespace ooc::storage
