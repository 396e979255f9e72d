#include "storage/client/contact_keeper.hpp"

#include <algorithm>

namespace ooc::storage {

using namespace std::chrono_literals;

void contact_keeper::every(std::chrono::milliseconds period) {
  const lock_guard lock(mutex_);
  if (stopping_ || (period_.count() != 0 && period_ <= period)) return;
  period_ = period;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  wake_.notify_all();
}

void contact_keeper::soon() {
  const lock_guard lock(mutex_);
  soon_ = true;
  wake_.notify_all();
}

void contact_keeper::stop() {
  {
    const lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void contact_keeper::run() {
  unique_lock lock(mutex_);
  auto asked = std::chrono::steady_clock::now();
  while (!stopping_) {
    const auto next = asked + (soon_ ? std::min<std::chrono::milliseconds>(period_, 1s) : period_);
    if (std::chrono::steady_clock::now() < next) {
      wake_.wait_until(lock, next);
      continue;
    }
    soon_ = false;
    lock.unlock();
    const bool all_said = ask_();
    asked = std::chrono::steady_clock::now();
    lock.lock();
    soon_ |= !all_said;
  }
}

}  // namespace ooc::storage
