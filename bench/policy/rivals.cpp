#include "policy/rivals.hpp"

#include <algorithm>
#include <deque>
#include <list>
#include <set>
#include <utility>
#include <vector>

#include "policy/disk_model.hpp"

namespace bench::policy {
namespace {

using unit = std::uint32_t;
constexpr unit none = ~unit{0};

/// The units of a trace, numbered over all its arrays.
struct numbered {
  explicit numbered(const access_trace& t) {
    std::vector<std::uint64_t> first;
    for (const array_shape& a : t.arrays) {
      first.push_back(count);
      count += (a.bytes + t.unit - 1) / t.unit;
    }
    of.reserve(t.accesses.size());
    for (const access& a : t.accesses) of.push_back(static_cast<unit>(first[a.array] + a.place / t.unit));
  }
  std::vector<unit> of;  ///< of each access
  std::uint64_t count = 0;
};

struct touched {
  bool hit = false;
  unit left = none;  ///< what has gone for it
};

class lru {
 public:
  lru(const numbered& n, std::size_t memory) : memory_(memory), where_(n.count, order_.end()) {}
  touched touch(unit u, std::size_t) {
    if (where_[u] != order_.end()) {
      order_.splice(order_.begin(), order_, where_[u]);
      return {true};
    }
    touched r;
    if (order_.size() == memory_) {
      r.left = order_.back();
      where_[r.left] = order_.end();
      order_.pop_back();
    }
    order_.push_front(u);
    where_[u] = order_.begin();
    return r;
  }

 private:
  const std::size_t memory_;
  std::list<unit> order_;  ///< the latest first
  std::vector<std::list<unit>::iterator> where_;
};

class s3_fifo {
 public:
  s3_fifo(const numbered& n, std::size_t memory)
      : small_most_(std::max<std::size_t>(1, memory / 10)), memory_(memory), state_(n.count) {}
  touched touch(unit u, std::size_t) {
    one& s = state_[u];
    if (s.in_memory) {
      s.touches = static_cast<std::uint8_t>(std::min(s.touches + 1, 3));
      return {true};
    }
    touched r;
    while (small_.size() + main_.size() >= memory_ && r.left == none)
      r.left = small_.size() >= small_most_ || main_.empty() ? evict_small() : evict_main();
    s.in_memory = true;
    s.touches = 0;
    (std::exchange(s.remembered, 0) ? main_ : small_).push_back(u);
    return r;
  }

 private:
  struct one {
    bool in_memory = false;
    std::uint8_t touches = 0;
    std::uint32_t remembered = 0;  ///< entries among the names that are its latest
  };
  unit leave(unit u) {
    state_[u].in_memory = false;
    return u;
  }
  /// None where what was at its head has gone to the main queue.
  unit evict_small() {
    const unit u = small_.front();
    small_.pop_front();
    if (state_[u].touches > 1) {
      state_[u].touches = 0;
      main_.push_back(u);
      return none;
    }
    names_.push_back({u, ++clock_});
    state_[u].remembered = clock_;
    if (names_.size() > memory_ - small_most_) {
      const auto [oldest, when] = names_.front();
      if (state_[oldest].remembered == when) state_[oldest].remembered = 0;
      names_.pop_front();
    }
    return leave(u);
  }
  unit evict_main() {
    for (;;) {
      const unit u = main_.front();
      main_.pop_front();
      if (state_[u].touches == 0) return leave(u);
      --state_[u].touches;
      main_.push_back(u);
    }
  }

  const std::size_t small_most_, memory_;
  std::vector<one> state_;
  std::deque<unit> small_, main_;  ///< the oldest first
  std::deque<std::pair<unit, std::uint32_t>> names_;
  std::uint32_t clock_ = 0;
};

class optimum {
 public:
  optimum(const numbered& n, std::size_t memory) : memory_(memory), next_(n.of.size()), now_(n.count) {
    std::vector<std::size_t> coming(n.count, n.of.size());
    for (std::size_t i = n.of.size(); i-- > 0;) next_[i] = std::exchange(coming[n.of[i]], i);
  }
  touched touch(unit u, std::size_t at) {
    touched r;
    r.hit = in_.erase({now_[u], u}) > 0;
    if (!r.hit && in_.size() == memory_) {
      const auto last = std::prev(in_.end());
      r.left = last->second;
      in_.erase(last);
    }
    in_.insert({now_[u] = next_[at], u});
    return r;
  }

 private:
  const std::size_t memory_;
  std::vector<std::size_t> next_;  ///< of each access: when its unit is touched next
  std::vector<std::size_t> now_;   ///< the same of each unit, as of now
  std::set<std::pair<std::size_t, unit>> in_;
};

template <class Policy>
rival_outcome replay(const access_trace& t) {
  const numbered units(t);
  Policy memory(units, t.memory());
  std::vector<bool> modified(units.count);
  disk_model disk;
  rival_outcome r;
  for (std::size_t i = 0; i < t.accesses.size(); ++i) {
    const access& a = t.accesses[i];
    disk.run(a.work_ns);
    const touched now = memory.touch(units.of[i], i);
    if (now.left != none && modified[now.left]) {
      modified[now.left] = false;
      ++r.written;
      disk.transfer(t.unit);
    }
    if (!now.hit) {
      ++r.misses;
      disk.wait(disk.transfer(t.unit));
    }
    if (a.write) modified[units.of[i]] = true;
  }
  r.written += static_cast<std::uint64_t>(std::count(modified.begin(), modified.end(), true));
  r.waited_ns = disk.waited();
  return r;
}

}  // namespace

rival_outcome replay_lru(const access_trace& t) { return replay<lru>(t); }
rival_outcome replay_s3_fifo(const access_trace& t) { return replay<s3_fifo>(t); }
rival_outcome replay_optimum(const access_trace& t) { return replay<optimum>(t); }

}  // namespace bench::policy
