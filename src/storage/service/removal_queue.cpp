#include "storage/service/removal_queue.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace ooc::storage {

removal_queue::removal_queue(remover remove) : remove_(std::move(remove)), owner_(::getpid()) {}

removal_queue::~removal_queue() {
  if (!thread_.joinable()) return;
  if (::getpid() != owner_) {
    new std::thread(std::move(thread_));  // there is no such thread to be joined
    return;
  }
  {
    const lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void removal_queue::add(entry e) {
  {
    const lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    bytes_ += std::max(e.size, e.reserved);
    hurry_ = hurry_ || bytes_ >= most_bytes;
    waiting_.push_back(std::move(e));
    ++added_;
  }
  changed_.notify_all();
}

bool removal_queue::finish() {
  unique_lock lock(mutex_);
  try_again();
  const std::uint64_t until = added_, before = removed_;
  if (tried_ == until) return false;
  hurry_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&]() OOC_REQUIRES(mutex_) { return tried_ >= until; });
  return removed_ != before;
}

void removal_queue::try_again() {
  added_ += kept_.size();
  for (entry& e : std::exchange(kept_, {})) waiting_.push_back(std::move(e));
}

void removal_queue::run() {
  unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() OOC_REQUIRES(mutex_) { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    changed_.wait_for(lock, gathering, [&]() OOC_REQUIRES(mutex_) { return ending_ || hurry_; });
    try_again();
    std::vector<entry> now = std::exchange(waiting_, {});
    const std::uint64_t files = now.size();
    bytes_ = 0;
    hurry_ = false;
    std::vector<entry> kept;
    {
      const unlocked others(lock, mutex_);
      kept = remove_(std::move(now));
    }
    tried_ += files;
    removed_ += files - kept.size();
    kept_ = std::move(kept);
    changed_.notify_all();
  }
}

}  // namespace ooc::storage
