#include "storage/object/stripe_object_cache.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace ooc::storage {

std::size_t stripe_object_cache::default_limit() {
  constexpr std::size_t most = 512;
  constexpr std::size_t least = 8;
  struct rlimit r {};
  if (::getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == RLIM_INFINITY) return most;
  return std::clamp<std::size_t>(r.rlim_cur / 16, least, most);
}

int stripe_object_cache::get(const object_identity& who, std::shared_ptr<stripe_object>& out, std::string& why,
                             bool to_write, std::uint64_t chunks) {
  const file_id id = who.id;
  closed closing;  // before the lock: destroyed after it
  unique_lock lock(mutex_);
  for (;;) {
    if (const auto found = by_id_.find(id); found != by_id_.end()) {
      const std::shared_ptr<stripe_object>& there = found->second->second;
      why = difference(who, there->identity());
      if (!why.empty()) return EUCLEAN;
      if (to_write && there->read_only() != 0) {
        closing.push_back(there);
        order_.erase(found->second);
        by_id_.erase(found);
        continue;
      }
      order_.splice(order_.begin(), order_, found->second);
      out = there;
      return 0;
    }
    if (opening_.insert(id).second) break;
    opened_.wait(lock);
  }
  // Whatever happens, those who wait look again.
  const std::unique_ptr<stripe_object_cache, void (*)(stripe_object_cache*)> woken(
      this, [](stripe_object_cache* c) { c->opened_.notify_all(); });
  const auto opening = opening_.find(id);
  std::shared_ptr<stripe_object> opened;
  int error = 0;
  try {
    const unlocked gap(lock, mutex_);
    error = stripe_object::open(folder_, who, direct_io_, chunks, opened, why);
    if (error == EMFILE || error == ENFILE) {
      close_some();
      error = stripe_object::open(folder_, who, direct_io_, chunks, opened, why);
    }
  } catch (...) {
    opening_.erase(opening);
    throw;
  }
  opening_.erase(opening);
  if (error != 0) return error;
  const auto place = by_id_.try_emplace(id).first;
  try {
    order_.emplace_front(id, opened);
  } catch (...) {
    by_id_.erase(place);
    throw;
  }
  place->second = order_.begin();
  out = std::move(opened);
  trim(limit_, closing);
  if (++opened_since_look_ > order_.size() / 16) take_removed(closing);
  return 0;
}

void stripe_object_cache::close_removed() {
  closed closing;
  lock_guard lock(mutex_);
  take_removed(closing);
}

void stripe_object_cache::close_some() {
  closed closing;
  lock_guard lock(mutex_);
  take_removed(closing);
  trim(order_.size() / 2, closing);
}

std::shared_ptr<stripe_object> stripe_object_cache::find(file_id id) {
  lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return {};
  order_.splice(order_.begin(), order_, found->second);
  return found->second->second;
}

std::shared_ptr<stripe_object> stripe_object_cache::find_now(file_id id) noexcept {
  if (!mutex_.try_lock()) return {};
  const lock_guard lock(mutex_, std::adopt_lock);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second->second;
}

void stripe_object_cache::drop(file_id id) {
  std::shared_ptr<stripe_object> closing;
  unique_lock lock(mutex_);
  opened_.wait(lock, [&]() OOC_REQUIRES(mutex_) { return opening_.count(id) == 0; });
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  closing = std::move(found->second->second);
  order_.erase(found->second);
  by_id_.erase(found);
}

void stripe_object_cache::trim(std::size_t limit, closed& out) {
  for (auto at = order_.end(); at != order_.begin() && order_.size() > limit;) {
    --at;
    // In use (the list holds one reference), or remembering a failed sync: stays.
    if (at->second.use_count() > 1 || at->second->sync_failed()) continue;
    out.push_back(std::move(at->second));
    by_id_.erase(at->first);
    at = order_.erase(at);
  }
}

// Open files keep the space of what other processes removed.
void stripe_object_cache::take_removed(closed& out) {
  opened_since_look_ = 0;
  for (auto at = order_.begin(); at != order_.end();) {
    struct stat st {};
    const bool removed = ::fstat(at->second->sums().fd(), &st) == 0 && st.st_nlink == 0;
    if (!removed || at->second.use_count() > 1) {
      ++at;
      continue;
    }
    out.push_back(std::move(at->second));
    by_id_.erase(at->first);
    at = order_.erase(at);
  }
}

}  // namespace ooc::storage
