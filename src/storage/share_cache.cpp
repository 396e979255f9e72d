#include "storage/share_cache.hpp"

#include <cerrno>

namespace ooc::storage {

int share_cache::get(const share_identity& who, std::shared_ptr<share>& out, std::string& why) {
  const file_id id = who.id;
  std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) {
    const std::shared_ptr<share>& there = found->second->second;
    why = difference(who, there->identity());
    if (!why.empty()) return EUCLEAN;
    order_.splice(order_.begin(), order_, found->second);
    out = there;
    return 0;
  }
  // Opening under the lock keeps a second thread from making a second object.
  std::shared_ptr<share> opened;
  int error = share::open(folder_, who, direct_io_, opened, why);
  if (error == EMFILE || error == ENFILE) {
    trim(order_.size() / 2);
    error = share::open(folder_, who, direct_io_, opened, why);
  }
  if (error != 0) return error;
  order_.emplace_front(id, opened);
  by_id_[id] = order_.begin();
  out = std::move(opened);
  trim(limit_);
  return 0;
}

std::shared_ptr<share> share_cache::find(file_id id) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return {};
  order_.splice(order_.begin(), order_, found->second);
  return found->second->second;
}

void share_cache::drop(file_id id) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  order_.erase(found->second);
  by_id_.erase(found);
}

void share_cache::trim(std::size_t limit) {
  for (auto at = order_.end(); at != order_.begin() && order_.size() > limit;) {
    --at;
    // In use (the list holds one reference), or remembering a failed sync: stays.
    if (at->second.use_count() > 1 || at->second->sync_failed()) continue;
    by_id_.erase(at->first);
    at = order_.erase(at);
  }
}

}  // namespace ooc::storage
