// What has been done with the segments that are open, and with those that were, by the names of their arrays.
//
// Lock: the pager's.
#pragma once

#include <new>
#include <vector>

#include "runtime/blocks/segment_state.hpp"
#include "runtime/policy/usage_report.hpp"

namespace ooc::detail {

class usage_log {
 public:
  /// The segment is about to go; it has no parent.
  void closed(const segment_state& s) noexcept OOC_REQUIRES(pager_mutex) {
    try {
      join_usage(closed_, usage_of(s));
    } catch (const std::bad_alloc&) {  // then a report has nothing of it
    }
  }
  std::vector<array_usage> with(const std::vector<segment_state*>& open) const OOC_REQUIRES(pager_mutex) {
    std::vector<array_usage> all = closed_;
    for (const segment_state* s : open)
      if (!s->parent) join_usage(all, usage_of(*s));
    return all;
  }

 private:
  static array_usage usage_of(const segment_state& s) OOC_REQUIRES(pager_mutex) {
    array_usage u;
    u.name = s.options.name;
    u.bytes = s.reach;
    u.block_bytes = s.block_bytes();
    u.counts = s.counts.now();
    u.order = s.past.order();
    if (s.grains) u.order += s.grains->past.order();
    u.wasteful = s.past.wasteful();
    u.place = s.latest_place.load(std::memory_order_relaxed);
    return u;
  }

  std::vector<array_usage> closed_;
};

}  // namespace ooc::detail
