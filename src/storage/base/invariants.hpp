// The invariants of a class, looked at where its mutex is let go, in builds that check (without NDEBUG).
//
//     void fair_share::take(...) {
//       const lock_guard lock(mutex_);
//       const invariants_hold at_end(*this);   // check_invariants(), which asserts, before the mutex is released
//       ...
//
// A class that only its owner's thread uses does the same without a mutex.
#pragma once

#include "storage/base/mutex.hpp"

namespace ooc {

template <class Of>
class invariants_hold {
 public:
#ifdef NDEBUG
  explicit invariants_hold(const Of& /*of*/) noexcept {}
#else
  explicit invariants_hold(const Of& of) noexcept : of_(of) {}
  // The scope that it ends in holds the mutex, which clang cannot see.
  ~invariants_hold() OOC_NO_THREAD_SAFETY_ANALYSIS { of_.check_invariants(); }
  invariants_hold(const invariants_hold&) = delete;
  invariants_hold& operator=(const invariants_hold&) = delete;

 private:
  const Of& of_;
#endif
};

}  // namespace ooc
