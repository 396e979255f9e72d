#include "storage/chunked/decoded_chunks.hpp"

#include <algorithm>
#include <iterator>
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

decoded_chunks::bytes decoded_chunks::make_room(bool comes_back) {
  constexpr std::size_t last_used = 64;
  const std::size_t others = std::min(last_used, order_.size() - 1);
  const auto one = static_cast<std::ptrdiff_t>(1 + random_() % others);
  const auto goes = comes_back ? std::next(order_.begin(), one) : std::prev(order_.end());
  slot& s = slots_.find(*goes)->second;
  bytes dropped = std::move(s.decoded);
  gone_.splice(gone_.end(), order_, goes);
  s.gone = true;
  if (gone_.size() > most_) {
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
      if (order_.size() > most_) dropped = make_room(comes_back);
    }
  }
  for (const user& use : waiting) use(f, decoded);
}

}  // namespace ooc::storage
