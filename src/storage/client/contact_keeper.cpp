#include "storage/client/contact_keeper.hpp"

#include <algorithm>

namespace ooc::storage {

using namespace std::chrono_literals;

void contact_keeper::every(std::chrono::milliseconds period) {
  {
    const lock_guard lock(mutex_);
    if (period_.count() != 0 && period_ <= period) return;
    if (period_.count() == 0) asked_ = ticker::clock::now();
    period_ = period;
  }
  ticker_.wake();
}

void contact_keeper::soon() {
  {
    const lock_guard lock(mutex_);
    soon_ = true;
  }
  ticker_.wake();
}

ticker::clock::time_point contact_keeper::next() const {
  if (period_.count() == 0) return ticker::when_woken;
  return asked_ + (soon_ ? std::min<std::chrono::milliseconds>(period_, 1s) : period_);
}

ticker::clock::time_point contact_keeper::ask_if_due() {
  {
    const lock_guard lock(mutex_);
    if (ticker::clock::now() < next()) return next();
    soon_ = false;
  }
  const bool all_said = ask_();
  const lock_guard lock(mutex_);
  asked_ = ticker::clock::now();
  soon_ |= !all_said;
  return next();
}

}  // namespace ooc::storage
