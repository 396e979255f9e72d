#include "runtime/pager/process_end.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "runtime/pager/fault_handler.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/signals.hpp"
#include "storage/base/log.hpp"
#include "storage/base/lost_data.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds patience{2000};  ///< a wait that is longer is announced
constexpr std::array watched_signals{SIGTERM, SIGINT};

// Constant-initialised and never destroyed: usable however late.
constinit mutex writing;  ///< held by who writes, and by who takes the pager away
pager* served OOC_GUARDED_BY(writing) = nullptr;
std::atomic<pager*> ending{nullptr};  ///< the same, for who only looks
std::atomic<std::chrono::milliseconds::rep> deadline{0};
std::atomic<std::terminate_handler> terminate_before{nullptr};

/// The ends of a pipe: what the signal handler writes, the watcher reads.
std::atomic<int> pipe_out{-1}, pipe_in{-1};
std::atomic<pid_t> watching_process{0};

void say(const std::string& text) noexcept {
  const std::string whole = "oocarray: " + text + "\n";
  if (::write(2, whole.data(), whole.size()) < 0) { /* nobody left to tell */
  }
}

/// Runs `f` on a thread of its own and waits; calls `slow` once where that takes long.  False where
/// it has not ended within `limit`: the thread goes on.
bool within(milliseconds limit, std::function<void()> f, const std::function<void()>& slow = {}) {
  struct state {
    ooc::mutex mutex;
    condition_variable changed;
    bool done OOC_GUARDED_BY(mutex) = false;
  };
  const auto s = std::make_shared<state>();
  try {
    const signals_blocked inherited_by_the_thread;
    std::thread([s, f] {
      f();
      const lock_guard l(s->mutex);
      s->done = true;
      s->changed.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    f();  // no thread is to be had: better late than never
    return true;
  }
  unique_lock l(s->mutex);
  const auto done = [&]() OOC_REQUIRES(s->mutex) { return s->done; };
  // In short waits, of which one at most is used up while the process is stopped (Ctrl-Z, a debugger).
  const auto done_in = [&](milliseconds left) OOC_REQUIRES(s->mutex) {
    constexpr milliseconds at_a_time{100};
    for (; left > at_a_time; left -= at_a_time)
      if (s->changed.wait_for(l, at_a_time, done)) return true;
    return s->changed.wait_for(l, left, done);
  };
  if (done_in(std::min(limit, patience))) return true;
  if (limit <= patience) return false;
  if (slow) slow();
  return done_in(limit - patience);
}

std::string listed(const std::vector<pager::unwritten>& all) {
  std::string text;
  for (const pager::unwritten& u : all)
    text += (text.empty() ? "'" : ", '") + u.name + "' (" + std::to_string(u.blocks) + ")";
  return text.empty() ? "unknown" : text;
}

std::string modified_blocks() {
  const pager* p = ending.load();
  return "modified blocks by array: " + (p ? listed(p->modified()) : "none");
}

/// False where the deadline passed.
bool write_back(const char* why) {
  if (fault_handler::in_forked_child() || !ending.load()) return true;
  const milliseconds limit{deadline.load()};
  const std::string most = std::to_string(limit.count()) + " ms";
  const bool in_time = within(
      limit,
      [why] {
        const lock_guard l(writing);
        if (!served) return;
        for (const pager::unwritten& u : served->write_back_all())
          if (u.why) {
            say(std::to_string(u.blocks) + " modified blocks of array '" + u.name + "' could not be written back at " +
                why + "; they are lost: " + u.why.what);
            data_were_lost();
          }
        served->report().end();
      },
      [&] { say("writing back at " + std::string(why) + ", for at most " + most + "; " + modified_blocks()); });
  if (!in_time)
    say("not everything could be written back at " + std::string(why) + " within " + most +
        " (runtime_options::end_deadline), and the rest is lost; " + modified_blocks());
  return in_time;
}

// A write that still waits for the store then would keep the destructors of arrays waiting as well.
void at_exit() {
  log_plainly();  // spdlog's own static objects may be gone soon
  if (write_back("exit()")) return;
  within(milliseconds(1000), [] { std::fflush(nullptr); });
  ::_exit(fatal_exit_status);
}

[[noreturn]] void at_terminate() {
  try {
    write_back("std::terminate()");
  } catch (...) {
    // The process ends because of another failure, which the handler below reports.
  }
  if (const std::terminate_handler before = terminate_before.load()) before();
  std::abort();
}

void on_signal(int signal) {
  const int saved_errno = errno;
  if (::getpid() == watching_process.load()) {
    const auto byte = static_cast<unsigned char>(signal);
    if (::write(pipe_in.load(), &byte, 1) < 0) { /* full: the watcher knows already */
    }
  } else {  // a child that has not called exec() yet shares the pipe with its parent
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  errno = saved_errno;
}

}  // namespace

process_end::process_end(pager& p, const runtime_options& o) {
  deadline = o.end_deadline.count();
  if (o.write_back_on_signals) watch_signals();
  {
    const lock_guard l(writing);
    served = &p;
  }
  ending = &p;
  before_ = std::get_terminate();
  if (before_ != &at_terminate) {
    terminate_before = before_;
    std::set_terminate(&at_terminate);
  }
}

process_end::~process_end() {
  if (std::get_terminate() == &at_terminate) std::set_terminate(before_);
  ignore_signals();
  ending = nullptr;
  const lock_guard l(writing);
  served = nullptr;
}

void process_end::write_back_at_exit() {
  if (std::atexit(&at_exit) != 0) throw std::bad_alloc();
}

// --- signals
// ---------------------------------------------------------------------------------------

void process_end::watch_signals() {
  for (const int signal : watched_signals) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN))
      throw usage_error(errc::busy,
                        "runtime_options::write_back_on_signals: the program has a "
                        "handler for signal " +
                            std::to_string(signal) +
                            " already: write back where it ends the program, and leave "
                            "the option out");
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0 || ::fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "a pipe for runtime_options::write_back_on_signals");
  pipe_out = ends[0];
  pipe_in = ends[1];
  watching_process = ::getpid();
  try {
    const signals_blocked inherited_by_the_thread;
    watcher_ = std::thread([this] { await_signal(); });
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  watching_ = true;
  struct sigaction ours {};
  ours.sa_handler = &on_signal;
  ours.sa_flags = SA_RESTART;
  sigfillset(&ours.sa_mask);
  for (const int signal : watched_signals) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) ::sigaction(signal, &ours, nullptr);  // what is ignored stays so
  }
}

void process_end::ignore_signals() noexcept {
  if (!watching_) return;
  for (const int signal : watched_signals) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == &on_signal) ::signal(signal, SIG_DFL);
  }
  constexpr unsigned char stop = 0;
  while (::write(pipe_in.load(), &stop, 1) < 0 && errno == EAGAIN) std::this_thread::yield();
  watcher_.join();
  ::close(pipe_in.exchange(-1));
  ::close(pipe_out.exchange(-1));
}

void process_end::await_signal() {
  // All other threads may wait for blocks, which they do with signals blocked.
  sigset_t watched;
  sigemptyset(&watched);
  for (const int s : watched_signals) sigaddset(&watched, s);
  ::pthread_sigmask(SIG_UNBLOCK, &watched, nullptr);
  unsigned char signal = 0;
  while (::read(pipe_out.load(), &signal, 1) < 0 && errno == EINTR) {
  }
  if (signal == 0) return;
  write_back(signal == SIGTERM ? "SIGTERM" : "SIGINT");
  // The default action, so that the parent sees what ended this process.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace ooc::detail
