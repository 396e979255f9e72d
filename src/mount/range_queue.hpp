// Transfers of one file in the order in which they came: two whose bytes overlap, one of which writes, run one
// after the other; all others at the same time.
//
// Nobody waits in a thread: what cannot start yet is started by the end of what it waits for.  Any thread may
// call; `go` runs without the mutex, on the thread that made it possible.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "storage/base/mutex.hpp"

namespace ooc::mount {

class range_queue {
 public:
  /// The bytes from `begin` to before `end`.
  struct range {
    std::uint64_t begin, end;
  };
  struct item {
    std::vector<range> ranges;  // in their order in the file, none within another
    bool writes;
    bool ready;  // may start, as far as its maker knows
    bool started = false;
    std::function<void()> go;
  };
  using ticket = std::list<item>::iterator;

  /// Takes a place.  `go` runs once start() was called for it and nothing earlier is in its way.
  ticket enter(std::vector<range> ranges, bool writes) OOC_EXCLUDES(mutex_) {
    const lock_guard lock(mutex_);
    return items_.insert(items_.end(), item{std::move(ranges), writes, false, false, {}});
  }
  void start(ticket t, std::function<void()> go) OOC_EXCLUDES(mutex_) {
    std::vector<std::function<void()>> next;
    {
      const lock_guard lock(mutex_);
      t->go = std::move(go);
      t->ready = true;
      next = startable();
    }
    for (auto& g : next) g();
  }
  /// It has ended, or will not be started.
  void leave(ticket t) OOC_EXCLUDES(mutex_) {
    std::vector<std::function<void()>> next;
    {
      const lock_guard lock(mutex_);
      items_.erase(t);
      next = startable();
    }
    for (auto& g : next) g();
  }

 private:
  static bool overlap(const std::vector<range>& a, const std::vector<range>& b) {
    auto x = a.begin(), y = b.begin();
    while (x != a.end() && y != b.end()) {
      if (x->begin < y->end && y->begin < x->end) return true;
      x->end <= y->begin ? ++x : ++y;
    }
    return false;
  }
  std::vector<std::function<void()>> startable() OOC_REQUIRES(mutex_) {
    std::vector<std::function<void()>> next;
    for (auto i = items_.begin(); i != items_.end(); ++i) {
      if (i->started || !i->ready) continue;
      bool free = true;
      for (auto earlier = items_.begin(); free && earlier != i; ++earlier)
        free = !(earlier->writes || i->writes) || !overlap(earlier->ranges, i->ranges);
      if (!free) continue;
      i->started = true;
      next.push_back(std::move(i->go));
    }
    return next;
  }

  mutex mutex_;
  std::list<item> items_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::mount
