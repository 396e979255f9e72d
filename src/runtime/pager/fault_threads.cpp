#include "runtime/pager/fault_threads.hpp"

#include <cassert>
#include <system_error>
#include <utility>

#include "runtime/blocks/sys.hpp"
#include "runtime/blocks/userfault_calls.hpp"
#include "runtime/pager/fault_handler.hpp"
#include "runtime/pager/signals.hpp"
#include "storage/base/invariants.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

namespace {
// Of the calling thread; read in fault handlers, which may not allocate.
__attribute__((tls_model("initial-exec"))) thread_local constinit bool reads = false;
}  // namespace

void fault_threads::start() {
  bell_page_ = sys::map(nullptr, page_bytes, PROT_READ | PROT_WRITE, sys::reserve_flags);
  if (!bell_page_ ||
      !sys::userfault_register(mapping_.descriptor(), bell_page_, page_bytes, UFFDIO_REGISTER_MODE_MISSING))
    throw std::system_error(errno, std::generic_category(), "userfaultfd: a page of the runtime");
  mapping_.before_waits([this] { give_up_reading(); });
  const signals_blocked inherited_by_the_threads;
  const lock_guard l(mutex_);
  for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { run(false); });
}

void fault_threads::stop() {
  std::vector<std::thread> all;
  {
    const lock_guard l(mutex_);
    stopping_ = true;
    all = std::move(threads_);
  }
  static_cast<void>(*static_cast<volatile std::byte*>(bell_page_));  // returns when it has been read
  for (std::thread& t : all) t.join();
  sys::unmap(bell_page_, page_bytes);
}

#ifndef NDEBUG
void fault_threads::check_invariants() const {
  assert(stopping_ || (idle_ <= threads_.size() && threads_.size() <= most_threads));
  assert(has_reader_ || idle_ > aside_.size() || stopping_);  // or who hands the reading over has nobody to hand it to
  assert(stopping_ || !ended_);
  assert(histories_.size() <= most_histories);
}
#endif

void fault_threads::run(bool counted) {
  for (;;) {
    touch_seen t;
    {
      unique_lock l(mutex_);
      const invariants_hold at_end(*this);
      if (!std::exchange(counted, false)) ++idle_;
      changed_.wait(l, [&]() OOC_REQUIRES(mutex_) { return !has_reader_ || !aside_.empty() || ended_; });
      --idle_;
      if (ended_) return;
      if (!aside_.empty()) {
        t = aside_.front();
        aside_.pop_front();
      } else {
        has_reader_ = reads = true;
      }
    }
    if (!reads) {
      serve(t);
      continue;
    }
    while (reads) {
      const news n = read(t);
      if (n == news::end) {
        {
          const lock_guard l(mutex_);
          ended_ = true;
          changed_.notify_all();
        }
        uffdio_zeropage z{{sys::address_of(bell_page_), page_bytes}, 0, 0};
        sys::userfault_call(mapping_.descriptor(), UFFDIO_ZEROPAGE, &z);
        return;
      }
      if (n == news::touched && serve_here_or_put_aside(t)) serve(t);
    }
  }
}

fault_threads::news fault_threads::read(touch_seen& t) const {
  uffd_msg m;
  const wake_log::number asked = mapping_.wakes().now();
  while (::syscall(SYS_read, mapping_.descriptor(), &m, sizeof m) != sizeof m)
    if (errno != EINTR && errno != EAGAIN) die("reading of faults", errno);
  if (m.event != UFFD_EVENT_PAGEFAULT) return news::moved;
  t = {static_cast<std::uintptr_t>(m.arg.pagefault.address), m.arg.pagefault.feat.ptid,
       (m.arg.pagefault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0, asked};
  return t.address - reinterpret_cast<std::uintptr_t>(bell_page_) < page_bytes ? news::end : news::touched;
}

void fault_threads::serve(const touch_seen& t) {
  auto* const page = reinterpret_cast<std::byte*>(t.address / page_bytes * page_bytes);
  fault_history history = take_history(t.thread);
  history.asked = t.asked;
  const auto answer = fault_handler::serve_for(t.address, t.write ? touch::write : touch::read, history);
  keep_history(history);
  switch (answer) {
    case fault_handler::answer::served: mapping_.wake(page); break;
    case fault_handler::answer::refused_write: mapping_.fence(page, true); break;
    case fault_handler::answer::refused: mapping_.fence(page, false); break;
    case fault_handler::answer::gone:  // the range was unregistered meanwhile
      break;
  }
}

// True where the reader may serve the touch itself: should it have to wait, another thread reads.  One that takes
// a touch put aside before is not that thread, and no thread falls asleep while there are such touches.
bool fault_threads::serve_here_or_put_aside(const touch_seen& t) {
  const lock_guard l(mutex_);
  const invariants_hold at_end(*this);
  if (idle_ <= aside_.size() && threads_.size() < most_threads && !stopping_) {
    try {
      threads_.emplace_back([this] { run(true); });
      ++idle_;                         // as good as: who hands over to it finds it there when it has begun
    } catch (const std::exception&) {  // the system has no more: touches wait for those that are there
    }
  }
  if (idle_ > aside_.size()) return true;
  aside_.push_back(t);
  changed_.notify_one();
  return false;
}

// The waits that follow end without this thread's help.
void fault_threads::give_up_reading() {
  if (!reads) return;
  reads = false;
  const lock_guard l(mutex_);
  const invariants_hold at_end(*this);
  has_reader_ = false;
  changed_.notify_all();
}

// The thread may have gone on, and touch something else, before this touch's service has ended: a
// history is with one server at a time.
fault_history fault_threads::take_history(std::uint32_t thread) {
  const lock_guard l(mutex_);
  fault_history h;
  if (const auto known = histories_.find(thread); known != histories_.end()) {
    h = known->second;
    histories_.erase(known);
  }
  h.thread = thread;
  return h;
}

void fault_threads::keep_history(const fault_history& h) {
  const lock_guard l(mutex_);
  const invariants_hold at_end(*this);
  if (histories_.size() >= most_histories) histories_.clear();  // threads end without a word
  histories_[h.thread] = h;
}

}  // namespace ooc::detail
