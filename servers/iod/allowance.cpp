#include "iod/allowance.hpp"

#include <utility>
#include <vector>

namespace ooc::iod {

allowance::claim allowance::claim_to(std::uint64_t bytes) {
  // Nothing is pointed to: a claim is what happens when it ends.
  return {static_cast<const void*>(this),
          [self = shared_from_this(), bytes](const void*) { self->give_back(bytes); }};
}

void allowance::take(std::uint64_t bytes, std::function<void(claim)> go) {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty() || bytes > left_) {
      waiting_.push_back({bytes, std::move(go)});
      return;
    }
    left_ -= bytes;
  }
  go(claim_to(bytes));
}

void allowance::give_back(std::uint64_t bytes) {
  std::vector<waiter> served;
  {
    const std::lock_guard lock(mutex_);
    left_ += bytes;
    while (!waiting_.empty() && waiting_.front().bytes <= left_) {
      left_ -= waiting_.front().bytes;
      served.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  for (const waiter& w : served) w.go(claim_to(w.bytes));
}

}  // namespace ooc::iod
