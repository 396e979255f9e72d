#include "iod/requests_in_flight.hpp"

#include <algorithm>
#include <utility>

#include "storage/wire/frame_stream.hpp"

namespace ooc::iod {

void broken(const std::string& why) {
  throw wire::connection_error(std::make_error_code(std::errc::protocol_error), why);
}

void requests_in_flight::begin(std::uint64_t id, servers::fair_share::claim memory, bool coming) {
  const lock_guard lock(mutex_);
  const auto [r, made] = active_.try_emplace(id);
  if (!made) broken("request " + std::to_string(id) + " was made twice");
  r->second.spoken = clock::now();
  r->second.coming = coming;
  r->second.memory = std::move(memory);
}

void requests_in_flight::all_came(std::uint64_t id) {
  const lock_guard lock(mutex_);
  if (const auto r = active_.find(id); r != active_.end()) r->second.coming = false;
}

void requests_in_flight::touch(std::uint64_t id) {
  const lock_guard lock(mutex_);
  if (const auto r = active_.find(id); r != active_.end()) r->second.spoken = clock::now();
}

void requests_in_flight::answered(std::uint64_t id) {
  const lock_guard lock(mutex_);
  if (const auto r = active_.find(id); r != active_.end()) r->second.answered = true;
}

void requests_in_flight::end(std::uint64_t id) {
  std::vector<std::function<void()>> over;
  servers::fair_share::claim memory;  // goes without the mutex
  {
    const lock_guard lock(mutex_);
    if (const auto r = active_.find(id); r != active_.end()) {
      memory = std::move(r->second.memory);
      active_.erase(r);
    }
    if (ended_ && active_.empty()) over = std::exchange(over_, {});
  }
  for (const auto& f : over) f();
}

void requests_in_flight::only_waits(std::uint64_t id) {
  const lock_guard lock(mutex_);
  if (const auto r = active_.find(id); r != active_.end()) r->second.only_waits = true;
}

void requests_in_flight::no_more() {
  std::vector<std::function<void()>> over;
  std::vector<servers::fair_share::claim> memory;  // goes without the mutex
  {
    const lock_guard lock(mutex_);
    ended_ = true;
    for (auto& [id, r] : active_)
      if (r.only_waits) memory.push_back(std::move(r.memory));
    std::erase_if(active_, [](const auto& r) { return r.second.only_waits; });
    if (active_.empty()) over = std::exchange(over_, {});
  }
  for (const auto& f : over) f();
}

void requests_in_flight::when_over(std::function<void()> done) {
  {
    const lock_guard lock(mutex_);
    if (!ended_ || !active_.empty()) {
      over_.push_back(std::move(done));
      return;
    }
  }
  done();
}

std::vector<std::uint64_t> requests_in_flight::busy(clock::time_point now, clock::time_point receiving) {
  std::vector<std::uint64_t> ids;
  const lock_guard lock(mutex_);
  for (auto& [id, r] : active_) {
    if (r.answered || now - r.spoken < still_busy) continue;
    if (r.coming && now - receiving > still_busy) continue;
    r.spoken = now;
    ids.push_back(id);
  }
  return ids;
}

bool requests_in_flight::coming() const {
  const lock_guard lock(mutex_);
  return std::any_of(active_.begin(), active_.end(), [](const auto& r) { return r.second.coming; });
}

bool requests_in_flight::none() const {
  const lock_guard lock(mutex_);
  return active_.empty();
}

}  // namespace ooc::iod
