#include "storage/client/contact_keeper.hpp"

namespace ooc::storage {

void contact_keeper::every(std::chrono::milliseconds period) {
  const lock_guard lock(mutex_);
  if (stopping_ || (period_.count() != 0 && period_ <= period)) return;
  period_ = period;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
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
    if (std::chrono::steady_clock::now() < asked + period_) {
      wake_.wait_until(lock, asked + period_);
      continue;
    }
    lock.unlock();
    ask_();
    asked = std::chrono::steady_clock::now();
    lock.lock();
  }
}

}  // namespace ooc::storage
