#include "runtime/pager/fault_handler.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "oocarray/error.hpp"
#include "runtime/pager/fault_report.hpp"
#include "runtime/pager/pager.hpp"
#include "storage/base/fault_signals.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/notice.hpp"

namespace ooc::detail::fault_handler {

namespace {

struct range {
  std::atomic<std::uintptr_t> base{0};
  std::atomic<std::size_t> bytes{0};
  std::atomic<segment_state*> segment{nullptr};
  std::atomic<std::uint32_t> served{0};  ///< by other threads, now; a futex
};

constexpr std::size_t max_ranges = 1024;

// Constant-initialised: usable at any time, also before main and in handlers.
std::array<range, max_ranges> ranges;
std::atomic<std::size_t> ranges_used{0};
std::atomic<pager*> the_pager{nullptr};
std::atomic<bool> forked{false};
mutex install_mutex;

/// Of the process that has the pager: its threads when it was last seen to that they hear of faults.
struct threads_seen {
  storage::new_threads seen;
  std::uint64_t then = 0;
  std::set<pid_t> warned_of;
};
/// nullptr: no faults, or they need no signals.  No owner, whose destructor static arrays would outlive.
threads_seen* threads OOC_GUARDED_BY(install_mutex) = nullptr;

// The handlers that were installed whenever ours was put in front, oldest first.
constexpr std::size_t most_predecessors = 16;
struct predecessor_list {
  int signal;
  std::array<struct sigaction, most_predecessors> all{};
  std::atomic<std::size_t> used{0};
};
// A touch of what is missing of a block in grains is the second.
std::array<predecessor_list, 2> predecessors{{{SIGSEGV}, {SIGBUS}}};

predecessor_list& predecessors_of(int signal) noexcept { return predecessors[signal == SIGBUS]; }

/// The last fault that was passed on, and to whom.  Two threads that crash at once may share it:
/// each then ends the process a little sooner or later.
struct passed_fault {
  std::atomic<pid_t> thread{0};
  std::atomic<std::uintptr_t> instruction{0};
  std::atomic<std::uintptr_t> address{0};
  std::atomic<std::size_t> older{0};  ///< 0: the latest predecessor
  std::atomic<unsigned> times{0};     ///< it has come back from that one
} passed;
constexpr unsigned most_times = 16;

struct found {
  segment_state* segment = nullptr;
  std::int64_t offset = 0;  ///< from the first block; in the guards negative, or past the blocks
};

// A slot may get another range while it is read: what was read counts if its base is still the same.
found find(std::uintptr_t address) noexcept {
  const std::size_t n = ranges_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < n; ++i) {
    range& r = ranges[i];
    const std::uintptr_t base = r.base.load(std::memory_order_acquire);
    if (!base || address - base >= r.bytes.load(std::memory_order_acquire)) continue;
    segment_state* const s = r.segment.load(std::memory_order_acquire);
    if (r.base.load(std::memory_order_relaxed) == base)
      return {s, static_cast<std::int64_t>(address - base - s->guard)};
  }
  return {};
}

touch kind_of_access([[maybe_unused]] const void* context) noexcept {
#if defined(__x86_64__)
  const auto* u = static_cast<const ucontext_t*>(context);
  return u->uc_mcontext.gregs[REG_ERR] & 2 ? touch::write : touch::read;
#elif defined(__aarch64__)
  // The kernel's records: one of them has the exception's syndrome, with a bit for "write, not read".
  constexpr std::uint64_t write_not_read = 1 << 6;
  const auto& records = static_cast<const ucontext_t*>(context)->uc_mcontext.__reserved;
  for (std::size_t at = 0; at + sizeof(esr_context) <= sizeof records;) {
    const auto* const head = reinterpret_cast<const _aarch64_ctx*>(records + at);
    if (head->magic == ESR_MAGIC)
      return reinterpret_cast<const esr_context*>(head)->esr & write_not_read ? touch::write : touch::read;
    if (head->magic == 0 || head->size == 0) break;
    at += head->size;
  }
  return touch::unknown;
#else
  return touch::unknown;
#endif
}

std::uintptr_t instruction_of([[maybe_unused]] const void* context) noexcept {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
  return 0;
#endif
}

/// Where this thread's last fault was, when the signal has been raised; 0: not known.
std::uintptr_t last_fault([[maybe_unused]] const void* context) noexcept {
#if defined(__x86_64__)
  constexpr greg_t page_fault = 14;
  const greg_t* const r = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return r[REG_TRAPNO] == page_fault ? static_cast<std::uintptr_t>(r[REG_CR2]) : 0;
#elif defined(__aarch64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.fault_address;
#else
  return 0;
#endif
}

void end_by(int signal, bool raised) noexcept {
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  ::sigaction(signal, &plain, nullptr);
  // An access is tried again and ends the process at the right place.
  if (raised) ::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal);
}

/// Which predecessor's turn it is: the latest, unless it has had the fault already.  It had if the
/// signal has been raised again at the same instruction (one that is raised in a handler is
/// delivered when ours returns), or if the fault comes back time and again.
std::size_t turn_of(const siginfo_t& info, const void* context) noexcept {
  const bool raised = info.si_code <= 0;
  const pid_t thread = ::gettid();
  const std::uintptr_t instruction = instruction_of(context);
  const auto address = raised ? passed.address.load() : reinterpret_cast<std::uintptr_t>(info.si_addr);
  const bool again = passed.thread == thread && passed.instruction == instruction && passed.address == address;
  if (!again) {
    passed.thread = thread;
    passed.instruction = instruction;
    passed.address = address;
    passed.older = 0;
    passed.times = 0;
  } else if (raised || ++passed.times == most_times) {
    ++passed.older;
    passed.times = 0;
  }
  return passed.older;
}

// Debuggers stop here (.gdbinit).
[[gnu::noinline]] void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  const predecessor_list& list = predecessors_of(signal);
  const std::size_t known = list.used.load(std::memory_order_acquire);
  const std::size_t older = turn_of(*info, context);
  if (older >= known) return end_by(signal, info->si_code <= 0);
  const struct sigaction& before = list.all[known - 1 - older];
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
    end_by(signal, info->si_code <= 0);
  else
    before.sa_handler(signal);
}

/// False, and a message, where the touch is a fault of the program.
bool serve(segment_state& s, std::int64_t offset, touch t) noexcept {
  const auto refuse = [&](bad_touch why) {
    report_bad_touch(s, offset, t, why);
    return false;
  };
  if (forked.load(std::memory_order_relaxed)) return refuse(bad_touch::in_forked_child);
  pager* const p = the_pager.load(std::memory_order_acquire);
  if (!p || s.use.load(std::memory_order_acquire) != segment_use::open) return refuse(bad_touch::closed);
  const auto place = static_cast<std::uint64_t>(offset);
  if (offset < 0 || place >= s.reach.load(std::memory_order_relaxed)) return refuse(bad_touch::out_of_range);
  if (p->on_signal(s, place, t)) return true;
  return refuse(s.options.writable ? bad_touch::outside_part : bad_touch::read_only);
}

/// Whether the block is mapped so that such a touch does not fault.
bool allows(const segment_state& s, std::int64_t offset, touch t) noexcept {
  const auto place = static_cast<std::uint64_t>(offset);
  if (offset < 0 || place >= s.reach.load(std::memory_order_relaxed)) return false;
  block_state now = s.at(place / s.block_bytes()).state();
  if (now == block_state::in_grains) now = s.grains->at(place / s.grains->block_bytes()).state();
  return now == block_state::rw || (t == touch::read && (now == block_state::ro || now == block_state::flush));
}

/// A signal that was raised: by the program, or by a handler in front of ours, which took a touch
/// for a crash. True if it was such a touch, which has now been served.
bool serve_reported(const void* context) noexcept {
  const std::uintptr_t address = last_fault(context);
  const found at = address ? find(address) : found{};
  if (!at.segment) return false;
  const touch t = kind_of_access(context);
  // Else the fault was served long ago, and the program means what it raises.
  if (allows(*at.segment, at.offset, t) || !serve(*at.segment, at.offset, t)) return false;
  report_displaced_handler(*at.segment);
  return true;
}

void on_signal(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  bool served = false;
  if (info->si_code <= 0)  // not from the kernel for an access
    served = info->si_code == SI_TKILL && serve_reported(context);
  else if (const found at = find(address); at.segment)
    served = serve(*at.segment, at.offset, kind_of_access(context));
  if (!served) pass_on(signal, info, context);
  errno = saved_errno;
}

void install(predecessor_list& list) OOC_REQUIRES(install_mutex) {
  struct sigaction now {};
  ::sigaction(list.signal, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal) return;
  // One that is found again and again, because both sides insist, is remembered once.
  const auto same = [&](const struct sigaction& a) {
    return (a.sa_flags & SA_SIGINFO) == (now.sa_flags & SA_SIGINFO) && a.sa_handler == now.sa_handler;
  };
  const std::size_t known = list.used.load();
  if (known == 0 || !same(list.all[known - 1])) {
    list.all[std::min(known, most_predecessors - 1)] = now;
    list.used.store(std::min(known + 1, most_predecessors), std::memory_order_release);
  }
  struct sigaction ours {};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  ::sigaction(list.signal, &ours, nullptr);
}

void install() OOC_REQUIRES(install_mutex) {
  for (predecessor_list& list : predecessors) install(list);
}

/// Threads that block SIGSEGV would end the process with their next touch.  Where none has come since, only the
/// calling thread is looked at, unless `all`.
void unblock(const std::string& touched, bool all) OOC_REQUIRES(install_mutex) {
  if (!threads) return;
  storage::unblock_faults_here();
  const std::uint64_t now = threads->seen.now();
  if (now == threads->then && !all) return;
  threads->then = now;
  for (const storage::named_thread& t : storage::unblock_faults_elsewhere())
    if (threads->warned_of.insert(t.id).second)
      storage::notice("thread " + std::to_string(t.id) + " ('" + t.name +
                      "') blocks SIGSEGV or SIGBUS: it must not touch " + touched +
                      ", as the kernel would end the process without a message; have it unblock them, or " +
                      "set OOC_MAPPING=userfaultfd");
}

// Resident blocks are not inherited; what else the child may map there must not pass for array
// data.
void after_fork_in_child() {
  if (!the_pager.load()) return;
  forked.store(true);
  for (range& r : ranges)
    if (const std::uintptr_t base = r.base.load())
      sys::map(reinterpret_cast<void*>(base), r.bytes.load(), PROT_NONE, sys::reserve_flags | MAP_FIXED);
}

}  // namespace

void reclaim() {
  lock_guard l(install_mutex);
  install();
  unblock("arrays", false);
}

void attach(pager& p, bool by_signals) {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, after_fork_in_child); });
  if (forked.load())
    throw usage_error(errc::busy,
                      "this process is a forked child, and its parent had a runtime: let the parent make its runtime "
                      "later, or end it before, or run another program (exec)");
  pager* none = nullptr;
  if (!the_pager.compare_exchange_strong(none, &p))
    throw usage_error(errc::busy, "a runtime exists already: a process has one, which all its arrays share");
  lock_guard l(install_mutex);
  install();
  if (by_signals) threads = new threads_seen;
  unblock("arrays", true);
}

void detach(pager& p) noexcept {
  pager* mine = &p;
  if (!the_pager.compare_exchange_strong(mine, nullptr)) return;
  lock_guard l(install_mutex);
  delete std::exchange(threads, nullptr);
}

namespace {
void await_end_of_services(range& r) noexcept {
  while (const std::uint32_t now = r.served.load(std::memory_order_seq_cst)) sys::futex_wait(r.served, now);
}
}  // namespace

void add_range(segment_state& s) {
  lock_guard l(install_mutex);
  install();
  unblock("array '" + s.options.name + "'", true);
  // A closed segment is there for its message only, and makes room for an open one.
  for (const bool closed_too : {false, true})
    for (std::size_t i = 0; i < max_ranges; ++i) {
      range& r = ranges[i];
      if (r.base.load(std::memory_order_relaxed)) {
        if (!closed_too || r.segment.load(std::memory_order_relaxed)->use == segment_use::open) continue;
        r.base.store(0, std::memory_order_seq_cst);
        await_end_of_services(r);
      }
      r.segment.store(&s, std::memory_order_release);
      r.bytes.store(s.reserved + 2 * s.guard, std::memory_order_release);
      r.base.store(reinterpret_cast<std::uintptr_t>(s.base - s.guard), std::memory_order_release);
      if (i >= ranges_used.load(std::memory_order_relaxed)) ranges_used.store(i + 1, std::memory_order_release);
      return;
    }
  throw usage_error(errc::busy, "more than 1024 arrays are open at once: close some first");
}

// The segment is closed, and services that wait have ended; who serves a message that was read late ends at once.  It
// raises `served` before it looks for the segment; so the slot is emptied before `served` is looked at.
void remove_range(segment_state& s) noexcept {
  lock_guard l(install_mutex);
  for (range& r : ranges)
    if (r.segment.load(std::memory_order_relaxed) == &s) {
      r.base.store(0, std::memory_order_seq_cst);
      r.segment.store(nullptr, std::memory_order_seq_cst);
      await_end_of_services(r);
    }
}

answer serve_for(std::uintptr_t address, touch t, fault_history& h) noexcept {
  const std::size_t n = ranges_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < n; ++i) {
    range& r = ranges[i];
    const std::uintptr_t base = r.base.load(std::memory_order_acquire);
    if (!base || address - base >= r.bytes.load(std::memory_order_acquire)) continue;
    r.served.fetch_add(1, std::memory_order_seq_cst);
    answer a = answer::gone;
    if (segment_state* const s = r.segment.load(std::memory_order_seq_cst);
        s && r.base.load(std::memory_order_seq_cst) == base) {
      const std::uint64_t place = address - base - s->guard;
      pager* const p = the_pager.load(std::memory_order_acquire);
      if (!p || s->use.load(std::memory_order_seq_cst) != segment_use::open)
        a = answer::refused;
      else if (place >= s->reach.load(std::memory_order_relaxed))
        a = answer::refused;
      else
        a = p->on_fault(*s, place, t, h) ? answer::served : answer::refused_write;
    }
    if (r.served.fetch_sub(1, std::memory_order_seq_cst) == 1) sys::futex_wake_all(r.served);
    return a;
  }
  return answer::gone;
}

void await_services(const segment_state& s) noexcept {
  for (range& r : ranges)
    if (r.segment.load(std::memory_order_seq_cst) == &s) await_end_of_services(r);
}

bool in_forked_child() noexcept { return forked.load(std::memory_order_relaxed); }

}  // namespace ooc::detail::fault_handler
