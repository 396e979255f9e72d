#include "storage/rados/file_snapshots.hpp"

#include <cerrno>
#include <utility>

#include "storage/base/in_flight.hpp"

namespace ooc::storage {

namespace {

std::string about(const file_shape& f) { return "the commits of '" + f.name + "'"; }

}  // namespace

failure commit_is_gone(const file_shape& f) {
  return {errc::conflict, "'" + f.name + "': commit " + std::to_string(f.commit) +
                              " is no longer kept, for its writer has committed again: open the array again"};
}

std::uint64_t snapshot_of(const file_object& o, std::uint64_t number) {
  if (!o.commits) return 0;
  if (o.commits->number == number) return o.commits->snapshot;
  return o.commits->number + 1 == number ? o.commits->next : 0;
}

std::shared_ptr<rados_pool> file_snapshots::cached(const file_shape& f) const {
  const lock_guard lock(mutex_);
  const auto found = views_.find({f.id, f.at_commit});
  return found != views_.end() && found->second.is_of(f) ? found->second.objects : nullptr;
}

std::shared_ptr<rados_pool> file_snapshots::remember(const file_shape& f, std::shared_ptr<rados_pool> objects) {
  const lock_guard lock(mutex_);
  views_[{f.id, f.at_commit}] = {f.commit, f.at_commit ? 0 : f.generation, objects};
  return objects;
}

void file_snapshots::forget(file_id id) {
  const lock_guard lock(mutex_);
  views_.erase({id, false});
  views_.erase({id, true});
}

void file_snapshots::forget_writers() {
  const lock_guard lock(mutex_);
  std::erase_if(views_, [](const auto& v) { return !v.first.second; });
}

file_object file_snapshots::find(const file_shape& f) const {
  file_object found;
  in_flight asked;
  asked.start([&](auto ended) {
    read_file_object(*pool_, f.id, about(f), [&, ended](int rc, const file_object& o) {
      found = o;
      ended(rc < 0 ? pool_->failed(rc, "reading " + about(f)) : failure{});
    });
  });
  throw_if(asked.wait());
  if (!found.commits)
    throw integrity_error(errc::corrupt,
                          "'" + f.name + "': it keeps no commits, and the metadata say that it has some");
  return found;
}

void file_snapshots::keep(const file_shape& f, const file_object& o) const {
  in_flight asked;
  asked.start([&](auto ended) {
    write_file_object(*pool_, f.id, o, false, about(f),
                      [&, ended](int rc) { ended(rc < 0 ? pool_->failed(rc, "keeping " + about(f)) : failure{}); });
  });
  throw_if(asked.wait());
}

file_object file_snapshots::settled(const file_shape& f, bool to_write) const {
  file_object o = find(f);
  commit_snapshots& c = *o.commits;
  const std::uint64_t wanted = snapshot_of(o, f.commit);
  if (wanted == 0)
    throw integrity_error(errc::corrupt, "'" + f.name + "': the metadata know commit " + std::to_string(f.commit) +
                                             ", and its objects commit " + std::to_string(c.number) +
                                             ": one of both is an old copy");
  const bool decided = c.number != f.commit;
  const std::uint64_t gone = decided ? c.snapshot : c.next;
  const bool written = to_write || (!decided && c.written);
  // In one step, which is the same for all ranks that write the file.
  const commit_snapshots then{f.commit, wanted, 0, written};
  if (std::exchange(c, then) == then) return o;
  keep(f, o);
  if (gone != 0) pool_->drop_snapshot(gone);
  return o;
}

std::shared_ptr<rados_pool> file_snapshots::open(const file_shape& f) {
  if (auto known = cached(f)) return known;
  if (f.at_commit) {
    const std::uint64_t snapshot = snapshot_of(find(f), f.commit);
    if (snapshot == 0) throw_if(commit_is_gone(f));
    return remember(f, pool_->as_of(snapshot));
  }
  return remember(f, pool_->after(settled(f, true).commits->snapshot));
}

void file_snapshots::prepare(const file_shape& f) {
  forget(f.id);  // what is written after this comes after the new snapshot, or takes it back first
  file_object o = settled(f, false);
  o.commits->next = pool_->new_snapshot();
  keep(f, o);
}

void file_snapshots::roll_back(const file_shape& f) {
  forget(f.id);
  file_object o = settled(f, false);
  if (!o.commits->written) return;
  const auto objects = pool_->after(o.commits->snapshot);
  for (std::uint64_t i = 0; i < o.objects(); ++i) objects->take_back(object_name(f.id, i), o.commits->snapshot);
  o.commits->written = false;
  keep(f, o);
}

}  // namespace ooc::storage
