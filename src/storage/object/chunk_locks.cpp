#include "storage/object/chunk_locks.hpp"

#include <algorithm>
#include <cassert>

namespace ooc::storage {
namespace {

bool conflict(const chunk_locks::claim& a, const chunk_locks::claim& b) {
  if (!a.exclusive && !b.exclusive) return false;
  if (a.ranges.empty() || b.ranges.empty()) return false;
  if (a.ranges.back().end <= b.ranges.front().first || b.ranges.back().end <= a.ranges.front().first) return false;
  auto i = a.ranges.begin();
  auto j = b.ranges.begin();
  while (i != a.ranges.end() && j != b.ranges.end()) {
    if (i->end <= j->first)
      ++i;
    else if (j->end <= i->first)
      ++j;
    else
      return true;
  }
  return false;
}

bool conflict(const chunk_locks::claim& c, const std::list<chunk_locks::claim*>& others) {
  return std::any_of(others.begin(), others.end(), [&](const chunk_locks::claim* o) { return conflict(c, *o); });
}

}  // namespace

bool chunk_locks::lock(claim& c) {
  assert(std::adjacent_find(c.ranges.begin(), c.ranges.end(), [](const chunk_range& a, const chunk_range& b) {
           return a.end > b.first;
         }) == c.ranges.end());
  lock_guard lock(mutex_);
  if (conflict(c, granted_) || conflict(c, parked_)) {
    parked_.push_back(&c);
    return false;
  }
  granted_.push_back(&c);
  return true;
}

// Needs no memory.
void chunk_locks::unlock(claim& c) noexcept {
  claim* ready = nullptr;
  claim** last = &ready;
  {
    lock_guard lock(mutex_);
    assert(std::find(granted_.begin(), granted_.end(), &c) != granted_.end());
    granted_.remove(&c);
    std::list<claim*> waiting;
    while (!parked_.empty()) {
      claim* p = parked_.front();
      if (conflict(*p, granted_) || conflict(*p, waiting)) {
        waiting.splice(waiting.end(), parked_, parked_.begin());
      } else {
        granted_.splice(granted_.end(), parked_, parked_.begin());
        p->next_ready = nullptr;
        *last = p;
        last = &p->next_ready;
      }
    }
    parked_.swap(waiting);
  }
  while (ready != nullptr) {
    claim* const p = ready;
    ready = p->next_ready;
    // It may be gone before this returns, and its function with it.
    const auto resume = std::move(p->resume);
    resume();
  }
}

}  // namespace ooc::storage
