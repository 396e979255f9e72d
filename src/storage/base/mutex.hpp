// Mutexes that say what they guard, so that clang can check it.
//
// Those of the standard library carry none of the attributes of clang's thread-safety analysis; these
// wrap them and cost nothing.  A field says OOC_GUARDED_BY(mutex_), a function that expects the mutex to
// be held OOC_REQUIRES(mutex_), one that takes it, or may wait, OOC_EXCLUDES(mutex_).  The test
// `thread_safety` runs clang over all sources and fails where this is not so; gcc sees plain code.
//
// The analysis looks at one function at a time.  What it cannot follow:
//   - a lambda is a function of its own: one that runs with the mutex held, as the condition of a wait
//     does, says OOC_REQUIRES after its parameters;
//   - a lock that was passed to a function cannot be unlocked by its name there: `unlocked` releases the
//     mutex for the length of a block, and takes it again however that block is left;
//   - constructors and destructors are not looked at, as nobody else knows the object then.
// docs/decisions/0016-thread-safety-analysis.md says why this way.
#pragma once

#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <utility>

#if defined(__clang__)
#define OOC_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define OOC_THREAD_ATTRIBUTE(x)
#endif

// Of types
#define OOC_CAPABILITY(name) OOC_THREAD_ATTRIBUTE(capability(name))
#define OOC_SCOPED_CAPABILITY OOC_THREAD_ATTRIBUTE(scoped_lockable)
// Of fields
#define OOC_GUARDED_BY(m) OOC_THREAD_ATTRIBUTE(guarded_by(m))
#define OOC_PT_GUARDED_BY(m) OOC_THREAD_ATTRIBUTE(pt_guarded_by(m))
// Of functions: what the caller holds, does not hold, or holds from then on
#define OOC_REQUIRES(...) OOC_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define OOC_EXCLUDES(...) OOC_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define OOC_ACQUIRE(...) OOC_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define OOC_ACQUIRE_SHARED(...) OOC_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define OOC_RELEASE(...) OOC_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define OOC_RELEASE_SHARED(...) OOC_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define OOC_RELEASE_GENERIC(...) OOC_THREAD_ATTRIBUTE(release_generic_capability(__VA_ARGS__))
#define OOC_TRY_ACQUIRE(...) OOC_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define OOC_RETURN_CAPABILITY(m) OOC_THREAD_ATTRIBUTE(lock_returned(m))
/// For a function that is right in a way the analysis cannot follow; a comment says which.
#define OOC_NO_THREAD_SAFETY_ANALYSIS OOC_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace ooc {

class OOC_CAPABILITY("mutex") mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  void lock() OOC_ACQUIRE() { native_.lock(); }
  void unlock() noexcept OOC_RELEASE() { native_.unlock(); }
  bool try_lock() OOC_TRY_ACQUIRE(true) { return native_.try_lock(); }

 private:
  friend class unique_lock;
  std::mutex native_;
};

class OOC_CAPABILITY("mutex") timed_mutex {
 public:
  void lock() OOC_ACQUIRE() { native_.lock(); }
  void unlock() noexcept OOC_RELEASE() { native_.unlock(); }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t) OOC_TRY_ACQUIRE(true) {
    return native_.try_lock_until(t);
  }

 private:
  std::timed_mutex native_;
};

class OOC_CAPABILITY("mutex") shared_mutex {
 public:
  void lock() OOC_ACQUIRE() { native_.lock(); }
  void unlock() noexcept OOC_RELEASE() { native_.unlock(); }
  void lock_shared() OOC_ACQUIRE_SHARED() { native_.lock_shared(); }
  void unlock_shared() noexcept OOC_RELEASE_SHARED() { native_.unlock_shared(); }

 private:
  std::shared_mutex native_;
};

template <class Mutex>
class OOC_SCOPED_CAPABILITY lock_guard {
 public:
  explicit lock_guard(Mutex& m) OOC_ACQUIRE(m) : mutex_(m) { m.lock(); }
  /// For one that try_lock_until() has taken.
  lock_guard(Mutex& m, std::adopt_lock_t) OOC_REQUIRES(m) : mutex_(m) {}
  ~lock_guard() OOC_RELEASE() { mutex_.unlock(); }
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;

 private:
  Mutex& mutex_;
};

/// For readers.
class OOC_SCOPED_CAPABILITY shared_lock {
 public:
  explicit shared_lock(shared_mutex& m) OOC_ACQUIRE_SHARED(m) : mutex_(m) { m.lock_shared(); }
  ~shared_lock() OOC_RELEASE_GENERIC() { mutex_.unlock_shared(); }
  shared_lock(const shared_lock&) = delete;
  shared_lock& operator=(const shared_lock&) = delete;

 private:
  shared_mutex& mutex_;
};

/// May be unlocked and locked again, and waited with.
class OOC_SCOPED_CAPABILITY unique_lock {
 public:
  explicit unique_lock(mutex& m) OOC_ACQUIRE(m) : native_(m.native_) {}
  ~unique_lock() OOC_RELEASE() {}
  unique_lock(const unique_lock&) = delete;
  unique_lock& operator=(const unique_lock&) = delete;

  void lock() OOC_ACQUIRE() { native_.lock(); }
  void unlock() OOC_RELEASE() { native_.unlock(); }
  /// True if it is locked, and `m` is what it locks.
  bool owns(const mutex& m) const noexcept { return native_ && native_.mutex() == &m.native_; }

 private:
  friend class condition_variable;
  std::unique_lock<std::mutex> native_;
};

/// The mutex of a lock that the caller passed is not held while this lives.  `m` is that mutex by the
/// name under which the function says that it requires it.
class OOC_SCOPED_CAPABILITY unlocked {
 public:
  unlocked(unique_lock& l, mutex& m) OOC_RELEASE(m) OOC_NO_THREAD_SAFETY_ANALYSIS : lock_(l) {
    assert(l.owns(m));
    (void)m;
    l.unlock();
  }
  ~unlocked() OOC_RELEASE() OOC_NO_THREAD_SAFETY_ANALYSIS { lock_.lock(); }
  unlocked(const unlocked&) = delete;
  unlocked& operator=(const unlocked&) = delete;

 private:
  unique_lock& lock_;
};

/// Waits with a unique_lock, which is locked before and afterwards.
class condition_variable {
 public:
  void notify_one() noexcept { native_.notify_one(); }
  void notify_all() noexcept { native_.notify_all(); }

  void wait(unique_lock& l) { native_.wait(l.native_); }
  template <class Condition>
  void wait(unique_lock& l, Condition c) {
    native_.wait(l.native_, std::move(c));
  }
  template <class Clock, class Duration>
  std::cv_status wait_until(unique_lock& l, const std::chrono::time_point<Clock, Duration>& t) {
    return native_.wait_until(l.native_, t);
  }
  template <class Clock, class Duration, class Condition>
  bool wait_until(unique_lock& l, const std::chrono::time_point<Clock, Duration>& t, Condition c) {
    return native_.wait_until(l.native_, t, std::move(c));
  }
  template <class Rep, class Period>
  std::cv_status wait_for(unique_lock& l, const std::chrono::duration<Rep, Period>& d) {
    return native_.wait_for(l.native_, d);
  }
  template <class Rep, class Period, class Condition>
  bool wait_for(unique_lock& l, const std::chrono::duration<Rep, Period>& d, Condition c) {
    return native_.wait_for(l.native_, d, std::move(c));
  }

 private:
  std::condition_variable native_;
};

}  // namespace ooc
