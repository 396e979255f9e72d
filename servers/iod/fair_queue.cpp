#include "iod/fair_queue.hpp"

#include <spdlog/spdlog.h>

namespace ooc::iod {

namespace {

constexpr std::uint64_t quantum = 1 << 20;  // bytes
constexpr std::uint64_t least_cost = 4096;  // what a request costs beside its bytes

void tell(const fair_queue::failing& failed, const std::exception& why) noexcept {
  try {
    failed(why);
  } catch (const std::exception& e) {
    spdlog::error("a request that failed ({}) could not be answered: {}", why.what(), e.what());
  }
}

}  // namespace

void fair_queue::add(const std::string& client, place where, std::uint64_t cost, job j,
                     failing failed) {
  std::unique_lock lock(mutex_);
  waiting_job waiting{cost + least_cost, std::move(j), std::move(failed)};
  if (const auto known = by_name_.find(client); known != by_name_.end()) {
    known->second->jobs.emplace(where, std::move(waiting));
  } else {
    std::list<client_queue> another;
    another.push_back({client, {}, {}, 0});
    another.front().jobs.emplace(where, std::move(waiting));
    by_name_.emplace(client, another.begin());
    ring_.splice(ring_.end(), another);
  }
  ++waiting_;
  dispatch(std::move(lock));
}

// With the mutex held: takes the job whose turn it is.
bool fair_queue::next(waiting_job& out) {
  while (!ring_.empty()) {
    client_queue& c = ring_.front();
    auto at = c.jobs.lower_bound(c.last);
    if (at == c.jobs.end()) at = c.jobs.begin();
    if (c.credit < at->second.cost) {
      // The others first.  A client alone goes on at once.
      c.credit += quantum;
      if (ring_.size() > 1) {
        ring_.splice(ring_.end(), ring_, ring_.begin());
        continue;
      }
      if (c.credit < at->second.cost) continue;
    }
    c.credit -= at->second.cost;
    c.last = {at->first.first, at->first.second + 1};
    out = std::move(at->second);
    c.jobs.erase(at);
    --waiting_;
    if (c.jobs.empty()) {
      by_name_.erase(c.name);
      ring_.pop_front();
    }
    return true;
  }
  return false;
}

void fair_queue::dispatch(std::unique_lock<std::mutex> lock) {
  // One thread starts jobs at a time: what ends at once is seen by its loop, not by a recursion.
  if (dispatching_) return;
  dispatching_ = true;
  waiting_job j;
  while (running_ < slots_ && next(j)) {
    ++running_;
    lock.unlock();
    try {
      j.run([this] {
        std::unique_lock again(mutex_);
        --running_;
        dispatch(std::move(again));
      });
    } catch (const std::exception& e) {  // it has not begun; the turn is for the others
      tell(j.failed, e);
      lock.lock();
      --running_;
      lock.unlock();
    }
    j = {};  // what it held may call back when it goes
    lock.lock();
  }
  dispatching_ = false;
}

std::uint64_t fair_queue::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

std::uint64_t fair_queue::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

}  // namespace ooc::iod
