#include "storage/chunked/decoded_chunks.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace ooc::storage {

bool decoded_chunks::need(std::uint64_t chunk, user use) {
  bytes decoded;
  {
    const lock_guard lock(mutex_);
    slot& s = slots_[chunk];
    if (!s.decoded) {
      const bool first = s.waiting.empty();
      if (first && !s.gone && s.own.empty()) s.own.push_back(chunk);
      s.waiting.push_back(std::move(use));
      if (s.gone) {
        s.own.splice(s.own.begin(), gone_, s.at);
        s.gone = false;
        s.comes_back = true;
      }
      return first;
    }
    order_.splice(order_.begin(), order_, s.at);
    decoded = s.decoded;
  }
  use({}, decoded);
  return false;
}

bool decoded_chunks::has(std::uint64_t chunk) {
  const lock_guard lock(mutex_);
  const auto found = slots_.find(chunk);
  return found != slots_.end() && found->second.decoded;
}

decoded_chunks::bytes decoded_chunks::take(std::uint64_t chunk) {
  bytes taken, dropped;  // after the lock
  const lock_guard lock(mutex_);
  if (const auto found = slots_.find(chunk); found != slots_.end() && found->second.decoded) {
    taken = std::move(found->second.decoded);
    order_.erase(found->second.at);
    slots_.erase(found);
  }
  --room_;
  if (is_full()) dropped = make_room(false);
  return taken;
}

void decoded_chunks::put(std::uint64_t chunk, bytes decoded) {
  give_room();
  try {
    if (need(chunk, [](const failure&, const bytes&) {})) arrived(chunk, {}, std::move(decoded));
  } catch (const std::bad_alloc&) {
    // It is decoded again where somebody needs it.
  }
}

void decoded_chunks::give_room() {
  const lock_guard lock(mutex_);
  ++room_;
}

decoded_chunks::bytes decoded_chunks::make_room(bool comes_back) {
  constexpr std::size_t last_used = 64;
  const std::size_t others = std::min(last_used, order_.size() - 1);
  const auto one = static_cast<std::ptrdiff_t>(1 + random_() % others);
  const auto goes = comes_back ? std::next(order_.begin(), one) : std::prev(order_.end());
  slot& s = slots_.find(*goes)->second;
  bytes dropped = std::move(s.decoded);
  gone_.splice(gone_.end(), order_, goes);
  s.gone = true;
  if (gone_.size() > order_.size() + 1) {
    slots_.erase(gone_.front());
    gone_.pop_front();
  }
  return dropped;
}

void decoded_chunks::arrived(std::uint64_t chunk, const failure& f, bytes decoded) {
  std::vector<user> waiting;
  bytes dropped;  // after the lock
  {
    const lock_guard lock(mutex_);
    const auto found = slots_.find(chunk);
    slot& s = found->second;
    waiting.swap(s.waiting);
    if (f) {
      slots_.erase(found);
    } else {
      order_.splice(order_.begin(), s.own);
      s.at = order_.begin();
      s.decoded = decoded;
      const bool comes_back = std::exchange(s.comes_back, false);
      if (is_full()) dropped = make_room(comes_back);
    }
  }
  for (const user& use : waiting) use(f, decoded);
}

}  // namespace ooc::storage
