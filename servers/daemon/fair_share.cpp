#include "daemon/fair_share.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "storage/base/invariants.hpp"

namespace ooc::servers {

fair_share::holder& fair_share::holder_of(client_number who) {
  holder& h = holders_[who.process];
  h.who = who;
  return h;
}

bool fair_share::fits(const holder& h, std::uint64_t amount) const {
  if (held_ == 0) return true;  // however large: else it would never be served
  if (held_ + amount > limit_) return false;
  const std::uint64_t free = limit_ - held_;
  const auto user = users_.find(h.who.user);
  const std::uint64_t users = user == users_.end() ? 0 : user->second;
  if (h.held == 0) return amount <= small_ || (free - amount >= limit_ / 8 && (users == 0 || users + amount <= free));
  return users + amount <= free && h.held + amount <= free - users;
}

fair_share::claim fair_share::hold(holder& h, std::uint64_t amount) {
  held_ += amount;
  h.held += amount;
  users_[h.who.user] += amount;
  return {shared_from_this(), h.who, amount};
}

void fair_share::forget(client_number who) {
  if (const auto h = holders_.find(who.process);
      h != holders_.end() && h->second.held == 0 && h->second.waiting.empty())
    holders_.erase(h);
  if (const auto u = users_.find(who.user); u != users_.end() && u->second == 0) users_.erase(u);
}

void fair_share::take(client_number who, std::uint64_t amount, std::function<void(claim)> go) {
  claim now;
  {
    const lock_guard lock(mutex_);
    const invariants_hold at_end(*this);
    holder& h = holder_of(who);
    if (!h.waiting.empty() || !fits(h, amount)) {
      if (h.waiting.empty()) waiting_.push_back(who.process);
      h.waiting.push_back({amount, std::move(go)});
      return;
    }
    now = hold(h, amount);
  }
  go(std::move(now));
}

fair_share::claim fair_share::try_take(client_number who, std::uint64_t amount) {
  const lock_guard lock(mutex_);
  const invariants_hold at_end(*this);
  holder& h = holder_of(who);
  if (h.waiting.empty() && fits(h, amount)) return hold(h, amount);
  forget(who);
  return {};
}

fair_share::claim fair_share::take_now(client_number who, std::uint64_t amount) {
  const lock_guard lock(mutex_);
  const invariants_hold at_end(*this);
  return hold(holder_of(who), amount);
}

// A turn for each of those that wait, again and again while somebody is served.
void fair_share::serve(std::vector<granted>& out) {
  for (bool served = true; served && !waiting_.empty();) {
    served = false;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const auto at = next++;
      holder& h = holders_.at(*at);
      if (!fits(h, h.waiting.front().amount)) continue;
      waiter w = std::move(h.waiting.front());
      h.waiting.pop_front();
      out.push_back({std::move(w.go), hold(h, w.amount)});
      served = true;
      if (h.waiting.empty())
        waiting_.erase(at);
      else
        waiting_.splice(waiting_.end(), waiting_, at);
      if (held_ >= limit_) return;
    }
  }
}

void fair_share::give_back(client_number who, std::uint64_t amount) {
  unique_lock lock(mutex_);
  const invariants_hold at_end(*this);
  assert(held_ >= amount && holders_.at(who.process).held >= amount && users_.at(who.user) >= amount);
  held_ -= amount;
  holders_.at(who.process).held -= amount;
  users_.at(who.user) -= amount;
  forget(who);
  // One thread serves at a time, in a loop: who is served may give back at once.
  if (serving_) return;
  serving_ = true;
  for (;;) {
    std::vector<granted> out;
    serve(out);
    if (out.empty()) break;
    const unlocked gap(lock, mutex_);
    for (granted& g : out) g.go(std::move(g.what));
    out.clear();  // what they own may hold something of this share too
  }
  serving_ = false;
}

void fair_share::claim::shrink(std::uint64_t amount) {
  if (!of_ || amount >= amount_) return;
  of_->give_back(who_, amount_ - amount);
  amount_ = amount;
  if (amount == 0) of_.reset();
}

std::uint64_t fair_share::held() const {
  const lock_guard lock(mutex_);
  return held_;
}

std::uint64_t fair_share::held_by(client_number who) const {
  const lock_guard lock(mutex_);
  const auto h = holders_.find(who.process);
  return h == holders_.end() ? 0 : h->second.held;
}

bool fair_share::above_share(client_number who) const {
  const lock_guard lock(mutex_);
  const auto h = holders_.find(who.process);
  if (h == holders_.end()) return false;
  const std::uint64_t free = limit_ > held_ ? limit_ - held_ : 0;
  const auto user = users_.find(who.user);
  const std::uint64_t users = user == users_.end() ? 0 : user->second;
  return h->second.held > (free > users ? free - users : 0);
}

#ifndef NDEBUG
void fair_share::check_invariants() const {
  const auto sum = [](std::uint64_t n, const auto& one) { return n + one.second; };
  assert(std::accumulate(users_.begin(), users_.end(), std::uint64_t{0}, sum) == held_);
  std::uint64_t held = 0;
  std::size_t waiting = 0;
  for (const auto& [process, h] : holders_) {
    held += h.held;
    waiting += !h.waiting.empty();
    assert(h.held != 0 || !h.waiting.empty());
    assert(h.waiting.empty() || std::count(waiting_.begin(), waiting_.end(), process) == 1);
  }
  assert(held == held_ && waiting == waiting_.size());
}
#endif

bool fair_share::short_of() const {
  const lock_guard lock(mutex_);
  return !waiting_.empty();
}

}  // namespace ooc::servers
