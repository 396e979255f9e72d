#include "storage/client/unsynced_files.hpp"

#include <utility>

namespace ooc::storage {

void unsynced_files::meet(std::uint64_t epoch) {
  const lock_guard lock(mutex_);
  epoch_ = epoch;
  if (epoch == 0 || changed_.empty() || epoch == changed_in_) return;
  last_loss_ = next_moment();
  for (const auto& [file, last] : std::exchange(changed_, {})) lost_[file] = last_loss_;
}

void unsynced_files::changed(file_id file, std::uint64_t epoch) {
  if (epoch == 0) return;
  const lock_guard lock(mutex_);
  // An answer that had come before the loss is looked at after it.
  if (epoch != epoch_) {
    lost_[file] = last_loss_ = next_moment();
    return;
  }
  changed_in_ = epoch;
  changed_[file] = next_moment();
}

void unsynced_files::synced(file_id file, std::uint64_t asked) {
  const lock_guard lock(mutex_);
  if (const auto found = changed_.find(file); found != changed_.end() && found->second < asked) changed_.erase(found);
}

void unsynced_files::synced_all(std::uint64_t asked) {
  const lock_guard lock(mutex_);
  std::erase_if(changed_, [&](const auto& c) { return c.second < asked; });
}

void unsynced_files::removed(file_id file) {
  const lock_guard lock(mutex_);
  changed_.erase(file);
  lost_.erase(file);
}

std::uint64_t unsynced_files::epoch() const {
  const lock_guard lock(mutex_);
  return epoch_;
}

std::uint64_t unsynced_files::unsynced_in(file_id file) const {
  const lock_guard lock(mutex_);
  return changed_.contains(file) ? changed_in_ : 0;
}

bool unsynced_files::lost_since(file_id file, std::uint64_t opened) const {
  const lock_guard lock(mutex_);
  const auto found = lost_.find(file);
  return found != lost_.end() && opened < found->second;
}

std::uint64_t unsynced_files::last_loss() const {
  const lock_guard lock(mutex_);
  return last_loss_;
}

}  // namespace ooc::storage
