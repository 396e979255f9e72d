#include "storage/service/removal_queue.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace ooc::storage {

removal_queue::removal_queue(remover remove)
    : remove_(std::move(remove)), owner_(::getpid()), thread_(std::make_unique<ticker>([this] { return turn(); })) {}

removal_queue::~removal_queue() {
  if (::getpid() != owner_) {
    (void)thread_.release();  // there is no such thread to be joined
    return;
  }
  thread_->stop();
  {
    const lock_guard lock(mutex_);
    hurry_ = true;
  }
  turn();
}

void removal_queue::add(entry e) {
  const lock_guard lock(mutex_);
  thread_->wake();
  if (waiting_.empty()) due_ = ticker::clock::now() + gathering;
  bytes_ += allocated_size(e);
  hurry_ = hurry_ || bytes_ >= most_bytes;
  waiting_.push_back(std::move(e));
  ++added_;
}

bool removal_queue::finish() {
  unique_lock lock(mutex_);
  try_again();
  const std::uint64_t until = added_, before = removed_;
  if (tried_ == until) return false;
  hurry_ = true;
  thread_->wake();
  changed_.wait(lock, [&]() OOC_REQUIRES(mutex_) { return tried_ >= until; });
  return removed_ != before;
}

void removal_queue::try_again() {
  added_ += kept_.size();
  for (entry& e : std::exchange(kept_, {})) waiting_.push_back(std::move(e));
}

ticker::clock::time_point removal_queue::turn() {
  unique_lock lock(mutex_);
  if (waiting_.empty()) return ticker::when_woken;
  if (!hurry_ && ticker::clock::now() < due_) return due_;
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
  return ticker::when_woken;
}

}  // namespace ooc::storage
