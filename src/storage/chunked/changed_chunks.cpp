#include "storage/chunked/changed_chunks.hpp"

#include <cassert>
#include <utility>

namespace ooc::storage {

changed_chunks::bytes changed_chunks::find(std::uint64_t chunk) const {
  const lock_guard lock(mutex_);
  const auto found = slots_.find(chunk);
  return found == slots_.end() ? nullptr : found->second.holds;
}

void changed_chunks::add(std::uint64_t chunk, bytes holds) {
  const lock_guard lock(mutex_);
  assert(!slots_.contains(chunk));
  std::list<std::uint64_t> one{chunk};
  slots_.emplace(chunk, slot{std::move(holds), 0, one.begin()});
  order_.splice(order_.end(), one);
}

std::uint64_t changed_chunks::note(std::uint64_t chunk, std::uint64_t written) {
  const lock_guard lock(mutex_);
  return slots_.at(chunk).written += written;
}

void changed_chunks::remove(std::uint64_t chunk) {
  const lock_guard lock(mutex_);
  const auto found = slots_.find(chunk);
  assert(found != slots_.end());
  order_.erase(found->second.at);
  slots_.erase(found);
}

std::optional<std::uint64_t> changed_chunks::oldest_of_many(std::uint64_t chunk) const {
  const lock_guard lock(mutex_);
  if (slots_.size() < most_ || slots_.contains(chunk)) return std::nullopt;
  return order_.front();
}

std::vector<std::uint64_t> changed_chunks::all() const {
  const lock_guard lock(mutex_);
  return {order_.begin(), order_.end()};
}

}  // namespace ooc::storage
