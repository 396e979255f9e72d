#include "storage/chunked/decoded_chunks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ooc::storage {

bool decoded_chunks::need(std::uint64_t chunk, user use) {
  bytes decoded;
  {
    const lock_guard lock(mutex_);
    const auto [at, is_new] = slots_.try_emplace(chunk);
    slot& s = at->second;
    if (!s.decoded) {
      s.waiting.push_back(std::move(use));
      return is_new;
    }
    order_.splice(order_.begin(), order_, s.order);
    decoded = s.decoded;
  }
  use({}, decoded);
  return false;
}

decoded_chunks::bytes decoded_chunks::make_room(bool comes_back) {
  const auto any = static_cast<std::ptrdiff_t>(random_() % order_.size());
  const auto goes = comes_back ? std::next(order_.begin(), any) : std::prev(order_.end());
  const auto s = slots_.find(*goes);
  bytes dropped = std::move(s->second.decoded);
  if (gone_.size() >= most_) gone_.pop_front();
  gone_.push_back(*goes);
  slots_.erase(s);
  order_.erase(goes);
  return dropped;
}

void decoded_chunks::arrived(std::uint64_t chunk, const failure& f, bytes decoded) {
  std::vector<user> waiting;
  bytes dropped;  // after the lock
  {
    const lock_guard lock(mutex_);
    const auto at = slots_.find(chunk);
    waiting.swap(at->second.waiting);
    if (f) {
      slots_.erase(at);
    } else {
      const bool comes_back = std::find(gone_.begin(), gone_.end(), chunk) != gone_.end();
      if (order_.size() >= most_) dropped = make_room(comes_back);
      order_.push_front(chunk);
      at->second.order = order_.begin();
      at->second.decoded = decoded;
    }
  }
  for (const user& use : waiting) use(f, decoded);
}

}  // namespace ooc::storage
